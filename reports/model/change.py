"""The changes since a baseline, as values that every output format shows.

* `regressed`: a violation that the baseline did not have;
* `vanished`: a case that the baseline decided and this run does not have;
* `newly inconclusive`: a case that was decided and no longer is;
* `fixed`: a case that passes now and did not;
* `new`: a case that the baseline did not have;
* `no longer applicable`: the requirement does not apply to this subject, which is no loss of coverage.

Only `regressed` and `vanished` make the run a regression; an accepted violation does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reports.model.clock import moment


class ChangeKind(StrEnum):
    """How the result of a case changed, in the order of display."""

    REGRESSED = "regressed"
    VANISHED = "vanished"
    NEWLY_INCONCLUSIVE = "newly inconclusive"
    FIXED = "fixed"
    NEW = "new"
    NO_LONGER_APPLICABLE = "no longer applicable"


#: Results of a new case that need no attention.
_HARMLESS = frozenset({"PASS", "DETECTED", "NOT_APPLICABLE"})


class CaseKind(StrEnum):
    """The kind of a compared case."""

    SCENARIO = "scenario"
    REQUIREMENT = "requirement"
    CONTROL = "control"
    CASE = "case"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One case whose result changed.

    `before` and `now` are words of a verdict, empty where the case does not exist. `reason` is one sentence that
    explains it. `id` is a key of this run where the case exists, so that a page can link to it.
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
        """Whether it is new and harmless: the catalogue has grown, the behaviour did not change."""
        return self.kind is ChangeKind.NEW and self.now in _HARMLESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs that are compared."""

    release: str
    runtime: str
    started: str
    profile: str
    decision: str
    partial: str

    @property
    def title(self) -> str:
        """The run in half a line: release, runtime, profile, start, decision."""
        about = f"Kafka {self.release or 'of unknown release'}"
        parts = (self.runtime, f"profile {self.profile}" if self.profile else "", moment(self.started), self.decision)
        return about + "".join(f", {each}" for each in parts if each) + (" (partial)" if self.partial else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """All changes, the worst first, and the number of unchanged cases."""

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
        """The number of each kind; the first five are listed also when they are 0."""
        kinds = tuple(ChangeKind)
        shown = kinds if self.of(ChangeKind.NO_LONGER_APPLICABLE) else kinds[:-1]
        return tuple((kind, len(self.of(kind))) for kind in shown)

    @property
    def sentence(self) -> str:
        """The counts in one sentence."""
        return ", ".join(f"{count} {kind}" for kind, count in self.counts) + f", {self.unchanged} unchanged"
