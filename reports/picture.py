"""What happened when, as values: the part of the model that charts, figures and traces are made from.

Every time is in seconds since the first entry of the scenario's history.
"""

from __future__ import annotations

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
class Standing:
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
    standing: tuple[Standing, ...] = ()
    settled_s: float | None = None
    unavailability: tuple[Unavailability, ...] = ()
    eras: tuple[Era, ...] = ()
