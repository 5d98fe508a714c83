"""IDEMP: the state that a partition's leader keeps of a producer, and its answers to batches out of sequence."""

from __future__ import annotations

import random

from runner.protocol.toolkit.case import BOTH, THREE, needs, one_broker, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.producer import ScriptedProducer, base_offset, idempotent, plain
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import Producer

IDS_EACH = 1200
#: Half of each round may arrive while a block of ids is drawn; ten rounds are enough for the slowest machine.
ROUNDS_MAX = 10
#: The highest sequence number, after which comes 0.
LAST = 0x7FFF_FFFF


@requirement("IDEMP-01")
@needs(THREE)
def test_ids_are_never_handed_out_twice(case: CaseContext) -> None:
    """InitProducerId without a transactional id returns an id that no broker has handed out before."""
    body = {"TransactionalId": None, "TransactionTimeoutMs": 60_000}
    ids: list[int] = []
    for broker in case.brokers:
        connection = case.open_connection(broker)
        answers: list[Body] = []
        # More than the block of 1000 ids that a broker draws at once (KIP-730). While it draws one it answers 14.
        for _ in range(ROUNDS_MAX):
            answers += case.send_many(
                case.request("InitProducerId", body, connection=connection), connection=connection, count=500
            )
            if sum(each["ErrorCode"] == Code.NONE for each in answers) > IDS_EACH:
                break
        told = {each["ErrorCode"] for each in answers}
        case.expect("codes other than 0 and 14", sorted(told - {Code.NONE, Code.COORDINATOR_LOAD_IN_PROGRESS}), [])
        given = [each for each in answers if each["ErrorCode"] == Code.NONE]
        case.require(f"ids from broker {broker}", len(given), IDS_EACH, Relation.AT_LEAST)
        case.expect("their epochs", sorted({each["ProducerEpoch"] for each in given}), [0])
        ids += [each["ProducerId"] for each in given]
    case.expect("distinct ids", len(set(ids)), len(ids))
    case.expect("the lowest id", min(ids), 0, Relation.AT_LEAST)


@requirement("IDEMP-02")
def test_half_of_an_identity_is_malformed(case: CaseContext) -> None:
    """InitProducerId that carries only one of producer id and epoch is refused as malformed."""
    producer = ScriptedProducer(case, f"{case.name}-half").ready()
    answer = producer.init(continues=Producer(id=producer.now.id, epoch=-1))
    case.expect_code("a producer id without an epoch", answer, Code.INVALID_REQUEST)
    answer = producer.init(continues=Producer(id=-1, epoch=0))
    case.expect_code("an epoch without a producer id", answer, Code.INVALID_REQUEST)


@requirement("IDEMP-03")
def test_the_next_batch_is_appended(case: CaseContext) -> None:
    """A batch whose epoch is current and whose sequence follows the last one is appended at the end."""
    producer, at = idempotent(case)
    for values in (["a"], ["b", "c"], ["d"]):
        end = case.inspect.end(at)
        answer = producer.produce(at, values)
        case.expect_code(f"the batch {', '.join(values)}", answer, Code.NONE)
        case.expect("its base offset", base_offset(answer), end)
    case.expect("the log", case.inspect.values(at), ["a", "b", "c", "d"])


@requirement("IDEMP-04", "IDEMP-05")
def test_the_last_five_batches_are_recognised(case: CaseContext) -> None:
    """Each of the last five batches answers with its first offset when it is repeated; older ones are refused."""
    producer, at = idempotent(case)
    batches = []
    for number in range(6):
        batch = producer.batch(at, [str(number)])
        batches.append(batch)
        case.require_code(f"batch {number}", producer.send_batch(at, batch))
        producer.sequences[at] += 1
    for number in random.Random("the last five").sample(range(1, 6), 5):
        answer = producer.send_batch(at, batches[number])
        case.expect_code(f"batch {number} again", answer, Code.NONE)
        case.expect(f"the offset of batch {number}", base_offset(answer), number)
    case.expect_code("batch 0 again", producer.send_batch(at, batches[0]), Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect("the log", case.inspect.values(at), [str(number) for number in range(6)])


@requirement("IDEMP-06")
def test_another_length_is_no_duplicate(case: CaseContext) -> None:
    """A batch with the first sequence of the last one and another last sequence is refused."""
    producer, at = idempotent(case)
    case.require_code("a batch", producer.produce(at, ["a", "b"]))
    case.expect_code("a shorter one", producer.produce(at, ["a"], sequence=0), Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    answer = producer.produce(at, ["a", "b", "c"], sequence=0)
    case.expect_code("a longer one", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect("the log", case.inspect.values(at), ["a", "b"])


@requirement("IDEMP-07")
def test_a_gap_is_refused(case: CaseContext) -> None:
    """A batch beyond the next sequence is refused, and the right one is still taken."""
    producer, at = idempotent(case)
    case.require_code("a batch", producer.produce(at, ["a"]))
    case.expect_code("one beyond", producer.produce(at, ["c"], sequence=2), Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect_code("the next one", producer.produce(at, ["b"]), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["a", "b"])


@requirement("IDEMP-08")
def test_five_requests_under_way_keep_their_order(case: CaseContext) -> None:
    """Five pipelined batches on one connection are appended in order."""
    producer, at = idempotent(case)
    connection = case.open_connection(case.leader(at))
    sent = []
    for number in range(5):
        body = producer.produce_body({at: producer.batch(at, [str(number)], sequence=number)})
        sent.append(case.send(case.request("Produce", body, connection=connection), connection=connection))
    answers = [each.receive() for each in sent]
    case.expect("their codes", [each.code for each in answers], [0] * 5)
    case.expect("their offsets", [base_offset(each) for each in answers], [0, 1, 2, 3, 4])


@requirement("IDEMP-09")
def test_a_batch_that_overtook_waits_for_its_predecessor(case: CaseContext) -> None:
    """A later batch is refused until the earlier one arrived, and the log has them in order of sequence."""
    producer, at = idempotent(case)
    case.require_code("a batch", producer.produce(at, ["a"]))
    first, second = case.open_connection(case.leader(at)), case.open_connection(case.leader(at))
    earlier, later = producer.batch(at, ["b"], sequence=1), producer.batch(at, ["c"], sequence=2)
    answer = producer.send_batch(at, later, connection=second)
    case.expect_code("the later one, first", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect_code("the earlier one", producer.send_batch(at, earlier, connection=first), Code.NONE)
    case.expect_code("the later one, again", producer.send_batch(at, later, connection=second), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["a", "b", "c"])


@requirement("IDEMP-10")
def test_a_partition_begins_at_sequence_0(case: CaseContext) -> None:
    """On a partition that never held a record a first batch above sequence 0 is refused, and the one at 0 is taken."""
    producer, at = idempotent(case)
    answer = producer.produce(at, ["later"], sequence=17)
    case.expect_code("sequence 17, first of all", answer, _unfit_to_begin(case))
    case.expect_code("sequence 0", producer.produce(at, ["a"], sequence=0), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["a"])


@requirement("IDEMP-10")
@versions(*BOTH)
def test_a_transaction_begins_at_sequence_0(case: CaseContext) -> None:
    """On such a partition the first batch of a transactional producer is refused as well, unless it begins at 0."""
    producer = ScriptedProducer(case, f"{case.name}-first").ready()
    (at,) = case.topic()
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the partition is added", lambda: producer.add(at))
    answer = producer.produce(at, ["later"], sequence=5)
    case.expect_code("sequence 5, first of all", answer, _unfit_to_begin(case))
    case.expect("the log", case.inspect.values(at), [])
    producer.ends(commit=False)


def _unfit_to_begin(case: CaseContext) -> Code:
    """The code for a first sequence above 0; before KIP-360 the same as for a forgotten producer."""
    return Code.OUT_OF_ORDER_SEQUENCE_NUMBER if case.since("2.5.0") else Code.UNKNOWN_PRODUCER_ID


@requirement("IDEMP-10")
def test_lost_memory_lets_any_sequence_begin(case: CaseContext) -> None:
    """Where a partition has held records and a producer is not known, its first batch may have any sequence."""
    producer, at = idempotent(case)
    plain(case, at, "before")
    answer = producer.produce(at, ["a"], sequence=17)
    if not case.since("2.5.0"):
        case.expect_code("sequence 17", answer, Code.UNKNOWN_PRODUCER_ID)
        case.expect("the log", case.inspect.values(at), ["before"])
        return
    case.expect_code("sequence 17", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 1)
    case.expect_code("sequence 18", producer.produce(at, ["b"], sequence=18), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["before", "a", "b"])


@requirement("IDEMP-11")
def test_a_lower_epoch_is_fenced(case: CaseContext) -> None:
    """A batch of a lower epoch than the partition has seen is refused and not appended."""
    producer, at = idempotent(case)
    case.require_code("a batch of epoch 0", producer.produce(at, ["a"]))
    case.require_code("a batch of epoch 1", producer.produce(at, ["b"], epoch=1, sequence=0))
    answer = producer.produce(at, ["c"], epoch=0, sequence=1)
    case.expect_code("the next batch of epoch 0", answer, Code.INVALID_PRODUCER_EPOCH)
    case.expect("the log", case.inspect.values(at), ["a", "b"])


@requirement("IDEMP-12")
def test_a_higher_epoch_begins_at_sequence_0(case: CaseContext) -> None:
    """A higher epoch is accepted with sequence 0 and refused with another one; the old epoch is fenced then."""
    producer, at = idempotent(case)
    case.require_code("a batch of epoch 0", producer.produce(at, ["a"]))
    answer = producer.produce(at, ["b"], epoch=1, sequence=1)
    case.expect_code("epoch 1 at sequence 1", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect_code("epoch 1 at sequence 0", producer.produce(at, ["c"], epoch=1, sequence=0), Code.NONE)
    answer = producer.produce(at, ["d"], epoch=0, sequence=1)
    case.expect_code("epoch 0 afterwards", answer, Code.INVALID_PRODUCER_EPOCH)
    case.expect("the log", case.inspect.values(at), ["a", "c"])


@requirement("IDEMP-13")
def test_sequences_go_on_at_0(case: CaseContext) -> None:
    """After sequence 2147483647 comes 0, between batches as well as inside of one, which is still recognised."""
    first, at = idempotent(case)
    plain(case, at, "before")
    case.require_code("a batch that ends at the last sequence", first.produce(at, ["a", "b"], sequence=LAST - 1))
    case.expect_code("the next one, at 0", first.produce(at, ["c"], sequence=0), Code.NONE)
    case.expect_code("the one after it, at 1", first.produce(at, ["d"], sequence=1), Code.NONE)
    second = ScriptedProducer(case, None).ready()
    crossing = second.batch(at, ["e", "f", "g", "h"], sequence=LAST - 1)
    for what in ("a batch across the border", "the same batch again"):
        answer = second.send_batch(at, crossing)
        case.expect_code(what, answer, Code.NONE)
        case.expect(f"the offset of {what}", base_offset(answer), 5)
    case.expect_code("the next one, at 2", second.produce(at, ["i"], sequence=2), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["before", *"abcdefghi"])


@requirement("IDEMP-14")
def test_malformed_batches_are_refused(case: CaseContext) -> None:
    """A batch that contradicts itself, or that a client must not write, is refused, and nothing of it is appended."""
    producer, at = idempotent(case)
    malformed = {
        "a producer id without a sequence": producer.batch(at, sequence=-1),
        "a control batch": producer.batch(at, control=True),
        "two batches for one partition": producer.batch(at) + producer.batch(at, sequence=1),
        "a batch of format 1": producer.batch(at, claims={"magic": 1}),
        "more offsets than records": producer.batch(at, claims={"last_offset_delta": 1}),
        "more records counted than offsets": producer.batch(at, claims={"count": 2}),
        "one record that says to be two": producer.batch(at, claims={"count": 2, "last_offset_delta": 1}),
    }
    for what, batch in malformed.items():
        case.expect_code(what, producer.send_batch(at, batch), Code.INVALID_RECORD)
        case.expect(f"the log's end after {what}", case.inspect.end(at), 0)
    case.expect_code("a sound batch afterwards", producer.produce(at, ["a"]), Code.NONE)
    case.expect("the log", case.inspect.values(at), ["a"])


@requirement("IDEMP-14")
def test_a_transaction_of_nobody_is_malformed(case: CaseContext) -> None:
    """A batch that is flagged transactional and has no producer id is refused: no marker can ever decide it."""
    producer = ScriptedProducer(case, f"{case.name}-nobody").ready()
    (at,) = case.topic()
    without_id = ScriptedProducer(case, producer.transactional_id)
    answer = without_id.produce(at, ["a"], sequence=-1)
    case.expect_code("a transactional batch without a producer id", answer, Code.INVALID_RECORD)
    case.expect("the log", case.inspect.values(at), [])
    case.expect("what a reader under read_committed is given", case.inspect.committed(at), [])


@requirement("IDEMP-15")
@one_broker
def test_partitions_are_independent(case: CaseContext) -> None:
    """A refused batch does not touch another partition of the same request."""
    producer = ScriptedProducer(case, None).ready()
    here, there = case.topic(partitions=2)
    case.require_code("a batch", producer.produce(here, ["a"]))
    leader = case.leader(here)
    case.require("both partitions have one leader", case.leader(there), leader)
    batches = {here: producer.batch(here, ["c"], sequence=5), there: producer.batch(there, ["b"], sequence=0)}
    answer = case.ask("Produce", producer.produce_body(batches), broker=leader)
    expected = {str(here): int(Code.OUT_OF_ORDER_SEQUENCE_NUMBER), str(there): 0}
    case.expect("the codes", answer.codes, expected)
    case.expect("the logs", [case.inspect.values(here), case.inspect.values(there)], [["a"], ["b"]])


@requirement("IDEMP-17")
def test_a_lost_response_leaves_one_copy(case: CaseContext) -> None:
    """A batch that is sent again after a lost answer has its first offset, and is in the log once."""
    producer, at = idempotent(case)
    case.require_code("a batch before", producer.produce(at, ["a"]))
    batch = producer.batch(at, ["b"])
    connection = case.open_connection(case.leader(at))
    # answer dropped: it is the one that is lost
    case.send(case.request("Produce", producer.produce_body({at: batch}), connection=connection), connection=connection)
    end = case.poll_until(lambda: case.inspect.end(at), lambda seen: seen == 2, within_s=10)
    case.require("the batch was appended", end, 2)
    connection.wire.close("the answer is to be lost")
    answer = producer.send_batch(at, batch)
    case.expect_code("the same batch on another connection", answer, Code.NONE)
    case.expect("its offset", base_offset(answer), 1)
    case.expect("the log", case.inspect.values(at), ["a", "b"])
