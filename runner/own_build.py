"""The options of your own build: `--kafka-libs DIR` or `--image REF` in place of `--kafka`; the first also of `--to`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.clusters.locks.own_build import read_build
from fixtures.clusters.locks.releases import Release, ReleaseFiles
from fixtures.downloads.progress import Downloads
from fixtures.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from fixtures.clusters.docker.own_image import ImageSubject


def add_build_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--kafka-libs",
        metavar="DIR",
        help="a build of your own under test: a distribution or another directory of jars",
    )
    group.addoption(
        "--image",
        default="",
        metavar="REF",
        help="an image under test, official or your own: java, and jars in /opt/kafka/libs",
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


def own_image(options: argparse.Namespace, *, oldest: Release) -> ImageSubject | None:
    """The Kafka of the image that `--image` names; None without it.

    Raises pytest.UsageError for options that contradict it, and UsageError for jars that are no build. Ends pytest where
    there is no engine, or no such image.
    """
    if not options.image:
        return None
    others = {
        "--kafka": options.kafka,
        "--kafka-libs": options.kafka_libs,
        "--from": options.upgrade_from,
        "--to": options.upgrade_to,
        "--migrate": options.migrates,
        "--bootstrap": options.bootstrap,
    }
    for name, value in others.items():
        if value:
            raise pytest.UsageError(f"--image and {name} both name the subject of the run; give one of them")
    if options.runtime == "local":
        raise pytest.UsageError("--image needs --runtime docker: its brokers are containers")
    # Docker's libraries take a quarter of a second to import.
    from fixtures.clusters.docker.own_image import read_image

    try:
        return read_image(options.image, downloads=Downloads(), oldest=oldest)
    except EnvironmentProblemError as error:
        pytest.exit(str(error), returncode=error.exit_code)


def selecting(release: Release, build: ReleaseFiles | None, image: str) -> str:
    """The option that selects the release, the build or the image under test."""
    if image:
        return f"--image {shlex.quote(image)}"
    return f"--kafka {release}" if build is None else f"--kafka-libs {shlex.quote(str(directory_of(build)))}"


def directory_of(build: ReleaseFiles) -> Path:
    """The directory of the jars of a build."""
    return build.jars[0].parent


def described(build: ReleaseFiles, image: str) -> str:
    """A build in a line: its name, its commit and its jars, in a directory or an image."""
    return (
        f"Kafka {build.release} is a build of your own and no release: commit {build.commit}, "
        f"{len(build.jars)} jars in {image or directory_of(build)}"
    )
