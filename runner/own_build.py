"""The options of a build of your own: `--kafka-libs DIR`, in place of `--kafka` or `--to`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest

from fixtures.clusters.locks.own_build import read_build
from fixtures.clusters.locks.releases import Release, ReleaseFiles


def add_build_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--kafka-libs",
        metavar="DIR",
        help="a build of your own under test: a distribution or another directory of jars",
    )
    group.addoption(
        "--no-class-archive",
        action="store_false",
        dest="class_archive",
        help="start brokers without a class archive: no 10 s to make it, and each start takes 2 s longer",
    )


def own_build(options: argparse.Namespace, *, oldest: Release) -> ReleaseFiles | None:
    """The build that `--kafka-libs` names; None without it.

    Raises pytest.UsageError for options that contradict it, and the errors of `read_build`.
    """
    if not options.kafka_libs:
        return None
    for name, written in ((options.kafka, "--kafka"), (options.upgrade_to, "--to"), (options.migrates, "--migrate")):
        if name:
            raise pytest.UsageError(f"--kafka-libs and {written} both name the release under test; give one of them")
    if options.runtime == "docker":
        raise pytest.UsageError("--kafka-libs needs --runtime local: its brokers are processes of this machine")
    return read_build(Path(options.kafka_libs), oldest=oldest)


def selecting(release: Release, build: ReleaseFiles | None) -> str:
    """The option that selects the release or the build under test."""
    return f"--kafka {release}" if build is None else f"--kafka-libs {shlex.quote(str(directory_of(build)))}"


def directory_of(build: ReleaseFiles) -> Path:
    """The directory of the jars of a build."""
    return build.jars[0].parent


def described(build: ReleaseFiles) -> str:
    """A build in a line: its name, its commit and its jars."""
    return (
        f"Kafka {build.release} is a build of your own and no release: commit {build.commit}, "
        f"{len(build.jars)} jars in {directory_of(build)}"
    )
