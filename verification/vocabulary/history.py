"""The history of one run: the operations of all clients with the answers to them, and the faults.

Its file format: `verification.evidence.history_file`. A transaction is *one* operation, however many records it has.
Every time is CLOCK_MONOTONIC of one host in nanoseconds.

An operation completes as Jepsen's operations do: `ok` it happened, `fail` it did not, `info` it is not known yet. A
history never guesses. An operation whose process died is `info`. It is aborted when its commit had not been invoked,
because no other process ever asks for that commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from verification.vocabulary.strict_json import Float64, Int64

#: Instead of a broker id: the metadata says that the partition has no leader; no broker answered for the metadata.
NO_LEADER = -1
UNSEEN = -2
#: Behind the name of the group, instead of a topic: the count that a pipeline keeps of the records that came to it.
DELIVERIES = "-deliveries"
#: The metric that says whether a source answers, 1 or 0.
UP = "up"
#: How the proof of a fault says, after the name of a partition, that it has no leader; commits are counted by it.
LEADERLESS = "has no leader"
#: Stands for the code of a library that has none for fencing: its driver says `fenced`.
FENCED_WITHOUT_CODE = -1001
#: Answers that mean "a newer instance owns this transactional id": INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, and the
#: code and name that librdkafka has for both.
FENCING_CODES = frozenset({47, 90, -144, FENCED_WITHOUT_CODE})
FENCING_NAMES = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "_FENCED"})


class Outcome(StrEnum):
    """How an operation completed."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(StrEnum):
    """The kind of an operation."""

    INIT = "init"
    TRANSACTION = "transaction"
    APPEND = "append"
    COPY = "copy"


class Intent(StrEnum):
    """How the process means to end a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class Told(StrEnum):
    """The outcome of a transaction as the client was told; `unknown` must turn out all or nothing."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRange:
    """Input offsets [first, end) that a copy consumed from one partition."""

    topic: str
    partition: Int64
    first: Int64
    end: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of one process and how it completed.

    `decided_ns` is when commit or abort was invoked, None when the process never got there. `stage` is the last
    step that was begun (init, poll, begin, produce, offsets, commit, abort, done). `fatal`: after this error the client
    instance can never go on.
    """

    process: Int64
    operation: Int64
    action: Action
    outcome: Outcome
    stage: str
    invoked_ns: Int64
    decided_ns: Int64 | None = None
    completed_ns: Int64 | None = None
    intent: Intent | None = None
    transactional_id: str | None = None
    records: Int64 = 0
    error_code: Int64 | None = None
    error_name: str | None = None
    error_reason: str | None = None
    fatal: bool = False
    producer_id: Int64 | None = None
    producer_epoch: Int64 | None = None
    inputs: tuple[InputRange, ...] = ()

    @property
    def told(self) -> Told:
        """The outcome that the client may rely on once the operation is over.

        A transaction whose abort was requested is aborted, whatever the answer: no commit was ever requested. The same
        holds for a transaction that ended, or whose process died, before commit was invoked.
        """
        if self.intent is not Intent.COMMIT or self.outcome is Outcome.FAIL or self.decided_ns is None:
            return Told.ABORTED
        return Told.COMMITTED if self.outcome is Outcome.OK else Told.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """One client process: a program instance from its start to its end.

    `library` names its library with the version, in workloads whose clients are of several. `given_up_since_ns` is that of a
    process which got no successor, because those before it had ended by themselves as well: when the fifth from the end of
    them was started.
    """

    process: Int64
    role: str
    client: str
    site: str
    started_ns: Int64
    ended_ns: Int64
    end: str
    reason: str = ""
    transactional_id: str | None = None
    group: str | None = None
    library: str | None = None
    given_up_since_ns: Int64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNode:
    """A node that did not come back after a step had started it, or with `had_joined` one that ended by itself later.

    `before` is the release that ran on its data before, `release` the one that was started; of a node that had joined, both
    are its release. It was given up at `at_ns`; `exit_status` is that of its process then, negative for a signal, None while
    it ran. `log` has its last lines of this start.
    """

    node: Int64
    before: str
    release: str
    at_ns: Int64
    log: str
    exit_status: Int64 | None = None
    had_joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """One step of the schedule: its times, its target, and the proof that it took hold.

    The fault was applied between `struck_ns`, which older evidence lacks, and `applied_ns`. A fault whose `confirmed_ns`
    is None was not seen to take hold: surviving it proves nothing. One with an `error` could not be applied or healed.
    `processes` are the clients that it struck directly. `partitions` (such as `orders-0`, with the whole name of the
    topic) are those whose leader or replicas were the target, if any.

    A step of an upgrade belongs to a `stage`. `releases` names the release that nodes (by id, as text) were given:
    they are down from `struck_ns` on and run it at `confirmed_ns`. `levels` are the feature levels that it made final.
    An operation is over, and counts as healed, once it is confirmed: both times are equal. `held` are producers that the
    schedule let wait inside a transaction, from before the step until it was confirmed. `lost` is the node that ended the
    schedule, if one did. `met` counts records of an open transaction of an instance of a pipeline that was killed or paused;
    None where nothing shows that.
    """

    step: Int64
    fault: str
    description: str
    target: str
    began_ns: Int64
    struck_ns: Int64 | None = None
    applied_ns: Int64 | None = None
    confirmed_ns: Int64 | None = None
    proof: str | None = None
    healed_ns: Int64 | None = None
    error: str | None = None
    processes: tuple[Int64, ...] = ()
    partitions: tuple[str, ...] = ()
    stage: str = ""
    releases: dict[str, str] = field(default_factory=dict)
    levels: dict[str, Int64] = field(default_factory=dict)
    held: tuple[Int64, ...] = ()
    lost: LostNode | None = None
    met: Int64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase of the experiment, for the timeline and for error messages."""

    name: str
    began_ns: Int64
    ended_ns: Int64
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """High watermark and last stable offset of a partition as its leader stated them; −1 when it did not answer.

    `leader` is from the brokers' metadata, `NO_LEADER` or `UNSEEN` where those name none. Older evidence has
    `NO_LEADER` also for leaders that did not answer.
    """

    at_ns: Int64
    topic: str
    partition: Int64
    leader: Int64
    high_watermark: Int64
    last_stable_offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric as a broker or a client stated it, recorded when it differs from the last time.

    `source` is `broker 1` or `client 3`. `name` is the one that operators see, and `of` is a part of the source: a
    partition such as `orders-0`, or a request with its error, such as `EndTxn NOT_COORDINATOR`. Counts begin with the
    process. A source that no longer answers has the metric `up` with 0, as in Prometheus: its other values are old.
    """

    at_ns: Int64
    source: str
    name: str
    value: Float64
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Whether a partition's LSO reached its high watermark within the bound, and whether only fencing did it."""

    topic: str
    partition: Int64
    bound_s: Float64
    waited_s: Float64
    high_watermark: Int64
    last_stable_offset: Int64
    before_fencing: bool


Entry = Operation | ProcessRecord | FaultRecord | Phase | Sample | Metric | Settled
TAGS: dict[str, type[Any]] = {
    "operation": Operation,
    "process": ProcessRecord,
    "fault": FaultRecord,
    "phase": Phase,
    "sample": Sample,
    "metric": Metric,
    "settled": Settled,
}
Chosen = TypeVar("Chosen")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All entries of one run, in the order in which they were recorded."""

    run: str
    wall_clock_anchor: str
    anchor_ns: Int64
    entries: tuple[Entry, ...]

    def of(self, entry_type: type[Chosen]) -> tuple[Chosen, ...]:
        """The entries of one type, in order."""
        return tuple(entry for entry in self.entries if isinstance(entry, entry_type))
