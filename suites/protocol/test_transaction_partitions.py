"""TXN, growing: AddPartitionsToTxn, which registers the partitions that a transaction will write to."""

from __future__ import annotations

from runner.protocol.toolkit.case import requirement
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.coordinators import log_of
from runner.protocol.toolkit.expected_codes import fencing_code, outside_code
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import NotApplicableError
from wire.codes import ErrorCode as Code
from wire.fetch import fetch_log
from wire.values import Producer, TopicPartition

#: Brokers send v4 and later to each other; from this version on the answer can be TRANSACTION_ABORTABLE.
ABORTABLE_SINCE = 5


def each(answer: Response, *places: TopicPartition, code: Code) -> dict[str, int]:
    """The codes of an answer with the same code for every partition."""
    prefix = "" if answer.version < 4 else f"{answer['ResultsByTransaction'][0]['TransactionalId']}-"
    return {f"{prefix}{at}": int(code) for at in places}


@requirement("TXN-10")
def test_a_stranger_adds_nothing(case: CaseContext) -> None:
    """AddPartitionsToTxn with an unknown transactional id or another's producer id fails for every partition."""
    places = case.topic(partitions=2)
    producer, other = transactional(case), transactional(case, "other")
    unknown = ScriptedProducer(case, f"{case.name}-unknown")
    unknown.now = producer.now
    answer = unknown.add(*places)
    expected = each(answer, *places, code=Code.INVALID_PRODUCER_ID_MAPPING)
    case.expect("the codes for an unknown transactional id", answer.codes, expected)
    thief = producer.copy()
    thief.now = other.now
    answer = thief.add(*places)
    case.expect("the codes for another one's producer id", answer.codes, expected)
    _expect_transaction(case, producer, "Empty", ())


@requirement("TXN-11")
def test_another_epoch_adds_nothing(case: CaseContext) -> None:
    """AddPartitionsToTxn with a lower or a higher epoch is fenced and leaves the transaction as it was."""
    here, there = case.topic(partitions=2)
    producer = transactional(case)
    case.require_code("InitProducerId again, so that a lower epoch exists", producer.init())
    for state in ("Empty", "Ongoing"):
        if state == "Ongoing":
            case.require_code("AddPartitionsToTxn", producer.add(here))
        for epoch in (producer.now.epoch - 1, producer.now.epoch + 1):
            answer = producer.add(here, there, epoch=epoch)
            expected = each(answer, here, there, code=fencing_code(answer))
            case.expect(f"the codes for epoch {epoch} while {state}", answer.codes, expected)
        _expect_transaction(case, producer, state, (here,) if state == "Ongoing" else ())
    case.expect_code("AddPartitionsToTxn with the right epoch", producer.add(here, there), Code.NONE)


@requirement("TXN-12")
def test_partitions_are_added_together_or_not_at_all(case: CaseContext) -> None:
    """One unknown partition keeps all others of an AddPartitionsToTxn out of the transaction."""
    here, there = case.topic(partitions=2)
    missing = TopicPartition(f"{case.name}-missing", 0)
    producer = transactional(case)
    refused = {str(missing): int(Code.UNKNOWN_TOPIC_OR_PARTITION), str(there): int(Code.OPERATION_NOT_ATTEMPTED)}
    answer = producer.add(there, missing)
    case.expect("the codes while Empty", answer.codes, refused)
    _expect_transaction(case, producer, "Empty", ())
    case.require_code("AddPartitionsToTxn of known ones", producer.add(here))
    answer = producer.add(missing, there)
    case.expect("the codes while Ongoing", answer.codes, refused)
    _expect_transaction(case, producer, "Ongoing", (here,))
    beyond = TopicPartition(here.topic, 7)
    answer = producer.add(there, beyond)
    refused = {str(beyond): int(Code.UNKNOWN_TOPIC_OR_PARTITION), str(there): int(Code.OPERATION_NOT_ATTEMPTED)}
    case.expect("the codes for a partition that the topic does not have", answer.codes, refused)
    _expect_transaction(case, producer, "Ongoing", (here,))


@requirement("TXN-14")
def test_adding_again_writes_nothing(case: CaseContext) -> None:
    """AddPartitionsToTxn for known partitions succeeds without another record in the transaction log."""
    here, there = case.topic(partitions=2)
    producer = transactional(case)
    log, own = log_of(case, producer), str(producer.transactional_id).encode()
    before = case.inspect.end(log)

    def added() -> int:
        # Transactions of others have records in this partition, too.
        batches = fetch_log(case.client, *log, before, case.inspect.end(log))
        return sum((record.key or b"").endswith(own) for batch in batches for record in batch.records())

    case.require_code("AddPartitionsToTxn", producer.add(here, there))
    case.require("its records in the transaction log", added(), 1)
    for places in ((here, there), (there,), (here,)):
        case.expect_code(f"AddPartitionsToTxn of {len(places)} known ones", producer.add(*places), Code.NONE)
    case.expect("its records in the transaction log", added(), 1)


@requirement("TXN-15")
def test_verification_tells_members_from_others(case: CaseContext) -> None:
    """The verify-only form says which partitions belong to the open transaction, and adds none."""
    inside, outside = case.topic(partitions=2)
    producer = transactional(case)
    case.require_code("AddPartitionsToTxn", producer.add(inside))
    version = case.connection(case.brokers[0]).wire.version_for("AddPartitionsToTxn", at_most=ABORTABLE_SINCE)
    answer = verify(producer, producer.now, inside, outside, version=version)
    expected = each(answer, inside, code=Code.NONE) | each(answer, outside, code=outside_code(answer))
    case.expect("the codes", answer.codes, expected)
    stranger = Producer(id=producer.now.id + 1_000_000, epoch=0)
    answer = verify(producer, stranger, inside, version=version)
    expected = each(answer, inside, code=Code.INVALID_PRODUCER_ID_MAPPING)
    case.expect("the codes for another producer id", answer.codes, expected)
    other = Producer(id=producer.now.id, epoch=producer.now.epoch + 1)
    answer = verify(producer, other, inside, version=version)
    case.expect("the codes for another epoch", answer.codes, each(answer, inside, code=fencing_code(answer)))
    _expect_transaction(case, producer, "Ongoing", (inside,))


@requirement("ERR-02")
def test_verification_answers_in_the_words_of_its_version(case: CaseContext) -> None:
    """A broker that verifies at v4 does not know TRANSACTION_ABORTABLE and gets INVALID_TXN_STATE."""
    inside, outside = case.topic(partitions=2)
    producer = transactional(case)
    case.require_code("AddPartitionsToTxn", producer.add(inside))
    answer = verify(producer, producer.now, inside, outside, version=ABORTABLE_SINCE - 1)
    expected = each(answer, inside, code=Code.NONE) | each(answer, outside, code=Code.INVALID_TXN_STATE)
    case.expect("the codes", answer.codes, expected)


def verify(producer: ScriptedProducer, identity: Producer, *places: TopicPartition, version: int) -> Response:
    """Send AddPartitionsToTxn for one topic, as a leader does to verify a batch."""
    topic = {"Name": places[0].topic, "Partitions": [at.partition for at in places]}
    transaction = {
        "TransactionalId": producer.transactional_id,
        "ProducerId": identity.id,
        "ProducerEpoch": identity.epoch,
        "VerifyOnly": True,
        "Topics": [topic],
    }
    case = producer.case
    assert producer.transactional_id is not None
    broker = case.coordinator(producer.transactional_id)
    answer = case.ask("AddPartitionsToTxn", {"Transactions": [transaction]}, broker=broker, version=version)
    if answer["ErrorCode"] == Code.CLUSTER_AUTHORIZATION_FAILED:
        raise NotApplicableError("it needs the right of a broker (ClusterAction)")
    case.require("transactions in the answer", len(answer["ResultsByTransaction"]), 1)
    return answer


def _expect_transaction(
    case: CaseContext, producer: ScriptedProducer, state: str, places: tuple[TopicPartition, ...]
) -> None:
    """Claim the state and partitions of a transaction, if they can be read."""
    assert producer.transactional_id is not None
    if case.since("3.0.0"):
        case.expect("the state", case.inspect.state(producer.transactional_id), state)
        case.expect("its partitions", case.inspect.places(producer.transactional_id), [str(at) for at in places])
