"""The timeline of a scenario as values, from which charts, availability figures and traces are made.

Every time is in seconds since the first entry of the scenario's history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: The name of the period with the operations that no floor counts.
NO_WORK = "no work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Operations that completed in one time bin, by outcome."""

    at_s: float
    ok: int
    fail: int
    info: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A fault window; `healed_s` is None when it never healed, `confirmed_s` when nothing proved its effect."""

    step: int
    label: str
    began_s: float
    confirmed_s: float | None
    healed_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWindow:
    """A phase of the experiment."""

    name: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The LSO lag in records: high watermark − last stable offset of the worst partition at that time."""

    at_s: float
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One operation of a process.

    An operation that never completed ends (`ended_s`) at the next sign of its process. `told` is the answer to the
    client.
    """

    operation: int
    action: str
    outcome: str
    began_s: float
    decided_s: float | None
    ended_s: float
    told: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One process from its start to its end, with its operations in order."""

    process: int
    role: str
    began_s: float
    ended_s: float
    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A sample of a partition; offsets are −1 when its leader did not answer, `leader` is below 0 without a leader."""

    at_s: float
    leader: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The samples of one partition; `topic` has no run prefix."""

    topic: str
    partition: int
    points: tuple[Point, ...]

    @property
    def place(self) -> str:
        """topic-partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def leaders(self) -> tuple[int, ...]:
        """The leaders one after the other, below 0 without a leader."""
        seen: list[int] = []
        for point in self.points:
            if not seen or seen[-1] != point.leader:
                seen.append(point.leader)
        return tuple(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpan:
    """A time span in which a transaction had one state at its coordinator, named as in KIP-664."""

    state: str
    began_s: float
    ended_s: float

    @property
    def open(self) -> bool:
        """Whether no commit or abort was decided yet; else it was decided and not complete."""
        return self.state == "Ongoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalIdStates:
    """The unfinished states of one transactional id, in order; its name has no run prefix."""

    transactional_id: str
    spans: tuple[StateSpan, ...]

    @property
    def decided(self) -> int:
        """The number of commits and aborts in the log."""
        return sum(not each.open for each in self.spans)

    @property
    def open_s(self) -> float:
        """The longest time that a transaction was open."""
        return _longest_s(each for each in self.spans if each.open)

    @property
    def completing_s(self) -> float:
        """The longest time from a decision to its completion; meanwhile markers are written."""
        return _longest_s(each for each in self.spans if not each.open)


def _longest_s(spans: Iterable[StateSpan]) -> float:
    return max((each.ended_s - each.began_s for each in spans), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """One leadership of a transaction log partition, from its first to its last write; `broker` is None if unknown."""

    leader_epoch: int
    broker: int | None
    began_s: float
    ended_s: float

    @property
    def leader(self) -> str:
        """The broker, or the leader epoch where the broker is unknown."""
        return f"leader epoch {self.leader_epoch}" if self.broker is None else f"broker {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """A partition of the transaction log: its leaders, and the transactional ids of the run in it."""

    partition: int
    leaderships: tuple[Leadership, ...]
    ids: tuple[TransactionalIdStates, ...]

    @property
    def leaders(self) -> str:
        """The leaders, one after the other."""
        return ", then ".join(each.leader for each in self.leaderships)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckLso:
    """A partition whose LSO did not reach its high watermark within the bound; `released` if fencing released it."""

    place: str
    waited_s: float
    bound_s: float
    high_watermark: int
    last_stable_offset: int
    released: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Commit latencies: their number and two quantiles in milliseconds, None without commits."""

    count: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailability:
    """The effect of one fault on commits.

    `gap_began_s` to `gap_ended_s` is the longest time without a commit that overlaps the fault. `recovered_s` is the
    time from the heal to the first commit after it, None when there was none or the fault never healed.
    """

    step: int
    label: str
    gap_began_s: float
    gap_ended_s: float
    recovered_s: float | None
    before: Latency
    during: Latency
    after: Latency

    @property
    def gap_s(self) -> float:
        """The longest gap in seconds."""
        return self.gap_ended_s - self.gap_began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Operations before, during, between or after the faults, by outcome; the last period has those that are no work.

    `acknowledged` of them wrote records, and their clients were told that these are in force.
    """

    name: str
    ok: int
    fail: int
    info: int
    acknowledged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredAlert:
    """An alert on metrics that would have fired, from its first to its last firing; `ended_s` is None if it never ended.

    `text` is its condition, `place` where it fired, `shows` are the anomalies that it can reveal. `values` has its metric
    over time (seconds, value), the sum of all sources; each value holds until the next one. `to_the_end` names the parts
    where it never ended, empty where it ended on all. `before_faults` says that it fired before the first fault already.
    `note` explains a firing whose name misleads.
    """

    name: str
    text: str
    place: str
    shows: tuple[str, ...]
    began_s: float
    ended_s: float | None
    values: tuple[tuple[float, float], ...] = ()
    to_the_end: str = ""
    before_faults: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The timeline of one scenario; `bin_s` is the width of a bin, `began_us` the wall clock of its zero in µs.

    `alerts` is None where no metrics were sampled.
    """

    bin_s: float
    end_s: float
    bins: tuple[Bin, ...]
    windows: tuple[Window, ...]
    phases: tuple[PhaseWindow, ...]
    lags: tuple[Lag, ...]
    began_us: int = 0
    lanes: tuple[Lane, ...] = ()
    curves: tuple[Curve, ...] = ()
    coordinators: tuple[Coordinator, ...] = ()
    stuck_lsos: tuple[StuckLso, ...] = ()
    settled_s: float | None = None
    unavailability: tuple[Unavailability, ...] = ()
    periods: tuple[Period, ...] = ()
    alerts: tuple[FiredAlert, ...] | None = None
