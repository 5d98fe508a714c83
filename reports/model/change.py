"""What changed since a baseline: the values that every face shows.

Five kinds, and a sixth that only explains: `regressed` is a violation that the baseline did not have, `vanished` a case
that the baseline decided and this run does not even have, `newly inconclusive` a case that was decided and no longer
is, `fixed` one that now passes and did not, `new` one that the baseline knew nothing about. `no longer applicable` is
what a subject itself says: the sentence does not speak about it; that is no loss of coverage.

Only `regressed` and `vanished` make the run a regression, and a violation that was accepted beforehand does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reports.model.clock import moment


class ChangeKind(StrEnum):
    """What became of a case; the order is the order of reading."""

    REGRESSED = "regressed"
    VANISHED = "vanished"
    NEWLY_INCONCLUSIVE = "newly inconclusive"
    FIXED = "fixed"
    NEW = "new"
    NO_LONGER_APPLICABLE = "no longer applicable"


#: What a case may be now without anybody having to look at it.
_NOTHING_AGAINST = frozenset({"PASS", "DETECTED", "NOT_APPLICABLE"})


class CaseKind(StrEnum):
    """What a case is."""

    SCENARIO = "scenario"
    REQUIREMENT = "requirement"
    CONTROL = "control"
    CASE = "case"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One case that is not what it was.

    `before` and `now` are words of a verdict, empty where the case does not exist; `reason` is one sentence of the
    side that explains it; `id` is a key of this run where there is one, so that a page can link to it.
    """

    kind: ChangeKind
    case: CaseKind
    id: str
    before: str
    now: str
    reason: str
    accepted: bool = False

    @property
    def is_regression(self) -> bool:
        """Whether it makes the run a regression."""
        return self.kind in (ChangeKind.REGRESSED, ChangeKind.VANISHED) and not self.accepted

    @property
    def is_quiet(self) -> bool:
        """Whether it is new and says nothing against the subject: a longer catalogue, not another behaviour."""
        return self.kind is ChangeKind.NEW and self.now in _NOTHING_AGAINST


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared, as it names itself."""

    release: str
    runtime: str
    started: str
    profile: str
    decision: str
    partial: str

    @property
    def title(self) -> str:
        """The side in half a line."""
        about = f"Kafka {self.release or 'of unknown release'}"
        parts = (self.runtime, f"profile {self.profile}" if self.profile else "", moment(self.started), self.decision)
        return about + "".join(f", {each}" for each in parts if each) + (" (partial)" if self.partial else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that changed, the worst first, and how many cases are what they were."""

    baseline: Side
    current: Side
    changes: tuple[Change, ...]
    unchanged: int

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The changes that count."""
        return tuple(each for each in self.changes if each.is_regression)

    def of(self, kind: ChangeKind) -> tuple[Change, ...]:
        """The changes of one kind, in order."""
        return tuple(each for each in self.changes if each.kind is kind)

    @property
    def counts(self) -> tuple[tuple[ChangeKind, int], ...]:
        """How many of each kind; the first five are named even when there is none."""
        kinds = tuple(ChangeKind)
        shown = kinds if self.of(ChangeKind.NO_LONGER_APPLICABLE) else kinds[:-1]
        return tuple((kind, len(self.of(kind))) for kind in shown)

    @property
    def sentence(self) -> str:
        """The counts in one sentence."""
        return ", ".join(f"{count} {kind}" for kind, count in self.counts) + f", {self.unchanged} unchanged"
