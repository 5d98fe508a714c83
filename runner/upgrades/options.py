"""The options of `tox -e upgrade`: the pair of releases, where to stop, and where controllers run."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from enum import StrEnum

import pytest

from fixtures.clusters.locks.releases import Release, ReleaseFiles, default_release
from runner.upgrades.path import UpgradePath

#: Options that say nothing about an ordinary run: the attribute, and how the option is written.
_OWN = {
    "upgrade_from": "--from",
    "upgrade_to": "--to",
    "migrates": "--migrate",
    "outline": "--plan",
    "stop_after": "--stop-after",
    "controllers": "--controllers",
}


class Controllers(StrEnum):
    """Where the controllers of a cluster run: in its brokers, or as nodes of their own."""

    COMBINED = "combined"
    DEDICATED = "dedicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """What a user changes in an upgrade: the controllers, and the stage after which it stops.

    `outline`: print the plan and start nothing. `written` repeats the options in a command.
    """

    outline: bool = False
    stop_after: str = ""
    written: str = ""
    controllers: Controllers | None = None


def add_upgrade_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--from", dest="upgrade_from", metavar="VERSION", help="tox -e upgrade: the release to upgrade from"
    )
    group.addoption("--to", dest="upgrade_to", metavar="VERSION", help="tox -e upgrade: the release to upgrade to")
    group.addoption(
        "--migrate",
        action="store_true",
        dest="migrates",
        help="tox -e upgrade: move from ZooKeeper to KRaft within the release of --from, instead of an upgrade",
    )
    group.addoption(
        "--plan",
        action="store_true",
        dest="outline",
        help="tox -e upgrade: print stages, steps and floors, start nothing",
    )
    group.addoption(
        "--stop-after",
        metavar="STAGE",
        help="tox -e upgrade: end with this stage; with --keep the cluster goes on running",
    )
    group.addoption(
        "--controllers",
        choices=[each.value for each in Controllers],
        help="tox -e upgrade: controllers in the brokers, or nodes of their own (default: combined, nightly both)",
    )


def refuse_upgrade_options(options: argparse.Namespace) -> None:
    """Raise pytest.UsageError for an option that only an upgrade has."""
    for name, written in _OWN.items():
        if getattr(options, name):
            raise pytest.UsageError(f"{written} is an option of `tox -e upgrade`")


def upgrade_path(options: argparse.Namespace, build: ReleaseFiles | None = None) -> UpgradePath:
    """The pair of releases; the target is the `build` of your own, else the newest supported one, of a migration the source.

    Raises pytest.UsageError and the errors of a release or of a pair.
    """
    if not options.upgrade_from:
        raise pytest.UsageError("an upgrade needs --from, the release that the cluster runs now")
    if options.kafka:
        raise pytest.UsageError("an upgrade has --from and --to instead of --kafka")
    if options.runtime == "docker" and options.migrates:
        raise pytest.UsageError("--migrate needs --runtime local: ZooKeeper runs as a process of this machine")
    if options.runtime == "docker" and options.stop_after and options.keep:
        raise pytest.UsageError("--stop-after with --keep needs --runtime local: containers end with the run")
    source = Release.parse(options.upgrade_from)
    default = source if options.migrates else default_release() if build is None else build.release
    target = Release.parse(options.upgrade_to) if options.upgrade_to else default
    return UpgradePath(source=source, target=target, migrates=bool(options.migrates))


def upgrade_options(options: argparse.Namespace) -> UpgradeOptions:
    """The user's own part of the run."""
    return UpgradeOptions(
        outline=options.outline,
        controllers=Controllers(options.controllers) if options.controllers else None,
        stop_after=options.stop_after or "",
        written=f' --stop-after "{options.stop_after}"' if options.stop_after else "",
    )
