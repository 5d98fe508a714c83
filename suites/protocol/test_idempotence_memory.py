"""IDEMP: how long a leader's state of a producer lasts: outages, deletions, compaction, moves and expiry."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from runner.protocol.toolkit import brokers, replicas, settings
from runner.protocol.toolkit.case import EXPIRING, HASTY, THREE, alone, needs, requirement, shares
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer, base_offset, idempotent
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.timing import ROLL_MS, SEGMENT_MS, SOON_S, expiry_can_be_seen, now_ms
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.errors import BrokerError
from wire.records import encode

EXPIRY, HOUR_MS = "producer.id.expiration.ms", "3600000"


@requirement("IDEMP-16")
@needs(THREE)
def test_too_few_replicas_cost_no_copy(case: CaseContext) -> None:
    """A batch that too few replicas took, or that was refused for that, is in the log once after it is sent again."""
    asked = brokers.controller(case)
    leader, away = (each for each in case.brokers if each != asked)
    (at,) = replicas.placed(case, [leader, asked, away], min_insync_replicas="3")
    producer = ScriptedProducer(case, None).ready()
    case.require_code("a batch", producer.produce(at, ["a"]))
    first, second = producer.batch(at, ["b"], sequence=1), producer.batch(at, ["c"], sequence=2)
    with brokers.paused(case, away):
        connection = case.connection(leader)
        # Before 3.7 the wait ends with the in-sync set of three, and must not time out before that on a busy machine.
        body = producer.produce_body({at: first}) | {"TimeoutMs": case.by_release({"2.4.0": 25_000, "3.7.0": 8000})}
        sent = case.send(case.request("Produce", body, connection=connection), connection=connection)
        answer = case.poll_until(sent.receive, lambda each: each.body is not None, within_s=30)
        # From 3.7 on the high watermark does not move while too few are in sync (KAFKA-15583), so that the wait times out.
        told = {"2.4.0": Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "3.7.0": Code.REQUEST_TIMED_OUT}
        case.expect_code("the batch that was appended", answer, case.by_release(told))
        left = case.poll_until(partial(replicas.in_sync, case, at), lambda seen: away not in seen, within_s=SOON_S)
        case.require("the replicas in sync", left, sorted((leader, asked)))
        answer = producer.send_batch(at, second)
        case.expect_code("the one after it", answer, Code.NOT_ENOUGH_REPLICAS)
    for number, batch in enumerate((first, second), start=1):
        # The set is whole once it is written. The leader gets it a moment later, and refuses batches until then.
        answer = case.poll_until(partial(producer.send_batch, at, batch), _taken, within_s=SOON_S)
        case.expect_code(f"batch {number} again", answer, Code.NONE)
        case.expect(f"the offset of batch {number}", base_offset(answer), number)
    case.expect("the log", case.inspect.values(at), ["a", "b", "c"])


def _taken(answer: Response) -> bool:
    return answer.code != Code.NOT_ENOUGH_REPLICAS


@requirement("IDEMP-18")
@needs(THREE)
@shares("crashed")
def test_the_next_leader_remembers(case: CaseContext) -> None:
    """A leader that takes over, by plan or after a SIGKILL, recognises batches that its predecessor appended."""
    second = brokers.spare(case)
    first, third = (each for each in case.brokers if each != second)
    (at,) = replicas.placed(case, [first, second, third])
    producer = ScriptedProducer(case, None).ready()
    batch = producer.batch(at, ["a"])
    case.require_code("a batch", producer.send_batch(at, batch))
    replicas.lead(case, at, second)
    answer = producer.send_batch(at, batch)
    case.expect_code("the batch again, after the leadership moved", answer, Code.NONE)
    case.expect("its offset then", base_offset(answer), 0)
    with brokers.crashed(case, second):
        successor = brokers.elected(case, at, instead_of=second)
        answer = case.answered(partial(producer.send_batch, at, batch))
        case.expect_code("the batch again, after the leader was killed", answer, Code.NONE)
        case.expect("its offset after the kill", base_offset(answer), 0)
        case.expect("the log", case.inspect.values(at), ["a"])
    for broker in {first, second, third} - {successor}:
        replicas.lead(case, at, broker)
        case.expect(f"the log of broker {broker}", case.inspect.values(at), ["a"])


@requirement("IDEMP-19")
@shares("stopped")
def test_a_clean_restart_keeps_five_batches(case: CaseContext) -> None:
    """After a clean restart each of the last five batches is still recognised."""
    five_are_recognised_after(case, brokers.stopped)


@requirement("IDEMP-20")
@shares("crashed")
def test_a_killed_broker_knows_recent_batches(case: CaseContext) -> None:
    """After a SIGKILL each of the last five batches, all of them in the log, is recognised."""
    five_are_recognised_after(case, brokers.crashed)


def five_are_recognised_after(
    case: CaseContext, outage: Callable[[CaseContext, int], AbstractContextManager[None]]
) -> None:
    """Claim that a broker recognises the last five batches after an outage, and goes on."""
    producer, at = idempotent(case)
    batches = [producer.batch(at, [str(number)], sequence=number) for number in range(6)]
    for number, batch in enumerate(batches):
        case.require_code(f"batch {number}", producer.send_batch(at, batch))
    with outage(case, case.leader(at)):
        pass
    for number in range(5, 0, -1):
        answer = case.answered(partial(producer.send_batch, at, batches[number]))
        case.expect_code(f"batch {number} again", answer, Code.NONE)
        case.expect(f"the offset of batch {number}", base_offset(answer), number)
    case.expect_code("the next batch", producer.produce(at, ["6"], sequence=6), Code.NONE)
    case.expect("the log", case.inspect.values(at), [str(number) for number in range(7)])


@requirement("IDEMP-21")
def test_memory_outlives_the_records(case: CaseContext) -> None:
    """When all records are deleted, rolled segments included, the last batch is still known and the next one taken."""
    (at,) = case.topic(segment_ms=SEGMENT_MS)
    producer = ScriptedProducer(case, None).ready()
    case.require_code("a batch", producer.produce(at, ["a"]))
    last = producer.batch(at, ["b"], timestamp_ms=now_ms() + ROLL_MS)
    case.require_code("one in the next segment", producer.send_batch(at, last))
    # -1 means the high watermark.
    places = [{"Name": at.topic, "Partitions": [{"PartitionIndex": at.partition, "Offset": -1}]}]
    answer = case.ask("DeleteRecords", {"Topics": places, "TimeoutMs": 10_000}, broker=case.leader(at))
    case.require_code("the deletion of all records", answer)
    case.require("start and end of the log", [case.inspect.start(at), case.inspect.end(at)], [2, 2])
    answer = producer.send_batch(at, last)
    case.expect_code("the last batch again", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 1)
    answer = producer.produce(at, ["c"], sequence=2)
    case.expect_code("the next batch", answer, Code.NONE)
    case.expect("its offset, at the end", base_offset(answer), 2)
    case.expect("the log", case.inspect.values(at), ["c"])


@requirement("IDEMP-22")
@needs(HASTY)
@shares("crashed")
def test_compaction_leaves_enough_to_recognise(case: CaseContext) -> None:
    """A producer whose last record was compacted away is still recognised by a broker that knows only the log."""
    (at,) = case.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.0", segment_ms=SEGMENT_MS)
    broker = case.leader(at)
    producer = ScriptedProducer(case, None).ready()
    batch = _keyed("k", "old", producer_id=producer.now.id, producer_epoch=producer.now.epoch, base_sequence=0)
    case.require_code("a batch", producer.send_batch(at, batch))
    for what in (_keyed("k", "new"), _keyed("other", "rolls", timestamp_ms=now_ms() + ROLL_MS)):
        case.require_code("a record that supersedes it, and one that rolls", producer.send_batch(at, what))
    left = case.poll_until(lambda: case.inspect.values(at), lambda each: "old" not in each, within_s=SOON_S)
    case.require("the log after compaction", left, ["new", "rolls"])
    first = case.inspect.batches(at)[0]
    kept = (first.producer_id, first.producer_epoch, first.base_sequence + first.last_offset_delta, first.count)
    case.expect("what is left of the batch: id, epoch, last sequence, records", kept, (producer.now.id, 0, 0, 0))
    with brokers.crashed(case, broker):
        # The state must come from the log. Without this it would come from a snapshot, also after a clean stop.
        for snapshot in brokers.snapshots(brokers.files(case, broker, at)):
            snapshot.unlink()
    answer = producer.send_batch(at, batch)
    case.expect_code("the batch again", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 0)
    case.expect("the log", case.inspect.values(at), ["new", "rolls"])


# Its batch must be sent again within the two seconds before the producer expires.
@alone
@requirement("IDEMP-24")
@needs(EXPIRING)
def test_memory_ends_when_a_producer_is_idle(case: CaseContext) -> None:
    """A batch is recognised until its producer expires, and appended a second time when it is sent again after that."""
    expiry_can_be_seen(case)
    producer, at = idempotent(case)
    case.require_code("a batch", producer.produce(at, ["a"]))
    began = time.monotonic()
    batch = producer.batch(at, ["b"])
    case.require_code("another one", producer.send_batch(at, batch))
    answer = producer.send_batch(at, batch)
    case.require("seconds so far, of 2 until it expires", round(time.monotonic() - began, 2), 2.0, Relation.AT_MOST)
    case.expect_code("it again, at once", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 1)
    known = case.poll_until(lambda: replicas.remembered(case, producer, at), lambda each: not each, within_s=SOON_S)
    case.require("the producer is known", known, False)
    answer = producer.send_batch(at, batch)
    case.expect_code("it again, later", answer, Code.NONE)
    case.expect("the offset of the second copy", base_offset(answer), 2)
    case.expect("the log", case.inspect.values(at), ["a", "b", "b"])


@requirement("IDEMP-25")
@needs(EXPIRING)
def test_expiry_can_be_changed_while_running(case: CaseContext) -> None:
    """A change of producer.id.expiration.ms is in force at once and after a restart, and so is its removal."""
    with settings.changed(case, EXPIRY, HOUR_MS, back=EXPIRING.settings[EXPIRY]):
        producer, at = idempotent(case)
        case.require_code("a batch", producer.produce(at, ["a"]))
        witness = ScriptedProducer(case, f"{case.name}-witness").ready()
        state = case.poll_until(
            lambda: case.inspect.state(f"{case.name}-witness"), lambda each: each is None, within_s=SOON_S
        )
        case.require("the state of an id that expires with it otherwise", state, None)
        case.expect("the idle producer is known", replicas.remembered(case, producer, at), True)
        with brokers.stopped(case, case.leader(at)):
            pass
        case.expect("it is known after a restart", replicas.remembered(case, producer, at), True)
        later = ScriptedProducer(case, None).ready()
        case.require_code("a batch of another producer", later.produce(at, ["b"]))
        witness.ready()
        state = case.poll_until(
            lambda: case.inspect.state(f"{case.name}-witness"), lambda each: each is None, within_s=SOON_S
        )
        case.require("the state of the other id, once more", state, None)
        case.expect("the other producer is known", replicas.remembered(case, later, at), True)
    known = case.poll_until(lambda: replicas.remembered(case, later, at), lambda each: not each, within_s=SOON_S)
    case.expect("it is known after the change was withdrawn", known, False)


@requirement("IDEMP-26")
def test_a_new_topic_knows_nothing_of_the_old(case: CaseContext) -> None:
    """A batch is never taken for a duplicate of one in a deleted topic of the same name."""
    producer, at = idempotent(case)
    case.require_code("a batch", producer.produce(at, ["a"]))
    batch = producer.batch(at, ["b"])
    case.require_code("another one", producer.send_batch(at, batch))
    replicas.deleted(case, at.topic)
    # With ZooKeeper a topic is gone from Metadata before its name is free.
    created = case.poll_until(partial(_created, case, at.topic), bool, within_s=SOON_S)
    case.require("a topic of the same name is created", created, True)
    case.require("the end of the new log", case.inspect.end(at), 0)
    answer = producer.send_batch(at, batch)
    # Up to 4.4 an unknown producer may begin at any sequence (KIP-360); later releases want 0 on an unwritten partition.
    if case.since("4.5.0"):
        case.expect_code("the last batch again", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
        case.expect("the log", case.inspect.values(at), [])
    else:
        case.expect_code("the last batch again", answer, Code.NONE)
        case.expect("its offset in the new log", base_offset(answer), 0)
        case.expect("the log", case.inspect.values(at), ["b"])


def _created(case: CaseContext, topic: str) -> bool:
    try:
        case.client.create_topics({topic: 1})
    except BrokerError as error:
        if error.error is not Code.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


@requirement("IDEMP-27")
@needs(THREE)
def test_a_new_replica_knows_the_batches_before_it(case: CaseContext) -> None:
    """A broker that gets a partition by reassignment recognises each of the last five batches, and goes on."""
    here, there, _ = case.brokers
    (at,) = replicas.placed(case, [here], min_insync_replicas="1")
    producer = ScriptedProducer(case, None).ready()
    batches = []
    for number in range(6):
        batches.append(producer.batch(at, [str(number)], sequence=number))
        case.require_code(f"batch {number}", producer.send_batch(at, batches[number]))
    replicas.put(case, at, there)
    case.require("the leader", case.leader(at), there)
    for number in range(1, 6):
        answer = case.answered(partial(producer.send_batch, at, batches[number]))
        case.expect_code(f"batch {number} again", answer, Code.NONE)
        case.expect(f"the offset of batch {number}", base_offset(answer), number)
    case.expect_code("the next batch", producer.produce(at, ["6"], sequence=6), Code.NONE)
    case.expect("the log", case.inspect.values(at), [str(number) for number in range(7)])


def _keyed(key: str, value: str, **fields: int) -> bytes:
    return encode([(key.encode(), value.encode())], **fields)  # type: ignore[arg-type]
