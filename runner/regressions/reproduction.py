"""Declares a reproduction: a script that shows one known bug, and the releases on which the bug must be seen.

A reproduction shows the bug in one variant: a version of the transaction protocol, a setting, or a restart. Its result
is VIOLATED where the bug is seen and HELD where the expected answer is. Everything else is inconclusive (`decide`): a
reproduction that takes any trouble for the bug would find it everywhere.

Expectations are ranges of releases and strict both ways: a bug that is missing where it must be seen is as much a
mismatch as one that is seen where it must not be. A race is never expected; its reproduction counts how often it is
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runner.protocol.toolkit.case import HASTY, Needs
from runner.protocol.toolkit.context import CaseContext
from verification.known_bugs.catalogue import KnownBugId
from verification.scripts.script import Relation
from verification.vocabulary.releases import within
from wire.transaction_versions import TransactionVersion

Play = Callable[[CaseContext], None]
#: The oldest release that scripted requests are for.
OLDEST = "2.4.0"


class Result(StrEnum):
    """The result of a reproduction on one release."""

    VIOLATED = "VIOLATED"
    HELD = "HELD"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A bug in one variant.

    `violated` are the releases (first, last) that have it, both included; a last one such as "4.4" means its whole
    line. The reproduction is for releases from `since` to `until`. Where a run costs too much for all of them, it is for
    those in `only`.
    """

    bug: KnownBugId
    variant: str
    claim: str
    violated: tuple[tuple[str, str | None], ...]
    since: str
    until: str | None
    only: tuple[str, ...]
    race: bool
    generation: TransactionVersion | None
    needs: Needs
    play: Play

    @property
    def name(self) -> str:
        """For people: `KB-03/TV1`."""
        return self.bug + self.variant

    @property
    def key(self) -> str:
        """For directories: `kb-03-tv1`."""
        return self.name.lower().replace("/", "-")

    def is_for(self, release: str) -> bool:
        """Whether the reproduction is to be performed on a release."""
        return release in self.only if self.only else within(release, self.since, self.until)

    def expected(self, release: str) -> Result:
        """The expected result on a release that the reproduction is for."""
        has_it = any(within(release, first, last) for first, last in self.violated)
        return Result.VIOLATED if has_it else Result.HELD

    def mismatch(self, release: str, seen: Result) -> str:
        """The mismatch of a result in words; empty when it is as expected, or undecided."""
        expected = self.expected(release)
        if self.race or seen not in (Result.VIOLATED, Result.HELD) or seen is expected:
            return ""
        return f"{self.name} is {seen} on {release}, where it must be {expected}"


#: Every reproduction that the files of `suites/regressions` declare.
REPRODUCTIONS: list[Reproduction] = []


def reproduces(
    bug: str,
    variant: str = "",
    *,
    violated: Sequence[tuple[str, str | None]],
    since: str = OLDEST,
    until: str | None = None,
    only: Sequence[str] = (),
    race: bool = False,
    generation: TransactionVersion | None = TransactionVersion.TV1,
    needs: Needs = HASTY,
) -> Callable[[Play], Play]:
    """Declare a reproduction above its script. A script has several when it depends on the transaction version only."""

    def declare(play: Play) -> Play:
        reproduction = Reproduction(
            bug=KnownBugId(bug),
            variant=variant,
            claim=" ".join((play.__doc__ or "").split()),
            violated=tuple(violated),
            since=since,
            until=until,
            only=tuple(only),
            race=race,
            generation=generation,
            needs=needs,
            play=play,
        )
        REPRODUCTIONS.append(reproduction)
        return play

    return declare


def decide(
    case: CaseContext, what: str, observed: Mapping[str, Any], *, held: Mapping[str, Any], violated: Mapping[str, Any]
) -> None:
    """Decide a reproduction: hold for the expected answer, violate for the bug, and end undecided for any other answer.

    `held` and `violated` name only the observations that they depend on; the script keeps all of them.
    """
    is_expected, is_bug = (all(observed[name] == value for name, value in each.items()) for each in (held, violated))
    seen = "the lawful answer" if is_expected else "the bug" if is_bug else "neither"
    case.require(
        f"{what}: {dict(observed)} is the lawful answer or the bug",
        seen,
        ["the lawful answer", "the bug"],
        Relation.ONE_OF,
    )
    case.expect(what, dict(observed), {**observed, **held})
