"""What a row of the track record says about itself: the bug, its variant, and where it must and must not be seen.

A row is one script that shows one known bug in one variant: a generation of the transaction protocol, a setting, or a
restart. It is VIOLATED where the bug is seen and HELD where the lawful answer is; `decide` makes everything else
inconclusive, because a row that takes any trouble for the bug would find it everywhere.

Expectations are ranges of releases and strict both ways: a bug that is not seen where it must be is as much a surprise
as one that is seen where it must not. A race cannot be demanded of anybody: such a row tells how often it was seen.
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
    """What came of a row on a release."""

    VIOLATED = "VIOLATED"
    HELD = "HELD"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A bug in one variant.

    `violated` are the releases (first, last) that have it, both included; a last one such as "4.4" means its whole
    line. The row is for releases from `since` to `until`, or for those in `only`, where a run costs too much for all.
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
        """Whether the row says anything about a release."""
        return release in self.only if self.only else within(release, self.since, self.until)

    def expected(self, release: str) -> Result:
        """What must be seen on a release that the row is for."""
        has_it = any(within(release, first, last) for first, last in self.violated)
        return Result.VIOLATED if has_it else Result.HELD

    def mismatch(self, release: str, seen: Result) -> str:
        """What is surprising about a verdict, empty when nothing is. One that decides nothing is no surprise."""
        expected = self.expected(release)
        if self.race or seen not in (Result.VIOLATED, Result.HELD) or seen is expected:
            return ""
        return f"{self.name} is {seen} on {release}, where it must be {expected}"


#: Every row, as the files of this package declare them.
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
    """Declare a row above its script; several of them share a script that depends on the generation only."""

    def declare(play: Play) -> Play:
        row = Reproduction(
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
        REPRODUCTIONS.append(row)
        return play

    return declare


def decide(
    case: CaseContext, what: str, observed: Mapping[str, Any], *, held: Mapping[str, Any], violated: Mapping[str, Any]
) -> None:
    """The claim of a row: what was observed is what is lawful. Where it is neither that nor the bug, nothing is said.

    Both name only what they depend on; the script keeps all that was observed.
    """
    is_lawful, is_bug = (all(observed[name] == value for name, value in each.items()) for each in (held, violated))
    seen = "the lawful answer" if is_lawful else "the bug" if is_bug else "neither"
    case.require(
        f"{what}: {dict(observed)} is the lawful answer or the bug",
        seen,
        ["the lawful answer", "the bug"],
        Relation.ONE_OF,
    )
    case.expect(what, dict(observed), {**observed, **held})
