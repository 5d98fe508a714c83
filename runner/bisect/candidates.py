"""The builds and releases that are searched, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.clusters.locks.own_build import read_build
from fixtures.clusters.locks.releases import OLDEST, OLDEST_SCRIPTED, Release, parse_release, supported_releases
from fixtures.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A release, or a build of your own with its directory; `commit` is the one that such a build states."""

    release: Release
    directory: Path | None = None
    commit: str = ""

    @property
    def name(self) -> str:
        """Its name in the ledger."""
        return str(self.release)

    @property
    def option(self) -> str:
        """The option of a run on it."""
        return f"--kafka={self.release}" if self.directory is None else f"--kafka-libs={self.directory}"


def candidates(good: str, bad: str, between: Sequence[str], *, scripted: bool) -> tuple[Candidate, ...]:
    """The builds from the good one to the bad one.

    `between` are those in the middle, in their order. Without any, and between two releases, they are the supported
    releases that lie between them. Raises UsageError, also for a directory that has no build.
    """
    oldest = OLDEST_SCRIPTED if scripted else OLDEST
    first, last = _read(good, oldest), _read(bad, oldest)
    middle = [_read(each, oldest) for each in between]
    if not between and first.directory is None and last.directory is None:
        low, high = sorted((first.release, last.release))
        middle = [Candidate(release=each) for each in supported_releases() if low < each < high]
        middle = middle[:: 1 if first.release < last.release else -1]
    found = (first, *middle, last)
    names = [each.name for each in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{twice[0]} is named twice.", hint="Two directories with the same jars are one build.")
    return found


def _read(text: str, oldest: Release) -> Candidate:
    """A release by its number, or a build by its directory."""
    if text[:1].isdigit() and not Path(text).is_dir():
        return Candidate(release=parse_release(text, oldest=oldest))
    files = read_build(Path(text), oldest=oldest)
    return Candidate(release=files.release, directory=files.jars[0].parent, commit=files.commit)
