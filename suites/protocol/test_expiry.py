"""EXP: the timeouts of transactions, and the expiry of idle transactional ids, producers and offsets."""

from __future__ import annotations

import time
from functools import partial

from chaos.frames import FrameFilter, Hold
from runner.protocol.toolkit import brokers, replicas, settings
from runner.protocol.toolkit.case import BOTH, EXPIRING, THREE, alone, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.coordinators import set_log
from runner.protocol.toolkit.inspector import COMPLETE
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.tampering import tampered, to
from runner.protocol.toolkit.timing import SOON_S, TIMEOUT_MS, expiry_can_be_seen, now_ms, short, timed_out
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: transaction.abort.timed.out.transaction.cleanup.interval.ms of the harness, and five seconds for a busy machine.
CHECK_MS, BUSY_MS = 1000, 5000
#: producer.id.expiration.ms of brokers with short expiries. One producer becomes idle this much earlier than the others, and
#: its expiry shows that the time has passed. It is most of the time, so that the others have as much left for slow answers.
EXPIRE_AFTER_S, IDLE_BEFORE_S = int(EXPIRING.settings["producer.id.expiration.ms"]) / 1000, 1.2
#: transaction.max.timeout.ms, which the harness leaves alone.
MAX_TIMEOUT_MS = 900_000
#: A broker stops within 3 s, after which the commit must still be in time, also on a busy machine.
OUTLIVES_A_STOP_MS = 6000
#: Ids that expire together, in the three partitions of the log. A tombstone holds one, and a batch of tombstones of one
#: look, of which there are five a second, must be too large for the limit that the log is given.
MANY, LONG_NAME, BATCH_BYTES = 200, 200, 1024
PARTITIONS, LOOK_EVERY_S = 3, 0.2


def description(case: CaseContext, producer: ScriptedProducer) -> Body:
    """The transaction as its coordinator describes it."""
    return case.inspect.described(str(producer.transactional_id)) or {}


# Claims that the markers are not later than some seconds.
@alone
@requirement("EXP-01")
@versions(*BOTH)
def test_a_transaction_ends_after_its_timeout(case: CaseContext) -> None:
    """An open transaction is aborted within its timeout and one check interval, not sooner, and readers go on."""
    places = case.topic(partitions=2)
    producer = short(case, "late").writes(*places)
    case.require("the last stable offsets", [case.inspect.stable(at) for at in places], [0, 0])
    begun_ms = description(case, producer)["TransactionStartTimeMs"]
    case.expect("the state", timed_out(case, producer), "CompleteAbort")
    fenced = ("abort", producer.now.id, producer.now.epoch + 1)
    for at in places:
        # By the broker's own clock, so that a delay of this process does not count.
        marked_ms = [each.max_timestamp_ms - begun_ms for each in case.inspect.batches(at) if each.control]
        case.expect(f"milliseconds until the first marker in {at}", min(marked_ms), TIMEOUT_MS, Relation.AT_LEAST)
        latest_ms = TIMEOUT_MS + CHECK_MS + BUSY_MS
        case.expect(f"milliseconds until the last marker in {at}", max(marked_ms), latest_ms, Relation.AT_MOST)
        case.expect(f"the markers in {at}", case.inspect.markers(at), [fenced])
        case.expect(f"the last stable offset of {at}", case.inspect.stable(at), 2)
        case.expect(f"what a reader of {at} is given", case.inspect.committed(at), [])


# Its transactions must be described within the second before they time out.
@alone
@requirement("EXP-02")
@versions(*BOTH)
def test_the_timeout_begins_with_the_first_addition(case: CaseContext) -> None:
    """A transaction starts with its first partition or offset; a producer that has added none is not timed out."""
    (at,) = case.topic()
    idle, by_record, by_offset = (short(case, name) for name in ("idle", "record", "offset"))
    first = now_ms()
    by_record.writes(at)
    second = now_ms()
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("offsets are added", lambda: by_offset.add_offsets(case.name))
    else:
        case.set_up("an offset is written", lambda: by_offset.commit_offsets(case.name, {at: 1}))
    third = now_ms()
    for what, producer, earliest, latest in (
        ("record", by_record, first, second),
        ("offset", by_offset, second, third),
    ):
        told = description(case, producer)["TransactionStartTimeMs"]
        case.expect(f"the start time by {what}", told, earliest, Relation.AT_LEAST)
        case.expect(f"the start time by {what}", told, latest, Relation.AT_MOST)
    for producer in (by_record, by_offset):
        case.expect("the state of one that had sent something", timed_out(case, producer), "CompleteAbort")
    found = description(case, idle)
    observed = [found["TransactionState"], found["ProducerEpoch"], found["TransactionStartTimeMs"]]
    case.expect("state, epoch and start of the one that had not", observed, ["Empty", idle.now.epoch, -1])
    idle.writes(at, values=["x"]).ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["x"])


@requirement("EXP-03")
@versions(TransactionVersion.TV1)
def test_after_a_timeout_the_owner_is_fenced(case: CaseContext) -> None:
    """After a timeout every request of the owner is fenced, until it initialises again."""
    (at,) = case.topic()
    producer = short(case, "late").writes(at)
    case.require("the state", timed_out(case, producer), "CompleteAbort")
    case.expect_code("a batch", producer.produce(at, ["b"]), Code.INVALID_PRODUCER_EPOCH)
    case.expect_code("an addition", producer.add(at), Code.PRODUCER_FENCED)
    case.expect_code("an addition of offsets", producer.add_offsets(case.name), Code.PRODUCER_FENCED)
    for commit, word in ((True, "a commit"), (False, "an abort")):
        case.expect_code(word, producer.end(commit=commit), Code.PRODUCER_FENCED)
    before = producer.now
    answer = producer.copy().init(continues=before)
    if case.level >= 2 and case.since("4.0.1"):
        # At level 2 the epoch goes on from that of the timeout, for clients of both transaction versions.
        case.expect_code("an initialisation that continues", answer, Code.NONE)
        case.expect("its epoch", answer["ProducerEpoch"], before.epoch + 1)
    else:
        case.expect_code("an initialisation that continues", answer, Code.PRODUCER_FENCED)
    again = producer.copy()
    case.expect_code("an initialisation from nothing", again.init(), Code.NONE)
    case.expect("its producer id", again.now.id, before.id)
    case.expect("its epoch", again.now.epoch, before.epoch + 2, Relation.AT_LEAST)
    again.writes(at, values=["c"]).ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["c"])


@requirement("EXP-04")
def test_timeouts_have_a_maximum(case: CaseContext) -> None:
    """A timeout above transaction.max.timeout.ms, or below 1 ms, is refused at initialisation and fences no instance."""
    (at,) = case.topic()
    owner = ScriptedProducer(case, f"{case.name}-owner", timeout_ms=MAX_TIMEOUT_MS)
    case.set_up("the maximum itself", owner.init)
    owner.writes(at)
    for timeout_ms in (MAX_TIMEOUT_MS + 1, 0x7FFF_FFFF, 0, -1):
        answer = owner.copy().init(TransactionTimeoutMs=timeout_ms)
        case.expect_code(f"a timeout of {timeout_ms} ms", answer, Code.INVALID_TRANSACTION_TIMEOUT)
    owner.ends(commit=True, claim=True)
    case.expect("what a reader is given of the owner", case.inspect.committed(at), ["a"])


@requirement("EXP-04")
def test_a_lower_maximum_is_for_those_to_come(case: CaseContext) -> None:
    """A broker that restarts with a lower maximum refuses longer timeouts, and does not change an open transaction."""
    at, elsewhere = case.topic(partitions=2)
    owner = ScriptedProducer(case, f"{case.name}-owner", timeout_ms=MAX_TIMEOUT_MS).ready().writes(at)
    broker = case.coordinator(str(owner.transactional_id))
    with settings.restarted(case, broker, "transaction.max.timeout.ms", str(TIMEOUT_MS)):
        newcomer = ScriptedProducer(case, f"{case.name}-newcomer")
        answer = case.answered(partial(newcomer.init, TransactionTimeoutMs=TIMEOUT_MS + 1))
        case.expect_code("a timeout above the lower maximum", answer, Code.INVALID_TRANSACTION_TIMEOUT)
        answer = case.answered(partial(newcomer.init, TransactionTimeoutMs=TIMEOUT_MS))
        case.expect_code("the lower maximum itself", answer, Code.NONE)
        # Its transaction begins later: with the lower maximum the open one would have timed out by then, too.
        newcomer.writes(elsewhere)
        case.require("the state of the newcomer's transaction", timed_out(case, newcomer), "CompleteAbort")
        found = description(case, owner)
        told = [found["TransactionState"], found["TransactionTimeoutMs"]]
        case.expect("the open transaction and its timeout", told, ["Ongoing", MAX_TIMEOUT_MS])
        case.expect_code("its next batch", case.answered(partial(owner.produce, at, ["b"])), Code.NONE)
        owner.ends(commit=True, claim=True)
    case.expect("what a reader is given of its owner", case.inspect.committed(at), ["a", "b"])


@requirement("EXP-05")
@needs(THREE)
def test_a_decided_transaction_never_times_out(case: CaseContext) -> None:
    """While its marker is held up for longer than the timeout, a commit stays decided; it completes afterwards."""
    far, near, coordinator = case.brokers
    slow, fast = replicas.placed(case, [far, near, coordinator], [near, far, coordinator])
    decided, open_one = (
        ScriptedProducer(case, replicas.coordinated(case, name, by=coordinator), timeout_ms=OUTLIVES_A_STOP_MS)
        for name in ("decided", "open")
    )
    decided.ready().writes(slow)
    open_one.ready().writes(fast)
    links = to(coordinator, far)
    with tampered(case, FrameFilter(api="WriteTxnMarkers", producer_id=decided.now.id), Hold(), *links) as markers:
        case.require_code("the commit", decided.end(commit=True))
        markers.met("a marker that is held", *links)
        case.require("the state of one that was not decided", timed_out(case, open_one), "CompleteAbort")
        case.expect("the state", case.inspect.state(str(decided.transactional_id)), "PrepareCommit")
        markers.released()
    case.expect("the state in the end", case.inspect.completed(decided.transactional_id), "CompleteCommit")
    case.expect("what a reader is given", case.inspect.committed(slow), ["a"])


# Its commit must come before the timeout, and half of that time is spent on stopping a broker.
@alone
@requirement("COORD-11")
@needs(THREE)
def test_a_commit_waits_for_the_leader_that_is_away(case: CaseContext) -> None:
    """While the leader that needs a marker is away, a commit waits for it, and completes when it is back."""
    stays, away = brokers.controller(case), brokers.spare(case)
    (at,) = replicas.placed(case, [away], min_insync_replicas="1")
    (elsewhere,) = replicas.placed(case, [each for each in case.brokers if each != away])
    decided, open_one = (
        ScriptedProducer(case, replicas.coordinated(case, name, by=stays), timeout_ms=OUTLIVES_A_STOP_MS).ready()
        for name in ("decided", "open")
    )
    decided.writes(at)
    open_one.writes(elsewhere)
    with brokers.stopped(case, away):
        case.require_code("the commit", decided.end(commit=True))
        case.require("the state of one that was not decided", timed_out(case, open_one), "CompleteAbort")
        case.expect("the state", case.inspect.state(str(decided.transactional_id)), "PrepareCommit")
    case.expect("the state in the end", case.inspect.completed(decided.transactional_id), "CompleteCommit")
    case.expect("what a reader is given", case.inspect.committed(at), ["a"])


@requirement("EXP-06")
@versions(*BOTH)
@needs(EXPIRING)
def test_an_idle_id_expires(case: CaseContext) -> None:
    """An id that is Empty or Complete is forgotten when it is idle; its owner may begin again with a new producer id."""
    (at,) = case.topic()
    ended = {"commit": True, "abort": False}
    owners = {word: ScriptedProducer(case, f"{case.name}-{word}").ready() for word in ended}
    for word, commit in ended.items():
        owners[word].writes(at).ends(commit=commit)
    owners["nothing"] = ScriptedProducer(case, f"{case.name}-nothing").ready()
    for word, owner in owners.items():
        look = partial(case.inspect.state, str(owner.transactional_id))
        state = case.poll_until(look, lambda each: each is None, within_s=SOON_S)
        case.expect(f"the state after {word}", state, None)
    for word, owner in owners.items():
        before = owner.now
        case.expect_code(f"an addition after {word}", owner.add(at), Code.INVALID_PRODUCER_ID_MAPPING)
        for commit in (True, False):
            answer = owner.end(commit=commit)
            case.expect_code(f"an end after {word}", answer, Code.INVALID_PRODUCER_ID_MAPPING)
        answer = case.set_up(f"a new beginning after {word}", partial(owner.init, continues=before))
        case.expect(f"the epoch after {word}", owner.now.epoch, 0)
        case.expect(f"the producer id after {word}", owner.now.id, before.id, Relation.DIFFERS)


@requirement("EXP-07")
@versions(*BOTH)
@needs(EXPIRING)
def test_an_open_transaction_keeps_its_id(case: CaseContext) -> None:
    """An id with an open transaction does not expire while idle ones do, and its owner decides the transaction."""
    (at,) = case.topic()
    owner = ScriptedProducer(case, f"{case.name}-open").ready().writes(at)
    idle = ScriptedProducer(case, f"{case.name}-idle").ready()
    look = partial(case.inspect.state, str(idle.transactional_id))
    case.require("the state of an idle id", case.poll_until(look, lambda each: each is None, within_s=SOON_S), None)
    case.expect("the state of the open one", case.inspect.state(str(owner.transactional_id)), "Ongoing")
    case.expect_code("its commit", owner.end(commit=True), Code.NONE)
    state = case.poll_until(
        partial(case.inspect.state, str(owner.transactional_id)), COMPLETE.__contains__, within_s=SOON_S
    )
    case.expect("its state then", state, "CompleteCommit")
    case.expect("what a reader is given", case.inspect.committed(at), ["a"])


@requirement("EXP-08")
@versions(*BOTH)
@needs(EXPIRING)
def test_an_idle_producer_expires_on_a_partition(case: CaseContext) -> None:
    """A leader forgets an idle producer without an open transaction, and never one with an open transaction."""
    (at,) = case.topic()
    owner = ScriptedProducer(case, f"{case.name}-open").ready().writes(at)
    idle = ScriptedProducer(case, None).ready()
    case.require_code("a batch", idle.produce(at, ["b"]))
    known = case.poll_until(lambda: replicas.remembered(case, idle, at), lambda each: not each, within_s=SOON_S)
    case.expect("the idle producer is known", known, False)
    case.expect("the producers with a transaction open", case.inspect.open_at(at), [owner.now.id])
    case.expect("the last stable offset", case.inspect.stable(at), 0)
    owner.ends(commit=True)
    case.expect("what a reader is given", case.inspect.committed(at), ["a", "b"])


# Two producers must be looked at less than two seconds after their batches, and the case waits for half of that time.
@alone
@requirement("EXP-08")
@needs(EXPIRING)
def test_old_timestamps_do_not_hasten_expiry(case: CaseContext) -> None:
    """A producer that writes records with old timestamps, a copier for instance, is known as long as any other."""
    expiry_can_be_seen(case)
    (at,) = case.topic()
    idle, witness, copier = (ScriptedProducer(case, None).ready() for _ in range(3))
    case.require_code("a batch of one that is idle from then on", idle.produce(at, ["before"]))
    idle_since = time.monotonic()
    # answer dropped: this time passes in any case
    case.poll_until(lambda: time.monotonic() - idle_since, lambda each: each >= IDLE_BEFORE_S, within_s=EXPIRE_AFTER_S)
    began = time.monotonic()
    case.require_code("a batch of now", witness.produce(at, ["a"]))
    batch = copier.batch(at, ["b"], timestamp_ms=now_ms() - 86_400_000)
    case.require_code("a batch of yesterday", copier.send_batch(at, batch))
    case.require("the idle producer is known", replicas.remembered(case, idle, at), True)
    # One check covers all producers of the partition, also the two others.
    gone = case.poll_until(lambda: not replicas.remembered(case, idle, at), bool, within_s=EXPIRE_AFTER_S)
    case.require("the idle producer was forgotten", gone, True)
    known = [replicas.remembered(case, each, at) for each in (witness, copier)]
    answer = copier.send_batch(at, batch)
    took = round(time.monotonic() - began, 2)
    case.require("seconds that the two were idle at most", took, EXPIRE_AFTER_S, Relation.AT_MOST)
    case.expect("the two producers are known", known, [True, True])
    case.expect_code("the batch of yesterday, again", answer, Code.NONE)
    case.expect("the log", case.inspect.values(at), ["before", "a", "b"])


# Its ids must be initialised so fast that they expire together.
@alone
@requirement("EXP-09")
@needs(EXPIRING)
def test_many_ids_expire_at_once(case: CaseContext) -> None:
    """Ids that expire together are all removed, although their tombstones fit into no single batch."""
    if not case.since("3.0.0"):
        raise NotApplicableError("ids are counted by ListTransactions, which begins with 3.0")
    ScriptedProducer(case, f"{case.name}-first").ready()
    set_log(case, {"max.message.bytes": str(BATCH_BYTES)})
    try:
        names = [f"{case.name}-{number:03}-{'x' * LONG_NAME}" for number in range(MANY)]
        broker = case.coordinator(names[0])
        began = time.monotonic()
        case.require("ids that the broker took", _take(case, broker, names), MANY)
        # They expire in the order and at the rate of their initialisations.
        looks = max(1.0, (time.monotonic() - began) / LOOK_EVERY_S)
        together = int(MANY * LONG_NAME / looks / PARTITIONS)
        case.require("bytes of ids that a look finds expired in a partition", together, BATCH_BYTES, Relation.AT_LEAST)
        left = case.poll_until(lambda: _left(case), lambda each: each == 0, within_s=SOON_S)
        case.expect("ids that are left", left, 0)
        described = case.ask("DescribeTransactions", {"TransactionalIds": names}, broker=broker)
        codes = sorted({each["ErrorCode"] for each in described["TransactionStates"]})
        case.expect("their codes", codes, [int(Code.TRANSACTIONAL_ID_NOT_FOUND)])
    finally:
        set_log(case, {"max.message.bytes": None})


@requirement("EXP-10")
@versions(*BOTH)
@needs(EXPIRING)
def test_a_pending_offset_keeps_the_one_before(case: CaseContext) -> None:
    """A committed offset does not expire while a transaction holds another one for the group; a group's without does."""
    (at,) = case.topic()
    held, free = f"{case.name}-held", f"{case.name}-free"
    producer = ScriptedProducer(case, f"{case.name}-owner").ready()
    for group in (held, free):
        case.set_up(f"an offset of {group} that may expire after a second", partial(_brief, case, group, at))
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the group is added", lambda: producer.add_offsets(held))
    case.set_up("an offset is pending", lambda: producer.commit_offsets(held, {at: 7}))
    gone = case.poll_until(lambda: case.inspect.offset(free, at), lambda each: each == -1, within_s=SOON_S)
    case.require("the offset of the group without a transaction", gone, -1)
    case.expect("the offset of the group with one", case.inspect.offset(held, at), 5)
    producer.ends(commit=True)
    case.expect("its offset after the commit", case.inspect.offset(held, at), 7)


def _take(case: CaseContext, broker: int, names: list[str]) -> int:
    """Initialise all ids at once, in three rounds, because the broker draws ids meanwhile; returns how many succeeded."""
    connection, left = case.open_connection(broker), list(names)
    for _ in range(3):
        bodies = [{"TransactionalId": name, "TransactionTimeoutMs": TIMEOUT_MS} for name in left]
        sent = [
            case.send(case.request("InitProducerId", body, connection=connection), connection=connection)
            for body in bodies
        ]
        codes = [each.receive().code for each in sent]
        left = [name for name, code in zip(left, codes, strict=True) if code == Code.COORDINATOR_LOAD_IN_PROGRESS]
        if set(codes) - {Code.NONE, Code.COORDINATOR_LOAD_IN_PROGRESS} or not left:
            break
    return len(names) - len(left)


def _left(case: CaseContext) -> int:
    return sum(name.startswith(f"{case.name}-") for name in case.client.list_transactions())


def _brief(case: CaseContext, group: str, at: TopicPartition) -> Response:
    """Send OffsetCommit v4, the last version with a retention time."""
    partition = {"PartitionIndex": at.partition, "CommittedOffset": 5, "CommittedMetadata": ""}
    topics = [{"Name": at.topic, "Partitions": [partition]}]
    body = {"GroupId": group, "MemberId": "", "RetentionTimeMs": 1000, "Topics": topics}
    return case.ask("OffsetCommit", body, broker=case.group_coordinator(group), version=4)
