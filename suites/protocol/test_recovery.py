"""REC: the state of a broker after it stopped, crashed, lost files or was cut off, and of a new replica."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import THREE, needs, requirement, shares, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer, base_offset, plain
from runner.protocol.toolkit.timing import LONG_MS, ROLL_MS, SEGMENT_MS, now_ms
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.fetch import fetch_log
from wire.transaction_versions import TransactionVersion
from wire.values import Isolation, TopicPartition

#: More than the block of 1000 ids that a broker draws at once.
IDS_EACH = 1200


@dataclass(slots=True, kw_only=True)
class LeaderMemory:
    """A leader's state of one partition: the batches of an idempotent producer, and transactions of all kinds.

    Offsets 0 to 5 are six batches, 6 and 7 a committed transaction, 8 and 9 an aborted one, 10 an open one.
    """

    case: CaseContext
    at: TopicPartition
    producer: ScriptedProducer
    open_one: ScriptedProducer
    batches: list[bytes]
    producers: list[Mapping[str, Any]] = field(default_factory=list)
    views: list[Any] = field(default_factory=list)

    @classmethod
    def made(cls, case: CaseContext, at: TopicPartition, *, roll: bool = False) -> LeaderMemory:
        """Write all of it; `roll` begins a segment with the last of the six batches."""
        producer = ScriptedProducer(case, None).ready()
        batches = []
        for number in range(6):
            ahead_ms = ROLL_MS if roll and number == 5 else 0
            batches.append(producer.batch(at, [str(number)], sequence=number, timestamp_ms=now_ms() + ahead_ms))
            case.require_code(f"batch {number}", producer.send_batch(at, batches[number]))
        ended = ScriptedProducer(case, f"{case.name}-ended-{at}").ready()
        ended.writes(at, values=["committed"]).ends(commit=True)
        ended.writes(at, values=["aborted"]).ends(commit=False)
        open_one = ScriptedProducer(case, f"{case.name}-open-{at}", timeout_ms=LONG_MS).ready()
        open_one.writes(at, values=["open"])
        known = cls(case=case, at=at, producer=producer, open_one=open_one, batches=batches)
        known.producers, known.views = replicas.producers(case, at), known.seen()
        case.require("the last stable offset", case.inspect.stable(at), 10)
        return known

    def seen(self) -> list[Any]:
        """The aborted transactions that a reader under `read_committed` gets, from every offset on."""
        end = self.case.inspect.stable(self.at)
        return [list(_aborted(self.case, self.at, offset, end)) for offset in range(end)]

    def still(self, *, goes_on: bool = True) -> None:
        """Claim that the current leader has the whole state, and (if `goes_on`) that all producers can go on."""
        case, at = self.case, self.at
        case.expect(f"the producers of {at}", replicas.producers(case, at), self.producers)
        case.expect(f"the last stable offset of {at}", case.inspect.stable(at), 10)
        case.expect("the aborted transactions, from every offset", self.seen(), self.views)
        answer = case.answered(partial(self.producer.send_batch, at, self.batches[5]))
        case.expect_code(f"the last batch to {at} again", answer, Code.NONE)
        case.expect("its offset", base_offset(answer), 5)
        case.expect("the end of the log", case.inspect.end(at), 11)
        if goes_on:
            case.expect_code("the next batch", self.producer.produce(at, ["6"], sequence=6), Code.NONE)
            self.open_one.ends(commit=True)
            committed = [*map(str, range(6)), "committed", "open", "6"]
            case.expect("what a reader is given", case.inspect.committed(at), committed)


@requirement("REC-01")
@shares("stopped")
def test_a_clean_stop_forgets_nothing(case: CaseContext) -> None:
    """A broker writes snapshots when it rolls and when it stops, and knows everything after a clean restart."""
    (at,) = case.topic(segment_ms=SEGMENT_MS)
    broker = case.leader(at)
    known = LeaderMemory.made(case, at, roll=True)
    files = brokers.files(case, broker, at)
    case.expect("the snapshot of the roll", [each.name for each in brokers.snapshots(files)], [_snapshot(5)])
    with brokers.stopped(case, broker):
        case.expect("the newest snapshot", brokers.snapshots(files)[-1].name, _snapshot(11))
    known.still()


@requirement("REC-02", "REC-03")
@shares("crashed")
def test_a_killed_broker_rebuilds_what_it_knew(case: CaseContext) -> None:
    """A broker that was killed knows everything from its log, also where snapshots are missing or damaged."""
    untouched, missing, damaged = case.topic(partitions=3, segment_ms=SEGMENT_MS)
    broker = case.leader(missing)
    all_three = [LeaderMemory.made(case, at, roll=True) for at in (untouched, missing, damaged)]
    with brokers.crashed(case, broker):
        for path in _required(case, brokers.files(case, broker, missing)):
            path.unlink()
        for path in _required(case, brokers.files(case, broker, damaged)):
            _damage(path)
    for known in all_three:
        known.still()


@requirement("REC-02")
@shares("stopped")
def test_snapshots_lost_after_a_clean_stop_are_rebuilt(case: CaseContext) -> None:
    """A broker that was stopped cleanly, with damaged or missing snapshots, knows everything from its log."""
    damaged, missing = case.topic(partitions=2)
    broker = case.leader(missing)
    both = [LeaderMemory.made(case, at) for at in (damaged, missing)]
    with brokers.stopped(case, broker):
        for path in _required(case, brokers.files(case, broker, damaged)):
            _damage(path)
        for path in _required(case, brokers.files(case, broker, missing)):
            path.unlink()
    for known in both:
        known.still()


@requirement("REC-04")
@needs(THREE)
@shares("all crashed")
def test_all_replicas_crash_and_lose_nothing(case: CaseContext) -> None:
    """After all brokers were killed at once, every acknowledged record is at its offset, and transactions go on."""
    (at,) = case.topic()
    known = LeaderMemory.made(case, at)
    with brokers.crashed(case, *case.brokers):
        pass
    known.still()


@requirement("IDEMP-23", "REC-05")
@versions(TransactionVersion.TV1)
@needs(THREE)
@shares("isolated")
def test_truncated_batches_leave_no_trace(case: CaseContext) -> None:
    """A leader that was cut off forgets truncated batches: a retried batch is new, and the transaction is not open."""
    asked = brokers.controller(case)
    alone, other = (each for each in case.brokers if each != asked)
    here, there = replicas.placed(case, [alone, other, asked], [alone, other, asked])
    # It is the coordinator itself, so that it verifies a transaction without a link.
    name = replicas.coordinated(case, "own", by=alone)
    producer = ScriptedProducer(case, name, timeout_ms=LONG_MS).ready()
    case.set_up("the partition is added", lambda: producer.add(there))
    retried = ScriptedProducer(case, None).ready()
    case.require_code("a batch that all have", retried.produce(here, ["a"]))
    plain(case, there, "a")
    batch = retried.batch(here, ["x"])
    connection = case.open_connection(alone)
    with brokers.isolated(case, alone):
        case.require_code("a batch that it alone has", retried.send_batch(here, batch, connection=connection, Acks=1))
        lost = producer.batch(there, ["y"])
        case.require_code("a transaction of its own", producer.send_batch(there, lost, connection=connection, Acks=1))
        without_id = ScriptedProducer(case, None)
        for at in (here, there):
            successor = case.open_connection(brokers.elected(case, at, instead_of=alone))
            written = without_id.batch(at, ["b"], sequence=-1)
            answer = case.set_up(
                "a record by the next leader", partial(without_id.send_batch, at, written, connection=successor)
            )
            case.require("its offset", base_offset(answer), 1)
    for at in (here, there):
        replicas.lead(case, at, alone)
        case.expect(f"the log of {at}", case.inspect.values(at), ["a", "b"])
    case.expect("the transactions open", case.inspect.open_at(there), [])
    case.expect("the last stable offset", case.inspect.stable(there), 2)
    answer = case.answered(partial(retried.send_batch, here, batch))
    case.expect_code("the batch again", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 2)
    case.expect("the log", case.inspect.values(here), ["a", "b", "x"])
    producer.ends(commit=False)


@requirement("REC-06")
@needs(THREE)
@shares("stopped")
def test_a_replica_from_nothing_is_like_the_leader(case: CaseContext) -> None:
    """A replica whose files were deleted holds, when it leads, the records, producers and aborted list of the others."""
    wiped = brokers.spare(case)
    leader, other = (each for each in case.brokers if each != wiped)
    (at,) = replicas.placed(case, [leader, wiped, other])
    known = LeaderMemory.made(case, at)
    with brokers.stopped(case, wiped):
        shutil.rmtree(brokers.files(case, wiped, at))
    replicas.lead(case, at, wiped)
    known.still()


@requirement("REC-07")
@needs(THREE)
@shares("isolated")
def test_a_superseded_leader_acknowledges_nothing(case: CaseContext) -> None:
    """A leader that was cut off and replaced acknowledges no write to all replicas, and shows nothing of it."""
    asked = brokers.controller(case)
    alone, other = (each for each in case.brokers if each != asked)
    (at,) = replicas.placed(case, [alone, other, asked])
    producer = ScriptedProducer(case, None).ready()
    case.require_code("a batch that all have", producer.produce(at, ["a"]))
    old = case.open_connection(alone)
    with brokers.isolated(case, alone):
        successor = case.open_connection(brokers.elected(case, at, instead_of=alone))
        answer = producer.send_batch(at, producer.batch(at, ["x"]), connection=old, TimeoutMs=1000)
        refusals = (Code.REQUEST_TIMED_OUT, Code.NOT_LEADER_OR_FOLLOWER, Code.NOT_ENOUGH_REPLICAS)
        case.expect_code("a batch to the old leader", answer, *refusals)
        again = case.set_up("the next leader's", partial(_written, producer, at, "b", connection=successor))
        case.expect("its offset", base_offset(again), 1)
        body = {"ReplicaId": -1, "IsolationLevel": 0, "Topics": [{"Name": at.topic, "Partitions": [_latest(at)]}]}
        end = case.ask("ListOffsets", body, connection=old, version=4)["Topics"][0]["Partitions"][0]
        if end["ErrorCode"] == Code.NONE:
            case.expect("the end of what the old leader shows", end["Offset"], 1)
    replicas.lead(case, at, alone)
    case.expect("the log", case.inspect.values(at), ["a", "b"])


@requirement("REC-13", "IDEMP-01")
@needs(THREE)
@shares("controller crashed")
def test_a_failover_of_the_controller_repeats_no_id(case: CaseContext) -> None:
    """Producer ids that all brokers hand out before, during and after a failover of the controller are distinct."""
    asked = brokers.controller(case)
    left = [each for each in case.brokers if each != asked]
    ids = [*itertools.chain(*(_ids(case, each) for each in case.brokers))]
    with brokers.crashed(case, asked):
        ids += itertools.chain(*(_ids(case, each) for each in left))
    ids += itertools.chain(*(_ids(case, each) for each in case.brokers))
    case.expect("distinct ids", len(set(ids)), len(ids))


def _ids(case: CaseContext, broker: int) -> list[int]:
    """Get more ids from a broker than a block has; while it waits for a block, as during an election, it answers 14."""
    connection = case.open_connection(broker)
    request = case.request(
        "InitProducerId", {"TransactionalId": None, "TransactionTimeoutMs": 60_000}, connection=connection
    )
    found: list[int] = []

    def more() -> int:
        answers = case.send_many(request, connection=connection, count=300)
        found.extend(each["ProducerId"] for each in answers if each["ErrorCode"] == Code.NONE)
        return len(found)

    count = case.poll_until(more, lambda so_far: so_far >= IDS_EACH, within_s=brokers.ELECTED_WITHIN_S)
    case.require(f"ids from broker {broker}", count, IDS_EACH, Relation.AT_LEAST)
    return found


def _written(producer: ScriptedProducer, at: TopicPartition, value: str, **where: Any) -> Any:
    without_id = ScriptedProducer(producer.case, None)
    return without_id.produce(at, [value], sequence=-1, **where)


def _latest(at: TopicPartition) -> dict[str, int]:
    return {"PartitionIndex": at.partition, "CurrentLeaderEpoch": -1, "Timestamp": -1}


def _aborted(case: CaseContext, at: TopicPartition, start: int, end: int) -> Iterator[tuple[int, int]]:
    log = fetch_log(case.client, *at, start, end, isolation=Isolation.READ_COMMITTED)
    for _ in log:
        pass  # the list comes with the records
    yield from sorted(log.aborted)


def _snapshot(offset: int) -> str:
    return f"{offset:020d}.snapshot"


def _required(case: CaseContext, files: Path) -> list[Path]:
    found = brokers.snapshots(files)
    case.require(f"snapshots in {files.name}", len(found), 1, Relation.AT_LEAST)
    return found


def _damage(path: Path) -> None:
    """Change a byte that the checksum covers: the last one, in the last producer's entry."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
