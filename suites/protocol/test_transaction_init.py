"""TXN, beginning: InitProducerId, which makes an instance of a transactional id the only one that may act."""

from __future__ import annotations

from runner.protocol.toolkit import settings
from runner.protocol.toolkit.case import BOTH, Needs, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.expected_codes import expect_fenced
from runner.protocol.toolkit.inspector import ending
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.timing import SOON_S
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import Producer

#: The last epoch that a producer gets; the one above is reserved for fencing.
LAST_EPOCH = 32_766
#: The logger of the broker that writes a line for each initialised id.
COORDINATOR = "kafka.coordinator.transaction.TransactionCoordinator"
#: So many unread answers fit in a connection's buffers.
UNREAD_MAX = 2_000
MAX_TIMEOUT_MS = 900_000


def uninitialised(case: CaseContext, what: str) -> ScriptedProducer:
    """A producer with a new transactional id, not yet initialised."""
    return ScriptedProducer(case, f"{case.name}-{what}")


def no_longer_busy(case: CaseContext, producer: ScriptedProducer, *, continues: Producer | None = None) -> Response:
    """The first answer to InitProducerId that is not CONCURRENT_TRANSACTIONS."""
    answer: Response = case.poll_until(
        lambda: producer.init(continues=continues),
        lambda seen: seen.code != Code.CONCURRENT_TRANSACTIONS,
        within_s=SOON_S,
    )
    return answer


@requirement("TXN-01")
def test_the_first_initialisation_creates_an_empty_transaction(case: CaseContext) -> None:
    """The first InitProducerId of a transactional id answers with a new producer id and epoch 0, and nothing is open."""
    first, second = uninitialised(case, "first"), uninitialised(case, "second")
    for producer in (first, second):
        answer = case.set_up(f"InitProducerId of {producer.transactional_id}", producer.init)
        case.expect("its epoch", answer["ProducerEpoch"], 0)
        case.expect("its id", answer["ProducerId"], 0, Relation.AT_LEAST)
    case.expect("the other one's id", second.now.id, first.now.id, Relation.DIFFERS)
    if case.since("3.0.0"):
        seen = case.inspect.described(f"{case.name}-first") or {}
        told = {name: seen.get(name) for name in ("TransactionState", "TransactionStartTimeMs", "Topics")}
        expected = {"TransactionState": "Empty", "TransactionStartTimeMs": -1, "Topics": []}
        case.expect("the transaction", told, expected)
        case.expect("its owner", [seen.get("ProducerId"), seen.get("ProducerEpoch")], [first.now.id, 0])


@requirement("TXN-02")
@versions(*BOTH)
def test_a_second_initialisation_raises_the_epoch(case: CaseContext) -> None:
    """InitProducerId of an Empty or Complete transaction keeps the id, raises the epoch by one and fences the old one."""
    (at,) = case.topic()
    producer = uninitialised(case, "again").ready()
    for before in ("nothing", "a commit", "an abort"):
        if before != "nothing":
            producer.writes(at).ends(commit=before == "a commit")
        older = producer.copy()
        answer = producer.init()
        case.expect_code(f"InitProducerId after {before}", answer, Code.NONE)
        case.expect("its id and epoch", producer.now, Producer(id=older.now.id, epoch=older.now.epoch + 1))
        expect_fenced(case, "AddPartitionsToTxn of the older instance", older.add(at))
        expect_fenced(case, "EndTxn of the older instance", older.end(commit=True))


@requirement("TXN-03", "FENCE-02")
@versions(*BOTH)
def test_initialisation_aborts_what_is_open(case: CaseContext) -> None:
    """InitProducerId during a transaction says "not now", aborts it, and then answers with an epoch two above."""
    here, there = case.topic(partitions=2)
    older = uninitialised(case, "open").ready().writes(here, there)
    successor = uninitialised(case, "open")
    answer = successor.init()
    case.expect_code("InitProducerId during the transaction", answer, Code.CONCURRENT_TRANSACTIONS)
    case.expect_code("InitProducerId afterwards", no_longer_busy(case, successor), Code.NONE)
    case.expect("its id and epoch", successor.now, Producer(id=older.now.id, epoch=older.now.epoch + 2))
    marker = ("abort", older.now.id, older.now.epoch + 1)
    for at in (here, there):
        case.expect(f"the markers of {at}", case.inspect.markers(at), [marker])
        case.expect(f"the aborted transactions of {at}", case.inspect.aborted(at), [(older.now.id, 0)])
        case.expect(f"what readers of {at} are given", case.inspect.committed(at), [])
        case.expect(f"the last stable offset of {at}", case.inspect.stable(at), case.inspect.end(at))
    successor.writes(here, values=["b"]).ends(commit=True)
    case.expect("what readers are given of the successor", case.inspect.committed(here), ["b"])


@requirement("TXN-05")
@versions(*BOTH)
def test_a_producer_continues_with_the_next_epoch(case: CaseContext) -> None:
    """InitProducerId with the current id and epoch raises the epoch once, however often it is repeated."""
    (at,) = case.topic()
    producer = uninitialised(case, "continues").ready()
    for before in ("nothing", "a commit", "an abort"):
        if before != "nothing":
            producer.writes(at).ends(commit=before == "a commit")
        current = producer.now
        following = Producer(id=current.id, epoch=current.epoch + 1)
        for turn in ("first", "again"):
            answer = producer.init(continues=current)
            case.expect_code(f"InitProducerId of {current} after {before}, {turn}", answer, Code.NONE)
            case.expect("its id and epoch", _identity_in(answer), following)
        case.expect_code("InitProducerId of what it got", producer.init(continues=following), Code.NONE)
        expect_fenced(case, f"InitProducerId of {current}, two epochs ago", producer.copy().init(continues=current))


@requirement("TXN-05")
@versions(*BOTH)
def test_continuing_aborts_what_is_open(case: CaseContext) -> None:
    """InitProducerId with the current id and epoch during a transaction aborts it first."""
    _continues_during_a_transaction(case)


@requirement("TXN-05")
@versions(TransactionVersion.TV1)
@needs(Needs(level=1))
def test_continuing_is_fenced_at_level_1(case: CaseContext) -> None:
    """While the finalized level is 1, a producer that continues during a transaction is fenced by the abort."""
    case.require("the finalized level", case.level, 1)
    _continues_during_a_transaction(case)


def _continues_during_a_transaction(case: CaseContext) -> None:
    (at,) = case.topic()
    producer = uninitialised(case, "open").ready().writes(at)
    current = producer.now
    answer = producer.init(continues=current)
    case.expect_code("InitProducerId during the transaction", answer, Code.CONCURRENT_TRANSACTIONS)
    answer = no_longer_busy(case, producer, continues=current)
    if case.level == 2 and case.since("4.0.1"):
        case.expect_code("InitProducerId afterwards", answer, Code.NONE)
        case.expect("its id and epoch", _identity_in(answer), Producer(id=current.id, epoch=current.epoch + 1))
    else:
        expect_fenced(case, "InitProducerId afterwards", answer)
    case.expect("the markers", case.inspect.markers(at), [("abort", current.id, current.epoch + 1)])
    case.expect("what readers are given", case.inspect.committed(at), [])


@requirement("TXN-06")
def test_a_foreign_producer_id_is_fenced(case: CaseContext) -> None:
    """InitProducerId with another transactional id's producer id is fenced; an id without metadata gets a new one."""
    owner, stranger = uninitialised(case, "owner").ready(), uninitialised(case, "stranger").ready()
    before = case.inspect.described(f"{case.name}-owner")
    answer = owner.copy().init(continues=stranger.now)
    expect_fenced(case, "InitProducerId with the id of another transactional id", answer)
    case.expect("the transaction afterwards", case.inspect.described(f"{case.name}-owner"), before)
    case.expect_code("InitProducerId of the owner", owner.init(continues=owner.now), Code.NONE)
    fresh = uninitialised(case, "fresh")
    answer = case.set_up("InitProducerId where there is no metadata", lambda: fresh.init(continues=stranger.now))
    case.expect("its epoch", answer["ProducerEpoch"], 0)
    taken = [owner.now.id, stranger.now.id]
    case.expect("whether it is one of the ids before", answer["ProducerId"] in taken, False)


@requirement("TXN-07")
@versions(TransactionVersion.TV1)
def test_an_exhausted_epoch_is_followed_by_another_id(case: CaseContext) -> None:
    """After epoch 32766, in which transactions still commit, InitProducerId answers with another id at epoch 0."""
    (at,) = case.topic()
    producer = uninitialised(case, "exhausted").ready()
    exhaust(case, producer)
    producer.writes(at, values=["a"]).ends(commit=True)
    older = producer.copy()
    case.expect_code("InitProducerId", producer.init(), Code.NONE)
    case.expect("its epoch", producer.now.epoch, 0)
    case.expect("its id", producer.now.id, older.now.id, Relation.DIFFERS)
    case.expect_code("EndTxn with the old id", older.end(commit=True), Code.INVALID_PRODUCER_ID_MAPPING)
    producer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(at), ["a", "b"])
    markers = [("commit", older.now.id, LAST_EPOCH), ("commit", producer.now.id, 0)]
    case.expect("the markers", case.inspect.markers(at), markers)


@requirement("TXN-07", "TXN-03")
def test_an_exhausted_epoch_can_be_fenced(case: CaseContext) -> None:
    """InitProducerId during a transaction of epoch 32766 aborts it and then answers with another id."""
    (at,) = case.topic()
    older = uninitialised(case, "exhausted").ready()
    exhaust(case, older)
    older.writes(at, values=["a"])
    producer = uninitialised(case, "exhausted")
    case.expect_code("InitProducerId during the transaction", producer.init(), Code.CONCURRENT_TRANSACTIONS)
    case.expect_code("InitProducerId afterwards", no_longer_busy(case, producer), Code.NONE)
    case.expect("its id", producer.now.id, older.now.id, Relation.DIFFERS)
    # The initialisation draws the new id, or the abort already did (KAFKA-20090) and the initialisation
    # raises its epoch.
    case.expect("its epoch", producer.now.epoch, [0, 1] if case.level == 2 else [0], Relation.ONE_OF)
    # A coordinator that still has the old id as the previous one fences it.
    codes = (Code.INVALID_PRODUCER_ID_MAPPING, Code.PRODUCER_FENCED)
    case.expect_code("EndTxn with the old id", older.end(commit=True), *codes)
    case.expect("the markers", case.inspect.markers(at), [("abort", older.now.id, LAST_EPOCH + 1)])
    producer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(at), ["b"])


@requirement("TXN-07", "TV2-02")
@versions(TransactionVersion.TV2)
def test_the_end_in_the_last_epoch_answers_with_another_id(case: CaseContext) -> None:
    """EndTxn v5 in epoch 32766 answers with another producer id at epoch 0, and so does its repetition."""
    (at,) = case.topic()
    producer = uninitialised(case, "exhausted").ready()
    exhaust(case, producer)
    producer.writes(at, values=["a"])
    older = producer.copy()
    case.expect_code("EndTxn(commit) in epoch 32766", producer.end(commit=True), Code.NONE)
    case.expect("the epoch that it answers with", producer.now.epoch, 0)
    case.expect("the id that it answers with", producer.now.id, older.now.id, Relation.DIFFERS)
    case.require("the state", case.inspect.complete(producer.transactional_id), "CompleteCommit")
    answer = older.copy().end(commit=True)
    case.expect_code("the same EndTxn again", answer, Code.NONE)
    case.expect("what it answers with", _identity_in(answer), producer.now)
    # The leader has the older epoch, and since KAFKA-18042 checks it before it asks the coordinator.
    refused = Code.INVALID_PRODUCER_EPOCH if case.since("4.1.0") else Code.INVALID_PRODUCER_ID_MAPPING
    case.expect_code("a batch with the old id", older.produce(at, ["x"]), refused)
    producer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(at), ["a", "b"])
    markers = [("commit", older.now.id, LAST_EPOCH + 1), ("commit", producer.now.id, 1)]
    case.expect("the markers", case.inspect.markers(at), markers)


def exhaust(case: CaseContext, producer: ScriptedProducer) -> None:
    """Initialise until the producer has the last epoch."""
    assert producer.transactional_id is not None
    connection = case.open_connection(case.coordinator(producer.transactional_id))
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": producer.timeout_ms}
    request = case.request("InitProducerId", body, connection=connection)
    last: Body = {"ErrorCode": 0, "ProducerId": producer.now.id, "ProducerEpoch": producer.now.epoch}
    with settings.quiet(case, connection.broker, COORDINATOR):
        while last["ErrorCode"] == Code.NONE and last["ProducerEpoch"] < LAST_EPOCH:
            count = min(UNREAD_MAX, LAST_EPOCH - last["ProducerEpoch"])
            last = case.send_many(request, connection=connection, count=count)[-1]
    told = [last["ErrorCode"], last["ProducerId"], last["ProducerEpoch"]]
    case.require("the last of the initialisations", told, [0, producer.now.id, LAST_EPOCH])
    producer.now = Producer(id=producer.now.id, epoch=LAST_EPOCH)


@requirement("TXN-08")
@versions(*BOTH)
def test_an_empty_transactional_id_is_malformed(case: CaseContext) -> None:
    """Requests with an empty transactional id are refused as malformed."""
    (at,) = case.topic()
    broker = case.coordinator(f"{case.name}-any")
    init = {"TransactionalId": "", "TransactionTimeoutMs": 60_000}
    answer = case.with_right(case.ask("InitProducerId", init, broker=broker))
    case.expect_code("InitProducerId", answer, Code.INVALID_REQUEST)
    add = {
        "V3AndBelowTransactionalId": "",
        "V3AndBelowProducerId": 0,
        "V3AndBelowProducerEpoch": 0,
        "V3AndBelowTopics": [{"Name": at.topic, "Partitions": [at.partition]}],
    }
    case.expect_code("AddPartitionsToTxn", case.ask("AddPartitionsToTxn", add, broker=broker), Code.INVALID_REQUEST)
    for commit in (True, False):
        end = {"TransactionalId": "", "ProducerId": 0, "ProducerEpoch": 0, "Committed": commit}
        case.expect_code(
            f"EndTxn, {ending(commit=commit)}", case.ask("EndTxn", end, broker=broker), Code.INVALID_REQUEST
        )


@requirement("TXN-09")
def test_a_timeout_beyond_the_bounds_is_refused(case: CaseContext) -> None:
    """InitProducerId refuses a timeout that is not positive or above the broker's maximum, and uses up no epoch."""
    producer = uninitialised(case, "patient").ready()
    for timeout_ms in (0, -1, MAX_TIMEOUT_MS + 1):
        answer = producer.init(TransactionTimeoutMs=timeout_ms)
        case.expect_code(f"InitProducerId with {timeout_ms} ms", answer, Code.INVALID_TRANSACTION_TIMEOUT)
    answer = producer.init(TransactionTimeoutMs=MAX_TIMEOUT_MS)
    case.expect_code("InitProducerId with the maximum", answer, Code.NONE)
    case.expect("its epoch", answer["ProducerEpoch"], 1)
    if case.since("3.0.0"):
        seen = case.inspect.described(f"{case.name}-patient") or {}
        case.expect("the timeout that is kept", seen.get("TransactionTimeoutMs"), MAX_TIMEOUT_MS)


def _identity_in(answer: Response) -> Producer | None:
    return None if answer.code != Code.NONE else Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
