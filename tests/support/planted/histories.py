"""Planted histories: evidence of a small imagined Kafka, honest until a test tampers with it.

A `Planted` run is told what clients do, step by step, and keeps the log that a correct cluster would have kept. `finish`
derives what correct readers would have been given. Every kind of evidence is then a list of rows that a test may change,
and that can be judged as it is (in memory) or written as a run directory (`tests.support.planted.files`).

Times are made of one clock that moves by a millisecond with everything that happens, so no two are equal.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from verification.evidence.columns import IDENTITY
from verification.evidence.row_types import Row, Rows
from verification.evidence.rows import identity_row, operation_rows
from verification.evidence.transaction_log_rows import TIMEOUT_S
from verification.vocabulary.experiment import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    Experiment,
    ExperimentTopic,
    IsolationLevel,
    Observer,
)
from verification.vocabulary.history import Action, Entry, Intent, Operation, Outcome
from verification.vocabulary.identity import Identity, RecordKind

MS = 1_000_000
SIZE = 120
Partition = tuple[int, int]
BOTH = (
    Observer(name="careful", isolation=IsolationLevel.COMMITTED),
    Observer(name="eager", isolation=IsolationLevel.UNCOMMITTED),
)


def valued(value: bytes | None) -> Row:
    """The columns that a reader derives from a record's value; `_value` is kept for writing observations."""
    nothing: Row = dict.fromkeys(IDENTITY)
    return {**nothing, **identity_row(value), "digest": zlib.crc32(value or b""), "_value": value}


@dataclass(slots=True)
class Client:
    """One client instance; a successor of a transactional id has the same producer id and a higher epoch."""

    process: int
    transactional_id: str | None
    producer_id: int
    epoch: int
    operations: int = 0


@dataclass(slots=True)
class Planted:
    """One run in the making; see the module's docstring."""

    run: str = "planted"
    topics: tuple[ExperimentTopic, ...] = (
        ExperimentTopic(name="a", partitions=2, replication=3, min_in_sync=2),
        ExperimentTopic(name="b", partitions=2, replication=3, min_in_sync=2),
    )
    observers: tuple[Observer, ...] = BOTH
    order_claimed: bool = True
    survival_claimed: bool = False
    fan_out: int | None = None
    at_least_once: bool = False
    pipeline: int | None = None
    has_log: bool = True
    now: int = 1_000 * MS
    log: dict[Partition, list[Row]] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    acks: list[Row] = field(default_factory=list)
    sent: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    numbered: Counter[tuple[Partition, int, int]] = field(default_factory=Counter)
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        for topic_index, topic in enumerate(self.topics):
            for partition in range(topic.partitions):
                self.log.setdefault((topic_index, partition), [])

    def tick(self) -> int:
        """The next moment."""
        self.now += MS
        return self.now

    def client(self, transactional_id: str | None = None, *, idempotent: bool = True) -> Client:
        """A new instance; of a known transactional id it is the successor, and the last one is superseded."""
        named = [each for each in self.clients if each.transactional_id is not None]
        before = [each for each in named if each.transactional_id == transactional_id]
        producer_id = before[-1].producer_id if before else 1_000 + len(self.clients)
        made = Client(
            process=len(self.clients),
            transactional_id=transactional_id,
            producer_id=producer_id if idempotent else -1,
            epoch=before[-1].epoch + 1 if before else 0,
        )
        self.clients.append(made)
        if transactional_id is not None:
            self._record(made, Action.INIT, Outcome.OK, stage="done")
        return made

    def write(self, client: Client, operation: int, places: Sequence[Partition], **over: Any) -> list[Row]:
        """Append the records of an operation to the log, one per place; returns their rows.

        `over` may give `kind` and `sources` ((partition, offset) per record).
        """
        kind, sources = over.get("kind", RecordKind.TRANSACTION), over.get("sources")
        rows = []
        for index, (topic_index, partition) in enumerate(places):
            here = (client.process, topic_index, partition)
            source = sources[index] if sources else (-1, -1)
            identity = Identity(
                run=self.run,
                process=client.process,
                operation=operation,
                kind=kind,
                index=index,
                count=len(places),
                topic_index=topic_index,
                intended_partition=partition,
                send_order=self.sent[here],
                source_partition=source[0],
                source_offset=source[1],
            )
            self.sent[here] += 1
            rows.append(
                self.append(client, (topic_index, partition), identity.encode(SIZE), kind is RecordKind.TRANSACTION)
            )
        return rows

    def append(self, client: Client, place: Partition, value: bytes | None, transactional: bool) -> Row:
        """One record at the end of a partition; without a value it is a tombstone."""
        return self._append(client, place, {"control": None, "transactional": transactional, **valued(value)})

    def mark(self, client: Client, place: Partition, decision: str) -> Row:
        """A control record at the end of a partition."""
        nothing = {"valid": None, "digest": None, "identity_digest": None}
        return self._append(client, place, {"control": decision, "transactional": True, **nothing})

    def _append(self, client: Client, place: Partition, columns: Row) -> Row:
        row = {
            "run": self.run,
            "topic": self.topics[place[0]].name,
            "topic_index": place[0],
            "partition": place[1],
            "offset": len(self.log[place]),
            "timestamp_ms": self.tick() // MS,
            "producer_id": client.producer_id,
            "producer_epoch": client.epoch,
            "sequence": self._number(client, place, columns),
            "leader_epoch": 0,
            **columns,
        }
        self.log[place].append(row)
        return row

    def _number(self, client: Client, place: Partition, columns: Row) -> int:
        """The sequence that a producer gives its next record in a partition: every epoch begins with 0."""
        if client.producer_id < 0 or columns["control"] is not None:
            return -1
        key = (place, client.producer_id, client.epoch)
        self.numbered[key] += 1
        return self.numbered[key] - 1

    def acknowledge(self, rows: Iterable[Row], outcome: Outcome = Outcome.OK) -> None:
        """What the client was told about records."""
        names = ("run", "process", "operation", "index", "topic_index", "partition", "offset")
        for row in rows:
            told = {name: row[name] for name in names} | {"outcome": str(outcome)}
            self.acks.append(told if outcome is Outcome.OK else {**told, "offset": -1})

    def _record(self, client: Client, action: Action, outcome: Outcome, **values: Any) -> Operation:
        made = Operation(
            process=client.process,
            operation=client.operations,
            action=action,
            outcome=outcome,
            invoked_ns=values.pop("invoked_ns", None) or self.tick(),
            completed_ns=values.pop("completed_ns", None) or self.tick(),
            transactional_id=client.transactional_id,
            **values,
        )
        client.operations += 1
        self.operations.append(made)
        return made

    def transaction(
        self,
        client: Client,
        places: Sequence[Partition],
        *,
        intent: Intent = Intent.COMMIT,
        outcome: Outcome = Outcome.OK,
        decision: str | None = "commit",
        action: Action = Action.TRANSACTION,
        **over: Any,
    ) -> tuple[Operation, list[Row]]:
        """A whole transaction: records, acks, decision, markers (`decision` None writes none)."""
        invoked = self.tick()
        rows = self.write(client, client.operations, places, **over)
        self.acknowledge(rows)
        decided = self.tick()
        if decision is not None:
            for place in dict.fromkeys(places):
                self.mark(client, place, decision)
        made = self._record(
            client,
            action,
            outcome,
            stage="done" if outcome is Outcome.OK else str(intent),
            invoked_ns=invoked,
            decided_ns=decided,
            intent=intent,
            records=len(places),
            inputs=over.get("inputs", ()),
        )
        return made, rows

    def plain(
        self,
        client: Client,
        places: Sequence[Partition],
        *,
        outcome: Outcome = Outcome.OK,
        action: Action = Action.APPEND,
        **over: Any,
    ) -> tuple[Operation, list[Row]]:
        """An append (or a copy of a control copier): records that stand for themselves."""
        rows = self.write(client, client.operations, places, kind=RecordKind.PLAIN, **over)
        self.acknowledge(rows, outcome)
        made = self._record(client, action, outcome, stage="done", records=len(places), inputs=over.get("inputs", ()))
        return made, rows

    def finish(self) -> Plant:
        """End the run: what correct readers are given, and what a correct cluster says about itself."""
        return plant(self)


@dataclass(slots=True)
class Plant:
    """All evidence of one run; `rows` may be tampered with, by frame name (`verification.sources.schema`)."""

    experiment: Experiment
    operations: list[Operation]
    entries: list[Entry]
    rows: Rows

    def at(self, frame: str, topic_index: int, partition: int, offset: int) -> Row:
        """The first row of a frame at a place."""
        return next(row for row in self.rows[frame] if _place(row) == (topic_index, partition, offset))

    def drop(self, frame: str, topic_index: int, partition: int, offset: int) -> None:
        """Remove every row of a frame at a place."""
        self.rows[frame] = [row for row in self.rows[frame] if _place(row) != (topic_index, partition, offset)]

    def retell(self, operation: Operation, **changes: Any) -> None:
        """Change what the history says about an operation."""
        number = self.operations.index(operation)
        self.operations[number] = replace(operation, **changes)
        self.rows["operations"] = operation_rows(self.experiment.run, self.operations)


def _place(row: Row) -> tuple[int, int, int]:
    return (row["topic_index"], row["partition"], row["offset"])


def _outcomes(log: Sequence[Row]) -> dict[int, str]:
    """Offset → outcome of every data record of one partition; forwards, unlike the judges."""
    outcomes: dict[int, str] = {}
    pending: dict[int, list[int]] = {}
    for row in log:
        if row["control"] is not None:
            outcomes |= dict.fromkeys(pending.pop(row["producer_id"], []), str(row["control"]))
        elif row["transactional"]:
            pending.setdefault(row["producer_id"], []).append(row["offset"])
        else:
            outcomes[row["offset"]] = "commit"
    return outcomes | {offset: "open" for offsets in pending.values() for offset in offsets}


def _stable(log: Sequence[Row], outcomes: dict[int, str]) -> int:
    return min((offset for offset, outcome in outcomes.items() if outcome == "open"), default=len(log))


def _delivered(row: Row) -> Row:
    left_out = ("producer_id", "producer_epoch", "sequence", "leader_epoch", "control", "transactional")
    return {name: value for name, value in row.items() if name not in left_out}


def plant(planted: Planted) -> Plant:
    """What correct readers are given of a run, and the rows of all its evidence."""
    found: Rows = {"log": [], "uncommitted": [], "committed": [], "ends": []}
    for (topic_index, partition), log in planted.log.items():
        outcomes = _outcomes(log)
        stable = _stable(log, outcomes)
        data = [row for row in log if row["control"] is None]
        visible = [row for row in data if outcomes[row["offset"]] == "commit" and row["offset"] < stable]
        found["log"] += [dict(row) for row in log]
        found["uncommitted"] += [_delivered(row) for row in data]
        found["committed"] += [_delivered(row) for row in visible]
        end = {"start": 0, "high_watermark": len(log), "last_stable_offset": stable}
        found["ends"].append({"run": planted.run, "topic_index": topic_index, "partition": partition, **end})
    observers = [
        {
            "run": planted.run,
            "observer_index": index,
            "observer": each.name,
            "committed_reader": each.isolation is IsolationLevel.COMMITTED,
        }
        for index, each in enumerate(planted.observers)
    ]
    names = ("has_log", "order_claimed", "survival_claimed", "fan_out", "at_least_once")
    kept = {name: getattr(planted, name) for name in names}
    rows: Rows = {
        **found,
        "runs": [{"run": planted.run, **kept, "transaction_timeout_ns": round(TIMEOUT_S * 1_000) * MS}],
        "observers": observers,
        "operations": operation_rows(planted.run, planted.operations),
        "acks": list(planted.acks),
        "observations": [row for observer in observers for row in observed(planted, observer, found)],
        "settled": [],
        "open_producers": [],
        "coordinator_states": [],
        "group_offsets": [],
    }
    if not planted.has_log:
        rows |= {"log": [], "uncommitted": []}
    return Plant(experiment=_experiment(planted), operations=planted.operations, entries=planted.entries, rows=rows)


def observed(planted: Planted, observer: Row, found: Rows) -> list[Row]:
    """What a live observer was given, one poll per partition, at the end of the run."""
    source = found["committed" if observer["committed_reader"] else "uncommitted"]
    polls: dict[Partition, int] = {}
    rows: list[Row] = []
    for row in source:
        poll = polls.setdefault((row["topic_index"], row["partition"]), len(polls))
        rows.append(
            {
                **{name: value for name, value in row.items() if name not in ("topic", "timestamp_ms", "digest")},
                "observer_index": observer["observer_index"],
                "committed_reader": observer["committed_reader"],
                "poll": poll,
                "position": len(rows),
                "received_ns": planted.tick(),
            }
        )
    return rows


def _experiment(planted: Planted) -> Experiment:
    return Experiment(
        run=planted.run,
        scenario=f"planted/{planted.run}",
        claim="What was planted is found, and nothing else.",
        requirements=("TXN-25",),
        seed=1,
        started="2026-11-21T09:00:00Z",
        release="4.3.1",
        runtime="local",
        client="confluent",
        topics=planted.topics,
        observers=planted.observers,
        order_claimed=planted.order_claimed,
        survival_claimed=planted.survival_claimed,
        group=None if planted.fan_out is None else "copiers",
        fan_out=planted.fan_out,
        pipeline=planted.pipeline,
        semantics=AT_LEAST_ONCE if planted.at_least_once else EXACTLY_ONCE,
        has_log=planted.has_log,
    )
