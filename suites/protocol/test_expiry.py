"""EXP: the timeouts of transactions, and the expiry of ids that nobody uses."""

from __future__ import annotations

import time
from functools import partial

from runner.protocol.toolkit import brokers, replicas, settings
from runner.protocol.toolkit.case import BOTH, EXPIRING, THREE, generations, needs, requirement, shares
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.coordinators import set_log
from runner.protocol.toolkit.inspector import COMPLETE
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.timing import SOON_S, TIMEOUT_MS, expiry_can_be_seen, now_ms, short, timed_out
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import Generation
from wire.values import TopicPartition

#: transaction.abort.timed.out.transaction.cleanup.interval.ms of the harness, and five seconds for a busy machine.
CHECK_MS, BUSY_MS = 1000, 5000
#: producer.id.expiration.ms of brokers where things expire; and how long before others the one is idle that shows when
#: it has passed: most of it, so that what came later has as much left for a slow answer.
EXPIRE_AFTER_S, IDLE_BEFORE_S = int(EXPIRING.settings["producer.id.expiration.ms"]) / 1000, 1.2
#: transaction.max.timeout.ms, which the harness leaves alone.
MAX_TIMEOUT_MS = 900_000
#: A broker stops within 3 s, after which the commit must still be in time.
OUTLIVES_A_STOP_MS = 6000
#: Ids that expire together, in the three partitions of the log. A tombstone holds one, and a batch of tombstones of one
#: look, of which there are five a second, must be too large for the limit that the log is given.
MANY, LONG_NAME, BATCH_BYTES = 200, 200, 1024
PARTITIONS, LOOK_EVERY_S = 3, 0.2


def description(stage: Stage, producer: ScriptedProducer) -> Body:
    """The transaction as its coordinator describes it."""
    return stage.see.described(str(producer.transactional_id)) or {}


@requirement("EXP-01")
@generations(*BOTH)
def test_a_transaction_ends_after_its_timeout(stage: Stage) -> None:
    """An open transaction is aborted within its timeout and one check interval, not sooner, and readers go on."""
    places = stage.topic(partitions=2)
    producer = short(stage, "late").writes(*places)
    stage.require("the last stable offsets", [stage.see.stable(at) for at in places], [0, 0])
    begun_ms = description(stage, producer)["TransactionStartTimeMs"]
    stage.expect("the state", timed_out(stage, producer), "CompleteAbort")
    fenced = ("abort", producer.now.id, producer.now.epoch + 1)
    for at in places:
        # By the broker's own clock: whatever holds this process up is no delay of the broker's.
        marked_ms = [each.max_timestamp_ms - begun_ms for each in stage.see.batches(at) if each.control]
        stage.expect(f"milliseconds until the first marker in {at}", min(marked_ms), TIMEOUT_MS, Relation.AT_LEAST)
        latest_ms = TIMEOUT_MS + CHECK_MS + BUSY_MS
        stage.expect(f"milliseconds until the last marker in {at}", max(marked_ms), latest_ms, Relation.AT_MOST)
        stage.expect(f"the markers in {at}", stage.see.markers(at), [fenced])
        stage.expect(f"the last stable offset of {at}", stage.see.stable(at), 2)
        stage.expect(f"what a reader of {at} is given", stage.see.committed(at), [])


@requirement("EXP-02")
@generations(*BOTH)
def test_the_timeout_begins_with_the_first_addition(stage: Stage) -> None:
    """The start time is that of the first partition or offset; whoever has begun and sent nothing is not timed out."""
    (at,) = stage.topic()
    idle, by_record, by_offset = (short(stage, name) for name in ("idle", "record", "offset"))
    first = now_ms()
    by_record.writes(at)
    second = now_ms()
    if stage.generation is Generation.TV1:
        stage.set_up("offsets are added", lambda: by_offset.add_offsets(stage.name))
    else:
        stage.set_up("an offset is written", lambda: by_offset.commit_offsets(stage.name, {at: 1}))
    third = now_ms()
    for what, producer, earliest, latest in (
        ("record", by_record, first, second),
        ("offset", by_offset, second, third),
    ):
        told = description(stage, producer)["TransactionStartTimeMs"]
        stage.expect(f"the start time by {what}", told, earliest, Relation.AT_LEAST)
        stage.expect(f"the start time by {what}", told, latest, Relation.AT_MOST)
    for producer in (by_record, by_offset):
        stage.expect("the state of one that had sent something", timed_out(stage, producer), "CompleteAbort")
    found = description(stage, idle)
    observed = [found["TransactionState"], found["ProducerEpoch"], found["TransactionStartTimeMs"]]
    stage.expect("state, epoch and start of the one that had not", observed, ["Empty", idle.now.epoch, -1])
    idle.writes(at, values=["x"]).ends(commit=True)
    stage.expect("what a reader is given", stage.see.committed(at), ["x"])


@requirement("EXP-03")
@generations(Generation.TV1)
def test_after_a_timeout_the_owner_is_fenced(stage: Stage) -> None:
    """After a timeout every request of the owner is fenced, until it initialises again."""
    (at,) = stage.topic()
    producer = short(stage, "late").writes(at)
    stage.require("the state", timed_out(stage, producer), "CompleteAbort")
    stage.expect_code("a batch", producer.produce(at, ["b"]), Code.INVALID_PRODUCER_EPOCH)
    stage.expect_code("an addition", producer.add(at), Code.PRODUCER_FENCED)
    stage.expect_code("an addition of offsets", producer.add_offsets(stage.name), Code.PRODUCER_FENCED)
    for commit, word in ((True, "a commit"), (False, "an abort")):
        stage.expect_code(word, producer.end(commit=commit), Code.PRODUCER_FENCED)
    before = producer.now
    answer = producer.copy().init(continues=before)
    if stage.level >= 2 and stage.since("4.0.1"):
        # A cluster of TV2 continues where the timeout left it, whatever the client speaks.
        stage.expect_code("an initialisation that continues", answer, Code.NONE)
        stage.expect("its epoch", answer["ProducerEpoch"], before.epoch + 1)
    else:
        stage.expect_code("an initialisation that continues", answer, Code.PRODUCER_FENCED)
    again = producer.copy()
    stage.expect_code("an initialisation from nothing", again.init(), Code.NONE)
    stage.expect("its producer id", again.now.id, before.id)
    stage.expect("its epoch", again.now.epoch, before.epoch + 2, Relation.AT_LEAST)
    again.writes(at, values=["c"]).ends(commit=True)
    stage.expect("what a reader is given", stage.see.committed(at), ["c"])


@requirement("EXP-04")
def test_timeouts_have_a_maximum(stage: Stage) -> None:
    """An initialisation with a timeout above transaction.max.timeout.ms, or of nothing, is refused; nobody is fenced."""
    (at,) = stage.topic()
    owner = ScriptedProducer(stage, f"{stage.name}-owner", timeout_ms=MAX_TIMEOUT_MS)
    stage.set_up("the maximum itself", owner.init)
    owner.writes(at)
    for timeout_ms in (MAX_TIMEOUT_MS + 1, 0x7FFF_FFFF, 0, -1):
        answer = owner.copy().init(TransactionTimeoutMs=timeout_ms)
        stage.expect_code(f"a timeout of {timeout_ms} ms", answer, Code.INVALID_TRANSACTION_TIMEOUT)
    owner.ends(commit=True, claim=True)
    stage.expect("what a reader is given of the owner", stage.see.committed(at), ["a"])


@requirement("EXP-04")
def test_a_lower_maximum_is_for_those_to_come(stage: Stage) -> None:
    """A broker that comes back with a lower maximum refuses what is above it, and leaves an open transaction alone."""
    at, elsewhere = stage.topic(partitions=2)
    owner = ScriptedProducer(stage, f"{stage.name}-owner", timeout_ms=MAX_TIMEOUT_MS).ready().writes(at)
    broker = stage.coordinator(str(owner.transactional_id))
    with settings.restarted(stage, broker, "transaction.max.timeout.ms", str(TIMEOUT_MS)):
        newcomer = ScriptedProducer(stage, f"{stage.name}-newcomer")
        answer = stage.answered(partial(newcomer.init, TransactionTimeoutMs=TIMEOUT_MS + 1))
        stage.expect_code("a timeout above the lower maximum", answer, Code.INVALID_TRANSACTION_TIMEOUT)
        answer = stage.answered(partial(newcomer.init, TransactionTimeoutMs=TIMEOUT_MS))
        stage.expect_code("the lower maximum itself", answer, Code.NONE)
        # Its transaction begins later: with the lower maximum the open one would have timed out by then, too.
        newcomer.writes(elsewhere)
        stage.require("the state of the newcomer's transaction", timed_out(stage, newcomer), "CompleteAbort")
        found = description(stage, owner)
        told = [found["TransactionState"], found["TransactionTimeoutMs"]]
        stage.expect("the open transaction and its timeout", told, ["Ongoing", MAX_TIMEOUT_MS])
        stage.expect_code("its next batch", stage.answered(partial(owner.produce, at, ["b"])), Code.NONE)
        owner.ends(commit=True, claim=True)
    stage.expect("what a reader is given of its owner", stage.see.committed(at), ["a", "b"])


@requirement("EXP-05")
@needs(THREE)
@shares("stopped", hurried=True)
def test_a_decided_transaction_never_times_out(stage: Stage) -> None:
    """While the leader that needs a marker is away, a commit outlives its timeout, and it is one when the leader is back."""
    stays, away = brokers.controller(stage), brokers.spare(stage)
    (at,) = replicas.placed(stage, [away], min_insync_replicas="1")
    (elsewhere,) = replicas.placed(stage, [each for each in stage.brokers if each != away])
    decided, open_one = (
        ScriptedProducer(stage, replicas.coordinated(stage, name, by=stays), timeout_ms=OUTLIVES_A_STOP_MS).ready()
        for name in ("decided", "open")
    )
    decided.writes(at)
    open_one.writes(elsewhere)
    with brokers.stopped(stage, away):
        stage.require_code("the commit", decided.end(commit=True))
        stage.require("the state of one that was not decided", timed_out(stage, open_one), "CompleteAbort")
        stage.expect("the state", stage.see.state(str(decided.transactional_id)), "PrepareCommit")
    stage.expect("the state in the end", stage.see.completed(decided.transactional_id), "CompleteCommit")
    stage.expect("what a reader is given", stage.see.committed(at), ["a"])


@requirement("EXP-06")
@generations(*BOTH)
@needs(EXPIRING)
def test_an_idle_id_expires(stage: Stage) -> None:
    """An id that is Empty or Complete is forgotten when it is idle; its owner may begin again with a new producer id."""
    (at,) = stage.topic()
    ended = {"commit": True, "abort": False}
    owners = {word: ScriptedProducer(stage, f"{stage.name}-{word}").ready() for word in ended}
    for word, commit in ended.items():
        owners[word].writes(at).ends(commit=commit)
    owners["nothing"] = ScriptedProducer(stage, f"{stage.name}-nothing").ready()
    for word, owner in owners.items():
        look = partial(stage.see.state, str(owner.transactional_id))
        state = stage.until(look, lambda each: each is None, within_s=SOON_S)
        stage.expect(f"the state after {word}", state, None)
    for word, owner in owners.items():
        before = owner.now
        stage.expect_code(f"an addition after {word}", owner.add(at), Code.INVALID_PRODUCER_ID_MAPPING)
        for commit in (True, False):
            answer = owner.end(commit=commit)
            stage.expect_code(f"an end after {word}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
        answer = stage.set_up(f"a new beginning after {word}", partial(owner.init, continues=before))
        stage.expect(f"the epoch after {word}", owner.now.epoch, 0)
        stage.expect(f"the producer id after {word}", owner.now.id, before.id, Relation.DIFFERS)


@requirement("EXP-07")
@generations(*BOTH)
@needs(EXPIRING)
def test_an_open_transaction_keeps_its_id(stage: Stage) -> None:
    """An id with an open transaction does not expire while idle ones do, and its owner decides the transaction."""
    (at,) = stage.topic()
    owner = ScriptedProducer(stage, f"{stage.name}-open").ready().writes(at)
    idle = ScriptedProducer(stage, f"{stage.name}-idle").ready()
    look = partial(stage.see.state, str(idle.transactional_id))
    stage.require("the state of an idle id", stage.until(look, lambda each: each is None, within_s=SOON_S), None)
    stage.expect("the state of the open one", stage.see.state(str(owner.transactional_id)), "Ongoing")
    stage.expect_code("its commit", owner.end(commit=True), Code.NONE)
    state = stage.until(partial(stage.see.state, str(owner.transactional_id)), COMPLETE.__contains__, within_s=SOON_S)
    stage.expect("its state then", state, "CompleteCommit")
    stage.expect("what a reader is given", stage.see.committed(at), ["a"])


@requirement("EXP-08")
@generations(*BOTH)
@needs(EXPIRING)
def test_an_idle_producer_expires_on_a_partition(stage: Stage) -> None:
    """A leader forgets a producer without an open transaction, and none with one, however long that has been idle."""
    (at,) = stage.topic()
    owner = ScriptedProducer(stage, f"{stage.name}-open").ready().writes(at)
    idle = ScriptedProducer(stage, None).ready()
    stage.require_code("a batch", idle.produce(at, ["b"]))
    known = stage.until(lambda: replicas.remembered(stage, idle, at), lambda each: not each, within_s=SOON_S)
    stage.expect("the idle producer is known", known, False)
    stage.expect("the producers with a transaction open", stage.see.open_at(at), [owner.now.id])
    stage.expect("the last stable offset", stage.see.stable(at), 0)
    owner.ends(commit=True)
    stage.expect("what a reader is given", stage.see.committed(at), ["a", "b"])


@requirement("EXP-08")
@needs(EXPIRING)
def test_old_timestamps_do_not_hasten_expiry(stage: Stage) -> None:
    """A producer that writes records with old timestamps, a copier for instance, is known as long as any other."""
    expiry_can_be_seen(stage)
    (at,) = stage.topic()
    idle, witness, copier = (ScriptedProducer(stage, None).ready() for _ in range(3))
    stage.require_code("a batch of one that is idle from then on", idle.produce(at, ["before"]))
    idle_since = time.monotonic()
    stage.until(lambda: time.monotonic() - idle_since, lambda each: each >= IDLE_BEFORE_S, within_s=EXPIRE_AFTER_S)
    began = time.monotonic()
    stage.require_code("a batch of now", witness.produce(at, ["a"]))
    batch = copier.batch(at, ["b"], timestamp_ms=now_ms() - 86_400_000)
    stage.require_code("a batch of yesterday", copier.send_batch(at, batch))
    stage.require("the idle producer is known", replicas.remembered(stage, idle, at), True)
    # What forgets it is a look at all producers of the partition, the two others among them.
    gone = stage.until(lambda: not replicas.remembered(stage, idle, at), bool, within_s=EXPIRE_AFTER_S)
    stage.require("the idle producer was forgotten", gone, True)
    known = [replicas.remembered(stage, each, at) for each in (witness, copier)]
    answer = copier.send_batch(at, batch)
    took = round(time.monotonic() - began, 2)
    stage.require("seconds that the two were idle at most", took, EXPIRE_AFTER_S, Relation.AT_MOST)
    stage.expect("the two producers are known", known, [True, True])
    stage.expect_code("the batch of yesterday, again", answer, Code.NONE)
    stage.expect("the log", stage.see.values(at), ["before", "a", "b"])


@requirement("EXP-09")
@needs(EXPIRING)
def test_many_ids_expire_at_once(stage: Stage) -> None:
    """Ids that expire together are all removed, although their tombstones fit into no single batch."""
    if not stage.since("3.0.0"):
        raise NotApplicableError("ids are counted by ListTransactions, which begins with 3.0")
    ScriptedProducer(stage, f"{stage.name}-first").ready()
    set_log(stage, {"max.message.bytes": str(BATCH_BYTES)})
    try:
        names = [f"{stage.name}-{number:03}-{'x' * LONG_NAME}" for number in range(MANY)]
        broker = stage.coordinator(names[0])
        began = time.monotonic()
        stage.require("ids that the broker took", _take(stage, broker, names), MANY)
        # They expire in the order and at the pace in which they were taken.
        looks = max(1.0, (time.monotonic() - began) / LOOK_EVERY_S)
        together = int(MANY * LONG_NAME / looks / PARTITIONS)
        stage.require("bytes of ids that a look finds expired in a partition", together, BATCH_BYTES, Relation.AT_LEAST)
        left = stage.until(lambda: _left(stage), lambda each: each == 0, within_s=SOON_S)
        stage.expect("ids that are left", left, 0)
        described = stage.ask("DescribeTransactions", {"TransactionalIds": names}, broker=broker)
        codes = sorted({each["ErrorCode"] for each in described["TransactionStates"]})
        stage.expect("their codes", codes, [int(Code.TRANSACTIONAL_ID_NOT_FOUND)])
    finally:
        set_log(stage, {"max.message.bytes": None})


@requirement("EXP-10")
@generations(*BOTH)
@needs(EXPIRING)
def test_a_pending_offset_keeps_the_one_before(stage: Stage) -> None:
    """A committed offset does not expire while a transaction holds another one for the group; a group's without does."""
    (at,) = stage.topic()
    held, free = f"{stage.name}-held", f"{stage.name}-free"
    producer = ScriptedProducer(stage, f"{stage.name}-owner").ready()
    for group in (held, free):
        stage.set_up(f"an offset of {group} that may expire after a second", partial(_brief, stage, group, at))
    if stage.generation is Generation.TV1:
        stage.set_up("the group is added", lambda: producer.add_offsets(held))
    stage.set_up("an offset is pending", lambda: producer.commit_offsets(held, {at: 7}))
    gone = stage.until(lambda: stage.see.offset(free, at), lambda each: each == -1, within_s=SOON_S)
    stage.require("the offset of the group without a transaction", gone, -1)
    stage.expect("the offset of the group with one", stage.see.offset(held, at), 5)
    producer.ends(commit=True)
    stage.expect("its offset after the commit", stage.see.offset(held, at), 7)


def _take(stage: Stage, broker: int, names: list[str]) -> int:
    """Initialise the ids, all at a time; how many of them the broker took in three rounds (it draws ids meanwhile)."""
    line, left = stage.another_line(broker), list(names)
    for _ in range(3):
        bodies = [{"TransactionalId": name, "TransactionTimeoutMs": TIMEOUT_MS} for name in left]
        sent = [stage.send(stage.request("InitProducerId", body, line=line), line=line) for body in bodies]
        codes = [each.receive().code for each in sent]
        left = [name for name, code in zip(left, codes, strict=True) if code == Code.COORDINATOR_LOAD_IN_PROGRESS]
        if set(codes) - {Code.NONE, Code.COORDINATOR_LOAD_IN_PROGRESS} or not left:
            break
    return len(names) - len(left)


def _left(stage: Stage) -> int:
    return sum(name.startswith(f"{stage.name}-") for name in stage.client.list_transactions())


def _brief(stage: Stage, group: str, at: TopicPartition) -> Answer:
    """OffsetCommit v4, the last one that says how long an offset is kept."""
    partition = {"PartitionIndex": at.partition, "CommittedOffset": 5, "CommittedMetadata": ""}
    topics = [{"Name": at.topic, "Partitions": [partition]}]
    body = {"GroupId": group, "MemberId": "", "RetentionTimeMs": 1000, "Topics": topics}
    return stage.ask("OffsetCommit", body, broker=stage.group_coordinator(group), version=4)
