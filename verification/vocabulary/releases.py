"""Release numbers, compared as Kafka numbers its releases.

A release is two to four numbers joined by dots: 4.3.1, and 0.11.0.0 for the oldest ones that know transactions. A
shorter number names a line and means all its releases: "up to 3.9" includes 3.9.2. Candidates and snapshots are no
releases.

A *build of your own* is no release either. It is named `4.3.1+own.1f2e3d4c` or `4.5.0-SNAPSHOT+own.1f2e3d4c`: the version
that its own jars state, and a digest of the jars. In comparisons it has the number in its version.
"""

from __future__ import annotations

import re

from verification.vocabulary.errors import ReleaseError

#: The last patch of every line from 3.9 on, oldest first: the releases that have a lock file.
SUPPORTED = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")

#: The end of the name of a build of your own: what follows the number in its version, and the digest of its jars.
OWN_BUILD = r"(?:[-.][0-9A-Za-z][0-9A-Za-z.-]*)?\+own\.[0-9a-f]{8}"
_PATTERN = re.compile(rf"([0-9]{{1,4}}(?:\.[0-9]{{1,4}}){{1,3}})({OWN_BUILD})?", re.ASCII)


def parse(release: str) -> tuple[int, ...]:
    """The numbers of a release or of a build of your own, for comparison.

    Raises ReleaseError when it is not a version number.
    """
    match = _PATTERN.fullmatch(release)
    if match is None:
        raise ReleaseError(f"{release!r} is not a Kafka release; write it as two to four numbers, for instance 4.3.1")
    return tuple(int(part) for part in match[1].split("."))


def own_number(release: str) -> str:
    """The number in the name of a build of your own, such as 4.3.1; empty for everything else."""
    match = _PATTERN.fullmatch(release)
    return match[1] if match is not None and match[2] else ""


def stated_version(release: str) -> str:
    """The version that a build of your own states, such as 4.5.0-SNAPSHOT; a release states its own number."""
    return release.partition("+")[0]


def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    # Four numbers are the longest form: 4.0 and 4.0.0 are the same release.
    return numbers + (0,) * (4 - len(numbers))


def is_released(release: str) -> bool:
    """Whether a release is one that this version of Onceproof knows, and not one that is still to come."""
    return parse(release) <= parse(SUPPORTED[-1])


def within(release: str, since: str, until: str | None) -> bool:
    """Whether `release` lies in [since, until]; both ends belong to it, and no `until` means no end.

    A bound that names a line includes the whole line: 3.9.2 lies within an `until` of "3.9".

    Raises ReleaseError when one of them is not a version number.
    """
    numbers, first = parse(release), parse(since)
    if _padded(numbers) < _padded(first):
        return False
    last = parse(until) if until is not None else None
    return last is None or numbers[: len(last)] <= last
