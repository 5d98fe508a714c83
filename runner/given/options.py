"""The options of a run on a cluster of the user: `--bootstrap`, and those that go with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.clusters.given.broker_commands import BrokerCommands, read_commands
from fixtures.clusters.given.connection import ClusterConnection, read_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_PREFIX = "onceproof-"
#: The characters of a topic's name. Names of runs follow, at most 60 characters of the 249 that a name may have.
_PREFIX = re.compile(r"[a-zA-Z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenOptions:
    """The cluster of the user, and the beginning of all names on it.

    `file` is that of `--client-properties`, `faults` that of `--faults`.
    """

    connection: ClusterConnection
    prefix: str
    file: Path | None = None
    commands: BrokerCommands = field(default_factory=BrokerCommands)
    faults: Path | None = None
    dry_run: bool = False

    @property
    def written(self) -> str:
        """The options that repeat this, without secrets: these are in the file."""
        file = f" --client-properties {self.file}" if self.file else ""
        prefix = f" --prefix {self.prefix}" if self.prefix != DEFAULT_PREFIX else ""
        faults = f" --faults {self.faults}" if self.faults else ""
        return f"--bootstrap {self.connection.bootstrap}{file}{faults}{prefix}"


def add_given_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption("--bootstrap", metavar="HOST:PORT,…", help="run on your own cluster, which is not ended or changed")
    group.addoption(
        "--client-properties", metavar="FILE", help="--bootstrap: TLS and SASL, as for kafka-topics.sh --command-config"
    )
    group.addoption("--faults", metavar="FILE", help="--bootstrap: your commands that crash, pause … a broker (TOML)")
    group.addoption(
        "--prefix", metavar="TEXT", help=f"--bootstrap: names of topics, groups and ids begin so ({DEFAULT_PREFIX})"
    )
    group.addoption(
        "--dry-run", action="store_true", help="--bootstrap: look at the cluster, list what can be run, change nothing"
    )


def given_options(options: Any, *, other_job: str) -> GivenOptions | None:
    """The cluster of the user, None without `--bootstrap`.

    `other_job` names the job where it is not the main one. Raises pytest.UsageError and ClientPropertiesError.
    """
    if not options.bootstrap:
        for name in ("client_properties", "faults", "prefix", "dry_run"):
            if getattr(options, name):
                raise pytest.UsageError(f"--{name.replace('_', '-')} needs --bootstrap, the cluster that it is about")
        return None
    if objection := next(_objections(options, other_job), ""):
        raise pytest.UsageError(f"--bootstrap {objection}")
    prefix = DEFAULT_PREFIX if options.prefix is None else options.prefix
    if not _PREFIX.fullmatch(prefix):
        raise pytest.UsageError(f"--prefix {prefix!r} must be 1 to 100 letters, digits, dots, underscores and hyphens")
    file = Path(options.client_properties).resolve() if options.client_properties else None
    faults = Path(options.faults).resolve() if options.faults else None
    return GivenOptions(
        connection=read_connection(options.bootstrap, file),
        prefix=prefix,
        file=file,
        commands=read_commands(faults),
        faults=faults,
        dry_run=options.dry_run,
    )


def _objections(options: Any, other_job: str) -> Iterator[str]:
    """Reasons why the other options do not fit a cluster of the user."""
    if other_job:
        yield f"is an option of `tox -e conformance`; `tox -e {other_job}` starts clusters of its own"
    if not options.kafka:
        yield "needs --kafka VERSION, the release of that cluster: no request tells it"
    if options.runtime != "auto":
        yield f"runs on your cluster, so --runtime {options.runtime} has no meaning"
    if options.keep:
        yield "removes its topics at the end, so --keep has no meaning"
