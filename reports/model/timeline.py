"""What happened when, as values: the part of the model that charts, figures and traces are made from.

Every time is in seconds since the first entry of the scenario's history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Operations that completed in one time bin, by outcome."""

    at_s: float
    ok: int
    fail: int
    info: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A fault window; `healed_s` is None when it never healed, `confirmed_s` when it was not seen to take hold."""

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
    """High watermark − last stable offset in records, the worst partition at that time."""

    at_s: float
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One operation of a process.

    `ended_s` of one that never completed is when the process was next heard of; `told` is what its client may rely on.
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
    """One process from its start to its end, with what it did, in order."""

    process: int
    role: str
    began_s: float
    ended_s: float
    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a partition's leader stated; offsets are −1 when it did not answer, `leader` is below 0 when none was named."""

    at_s: float
    leader: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One partition over time; `topic` without the prefix that makes it unique to the scenario."""

    topic: str
    partition: int
    points: tuple[Point, ...]

    @property
    def place(self) -> str:
        """topic-partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def leaders(self) -> tuple[int, ...]:
        """The leaders one after the other, below 0 while the metadata named none."""
        seen: list[int] = []
        for point in self.points:
            if not seen or seen[-1] != point.leader:
                seen.append(point.leader)
        return tuple(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in which a transaction stood in one state of its coordinator, named as KIP-664 does."""

    state: str
    began_s: float
    ended_s: float

    @property
    def open(self) -> bool:
        """Whether nobody had asked for its end; else it was decided and not complete."""
        return self.state == "Ongoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinated:
    """What one transactional id had open, in order; its name is without the prefix of the scenario."""

    transactional_id: str
    stretches: tuple[Stretch, ...]

    @property
    def decided(self) -> int:
        """How many times an end was written down."""
        return sum(not each.open for each in self.stretches)

    @property
    def open_s(self) -> float:
        """The longest time that a transaction was open."""
        return _longest_s(each for each in self.stretches if each.open)

    @property
    def completing_s(self) -> float:
        """The longest time from the decision to the completion, in which markers are written."""
        return _longest_s(each for each in self.stretches if not each.open)


def _longest_s(stretches: Iterable[Stretch]) -> float:
    return max((each.ended_s - each.began_s for each in stretches), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """A leadership of a coordinator's partition, as far as it wrote; `broker` is None where nobody was asked."""

    leader_epoch: int
    broker: int | None
    began_s: float
    ended_s: float

    @property
    def who(self) -> str:
        """The broker, or which leadership it was."""
        return f"leadership {self.leader_epoch}" if self.broker is None else f"broker {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """A partition of the transaction log: who led it, and the run's transactional ids that belong to it."""

    partition: int
    reigns: tuple[Reign, ...]
    ids: tuple[Coordinated, ...]

    @property
    def leaders(self) -> str:
        """Who coordinated, one after the other."""
        return ", then ".join(each.who for each in self.reigns)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingLso:
    """A partition whose LSO did not reach its high watermark within the bound, and whether fencing released it."""

    place: str
    waited_s: float
    bound_s: float
    high_watermark: int
    last_stable_offset: int
    released: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Commit latencies: how many, and two quantiles in milliseconds, None of nothing."""

    count: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailability:
    """What one fault did to commits.

    `gap_began_s` to `gap_ended_s` is the longest time without a commit that overlaps the fault; `recovered_s` the time
    from the heal to the first commit after it, None when there was none or the fault never healed.
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
class Era:
    """Operations before, during or after the faults, by outcome."""

    name: str
    ok: int
    fail: int
    info: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What happened when; `bin_s` is the width of one bin, `began_us` the wall clock of its zero in microseconds."""

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
    standing: tuple[StandingLso, ...] = ()
    settled_s: float | None = None
    unavailability: tuple[Unavailability, ...] = ()
    periods: tuple[Era, ...] = ()
