"""The model of a trend: many runs in the order of their start, with their requirements, violations and flaky cases.

An output format of a trend reads a `Trend` and nothing else. Runs have numbers from 1 on, the oldest first. A run whose
start time cannot be parsed is before all others.

A case *decides* in a run when it passed or failed there with every seed. A violation is compared only between runs of
one release and profile, and only between runs in which its case decided: another run is silent about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reports.model.clock import moment
from verification.vocabulary.verdict import Decision, Verdict

#: Changes whenever a field of `trend.json` changes its meaning or goes away.
TREND_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRun:
    """One run. `source` is its file as it was given or found; `report` is the path of its page from the trend's directory.

    `report` is empty when there is no page, or when the run was given by an absolute path. `tried` counts scenarios and
    protocol cases with the verdict PASS, FAIL or INCONCLUSIVE, of `planned`. `tested` counts requirements with a verdict.
    `standing_risks` and `deviations` count known bugs that do not decide; None where older results do not say it.
    """

    number: int
    source: str
    report: str
    started: str
    release: str
    runtime: str
    clients: tuple[str, ...]
    seed: int | None
    profile: str
    decision: Decision
    partial: bool
    duration_s: float
    tried: int
    planned: int
    tested: int
    standing_risks: int | None
    deviations: int | None

    @property
    def title(self) -> str:
        """The run in half a line: number, start, release."""
        return f"#{self.number}, {moment(self.started) or 'start unknown'}, {self.release or 'release unknown'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementTrend:
    """A requirement that some run tested, with the verdict of each run in order; None is untested."""

    id: str
    verdicts: tuple[Verdict | None, ...]

    @property
    def worst(self) -> Verdict:
        """The worst verdict of all runs."""
        return Verdict.worst(each for each in self.verdicts if each is not None)


class ViolationState(StrEnum):
    """A violation in the last run, compared with the last earlier run of the release and profile, in order of display.

    * `new`: the last run shows it, and the last earlier run in which its case decided does not;
    * `still there`: both show it;
    * `no earlier run`: the last run shows it, and its case decided in no earlier run;
    * `not decided since`: an earlier run shows it, and its case has decided in no later run;
    * `gone`: an earlier run shows it, and a later run in which its case decided does not.
    """

    NEW = "new"
    STILL_THERE = "still there"
    NO_EARLIER_RUN = "no earlier run"
    NOT_DECIDED_SINCE = "not decided since"
    GONE = "gone"

    @property
    def is_in_last_run(self) -> bool:
        """Whether the last run of the release and profile shows it."""
        return self in (ViolationState.NEW, ViolationState.STILL_THERE, ViolationState.NO_EARLIER_RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationTrend:
    """One violation on one release in one profile.

    `found` is the anomaly in a scenario, or the requirements that a protocol case violates. `case` is the id of the
    scenario or case without its seed. `first_bad` and `last_bad` are numbers of runs; `gone_since` is the first run
    after the last bad one in which the case decided, None if there is none. `decided` counts the runs in which the case
    decided or the violation was found. `accepted` is that of the last bad run.
    """

    found: str
    known_bug: str
    case: str
    release: str
    profile: str
    state: ViolationState
    first_bad: int
    last_bad: int
    gone_since: int | None
    bad: int
    decided: int
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyCase:
    """A case with different results in runs that had the same release, runtime, client and seed.

    `results` are the words of the results with the number of runs, the most frequent first. `rate` is the share of
    runs whose result is not the most frequent one.
    """

    case: str
    release: str
    runtime: str
    client: str
    seed: int | None
    results: tuple[tuple[str, int], ...]

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(count for _, count in self.results)

    @property
    def rate(self) -> float:
        """The share of runs with another result than the most frequent one."""
        return 1 - self.results[0][1] / self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRun:
    """A file or directory that is not in the trend; `source` and `why` together are a sentence."""

    source: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The whole trend; there is at least one run."""

    runs: tuple[TrendRun, ...]
    requirements: tuple[RequirementTrend, ...]
    violations: tuple[ViolationTrend, ...]
    flaky: tuple[FlakyCase, ...]
    unread: tuple[UnreadRun, ...]

    @property
    def last(self) -> TrendRun:
        """The newest run."""
        return self.runs[-1]

    def count(self, decision: Decision) -> int:
        """How many runs ended with this decision."""
        return sum(each.decision is decision for each in self.runs)

    def in_state(self, state: ViolationState) -> int:
        """How many violations are in this state."""
        return sum(each.state is state for each in self.violations)

    @property
    def sentence(self) -> str:
        """The decisions and the violations in one sentence."""
        decisions = ", ".join(f"{self.count(each)} {each.value}" for each in Decision)
        states = ", ".join(f"{self.in_state(each)} {each.value}" for each in ViolationState if self.in_state(each))
        return f"Decisions: {decisions}. Violations: {states or 'none in any run'}."
