"""TV2: transaction.version 2 (KIP-890 part 2), in which every transaction has its own epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import eq

from runner.protocol.toolkit.case import Needs, inside, needs, requirement, versions
from runner.protocol.toolkit.context import NOT_NOW, CaseContext
from runner.protocol.toolkit.expected_codes import late_commit_code
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.timing import short, timed_out
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import AT_MOST, TransactionVersion
from wire.values import Producer, TopicPartition

FEATURE = "transaction.version"
#: ApiVersions up to v3 leaves out features whose lowest level is 0 (KAFKA-17011).
API_VERSIONS = 4
GOES_ON_WITHIN_S = 5.0
#: The versions that a TV1 producer sends, also to brokers that offer higher ones.
PRODUCE_TV1, END_TV1 = AT_MOST[TransactionVersion.TV1]["Produce"], AT_MOST[TransactionVersion.TV1]["EndTxn"]


def following(producer: Producer) -> Producer:
    """The id and epoch of the transaction after this one."""
    return Producer(id=producer.id, epoch=producer.epoch + 1)


@requirement("TV2-01")
def test_the_feature_is_advertised(case: CaseContext) -> None:
    """A broker offers transaction.version 0 to 2, and a new cluster has finalized 2."""
    body = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"}
    answer = case.ask("ApiVersions", body, version=API_VERSIONS)
    case.require_code("ApiVersions", answer)
    offered = [[each["MinVersion"], each["MaxVersion"]] for each in _of_feature(answer["SupportedFeatures"])]
    case.expect("the levels that are offered", offered, [[0, 2]])
    final = [each["MaxVersionLevel"] for each in _of_feature(answer["FinalizedFeatures"])]
    case.expect("the finalized level", final, [2])


def _of_feature(features: list[Body]) -> list[Body]:
    return [each for each in features if each["Name"] == FEATURE]


@requirement("TV2-02", "TV2-04")
@versions(TransactionVersion.TV2)
def test_every_end_answers_with_the_next_epoch(case: CaseContext) -> None:
    """EndTxn v5 answers with the next transaction's epoch, and its markers carry that epoch."""
    (at,) = case.topic()
    producer = transactional(case)
    markers = []
    for number, commit in enumerate((True, False, True)):
        before = producer.now
        producer.writes(at, values=[str(number)])
        answer = case.set_up("EndTxn", partial(producer.end, commit=commit))
        told = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
        case.expect(f"what EndTxn answers with, {ending(commit=commit)}", told, following(before))
        case.expect(
            "it completes",
            case.inspect.completed(producer.transactional_id),
            result(commit=commit),
        )
        markers.append(("commit" if commit else "abort", before.id, before.epoch + 1))
    epochs = [batch.producer_epoch for batch in case.inspect.batches(at) if not batch.control]
    case.expect("the epochs of the data", epochs, [0, 1, 2])
    case.expect("the markers", case.inspect.markers(at), markers)
    case.expect("what readers are given", case.inspect.committed(at), ["0", "2"])


@requirement("TV2-03")
@versions(TransactionVersion.TV2)
@inside
def test_partitions_and_offsets_are_added_by_writing(case: CaseContext) -> None:
    """The first Produce and the first TxnOffsetCommit add their partition, and the commit covers both."""
    here, there = case.topic(partitions=2)
    producer, group = transactional(case), f"{case.name}-group"
    assert producer.transactional_id is not None
    case.expect("the state before", case.inspect.state(producer.transactional_id), "Empty")
    case.expect_code("Produce", producer.produce(here), Code.NONE)
    case.expect("the partitions", case.inspect.places(producer.transactional_id), [str(here)])
    case.set_up("TxnOffsetCommit", lambda: producer.commit_offsets(group, {there: 7}))
    places = case.inspect.places(producer.transactional_id)
    topics = sorted({place.rpartition("-")[0] for place in places})
    case.expect("the topics of the transaction", topics, sorted([here.topic, "__consumer_offsets"]))
    case.expect("the number of its partitions", len(places), 2)
    case.expect("the committed offset before the end", case.inspect.offset(group, there), -1)
    producer.ends(commit=True)
    case.expect("what readers are given", case.inspect.committed(here), ["a"])
    offset = case.poll_until(
        lambda: case.inspect.offset(group, there), lambda seen: seen == 7, within_s=GOES_ON_WITHIN_S
    )
    case.expect("the committed offset", offset, 7)


@requirement("TV2-07")
@versions(TransactionVersion.TV2)
def test_a_transaction_begins_at_sequence_0(case: CaseContext) -> None:
    """The first batch on a partition without state for its producer is refused unless its sequence is 0."""
    (at,) = case.topic()
    producer = transactional(case)
    answer = producer.produce(at, ["late"], sequence=5)
    case.expect_code("sequence 5 first", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    case.expect("the end of the log", case.inspect.end(at), 0)
    case.expect_code("sequence 0 then", producer.produce(at, ["a"], sequence=0), Code.NONE)
    case.set_up("EndTxn", lambda: producer.end(commit=True))
    case.inspect.complete(producer.transactional_id)
    case.expect("what readers are given", case.inspect.committed(at), ["a"])


@requirement("TV2-14", "FENCE-07")
@versions(TransactionVersion.TV2)
def test_a_timed_out_transaction_is_not_committed(case: CaseContext) -> None:
    """After a timeout the owner cannot commit, and goes on with the epoch in the answer to its abort."""
    (at,) = case.topic()
    producer = short(case, "owner").writes(at)
    current = producer.now
    case.require("the state after the timeout", timed_out(case, producer), "CompleteAbort")
    case.expect("the markers", case.inspect.markers(at), [("abort", current.id, current.epoch + 1)])
    late = producer.copy()
    case.expect_code("Produce", late.produce(at, ["x"], sequence=1), Code.INVALID_PRODUCER_EPOCH)
    case.expect_code("AddPartitionsToTxn", late.add(at), Code.PRODUCER_FENCED)
    case.expect_code("EndTxn(commit)", late.end(commit=True), late_commit_code(case))
    answer = producer.end(commit=False)
    case.expect_code("EndTxn(abort)", answer, Code.NONE)
    case.expect("what it answers with", producer.now, following(current))
    case.expect("what readers are given", case.inspect.committed(at), [])
    producer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what readers are given of the next one", case.inspect.committed(at), ["b"])


@requirement("TV2-14")
@versions(TransactionVersion.TV2)
def test_a_timed_out_producer_continues(case: CaseContext) -> None:
    """After a timeout InitProducerId with the aborted id and epoch answers with the next epoch."""
    (at,) = case.topic()
    producer = short(case, "owner").writes(at)
    current = producer.now
    case.require("the state after the timeout", timed_out(case, producer), "CompleteAbort")
    answer = producer.init(continues=current)
    if case.since("4.0.1"):
        case.expect_code("InitProducerId with the aborted epoch", answer, Code.NONE)
        case.expect("what it answers with", producer.now, following(current))
        producer.writes(at, values=["b"]).ends(commit=True)
        case.expect("what readers are given", case.inspect.committed(at), ["b"])
    else:
        case.expect_code("InitProducerId with the aborted epoch", answer, Code.PRODUCER_FENCED)


@requirement("TV2-10")
@versions(TransactionVersion.TV1)
@needs(Needs(level=2))
def test_the_older_protocol_keeps_working(case: CaseContext) -> None:
    """On a cluster whose level is 2 transactions of TV1 requests commit, abort and keep their epoch."""
    (at,) = case.topic()
    case.require("the finalized level", case.level, 2)
    _transactions_of_the_older_protocol(case, at)


@requirement("TV2-11")
@versions(TransactionVersion.TV1)
@needs(Needs(level=0))
def test_the_older_protocol_at_level_0(case: CaseContext) -> None:
    """On a cluster whose level is 0 transactions of TV1 requests commit, abort and keep their epoch."""
    (at,) = case.topic()
    case.require("the finalized level", case.level, 0)
    _transactions_of_the_older_protocol(case, at)


def _transactions_of_the_older_protocol(case: CaseContext, at: TopicPartition) -> None:
    producer, group = transactional(case), f"{case.name}-group"
    for number, commit in enumerate((True, False, True)):
        producer.writes(at, values=[str(number)])
        case.set_up("AddOffsetsToTxn", lambda: producer.add_offsets(group))
        case.set_up("TxnOffsetCommit", partial(producer.commit_offsets, group, {at: number + 1}))
        answer = producer.end(commit=commit)
        case.expect_code(f"EndTxn, {ending(commit=commit)}", answer, Code.NONE)
        case.expect("the state", case.inspect.completed(producer.transactional_id), result(commit=commit))
        wanted = 3 if number == 2 else 1
        look, enough = partial(case.inspect.offset, group, at, stable=True), partial(eq, wanted)
        case.expect("the committed offset", case.poll_until(look, enough, within_s=GOES_ON_WITHIN_S), wanted)
    case.expect("the epochs of the markers", [epoch for _, _, epoch in case.inspect.markers(at)], [0, 0, 0])
    case.expect("what readers are given", case.inspect.committed(at), ["0", "2"])


@requirement("TV2-11")
@versions(TransactionVersion.TV2)
@needs(Needs(level=1))
def test_newer_requests_at_level_1(case: CaseContext) -> None:
    """While the finalized level is 1, TV2 requests are processed as TV2."""
    (at,) = case.topic()
    case.require("the finalized level", case.level, 1)
    producer, group = transactional(case), f"{case.name}-group"
    for number, commit in enumerate((True, False)):
        before = producer.now
        case.expect_code("Produce v12", producer.produce(at, [str(number)]), Code.NONE)
        case.set_up("TxnOffsetCommit v5", partial(producer.commit_offsets, group, {at: number + 1}))
        case.expect_code(f"EndTxn v5, {ending(commit=commit)}", producer.end(commit=commit), Code.NONE)
        case.expect("what it answers with", producer.now, following(before))
        case.expect(
            "it completes",
            case.inspect.completed(producer.transactional_id),
            result(commit=commit),
        )
    case.expect("the epochs of the markers", [epoch for _, _, epoch in case.inspect.markers(at)], [1, 2])
    case.expect("what readers are given", case.inspect.committed(at), ["0"])
    offset = case.poll_until(lambda: case.inspect.offset(group, at), lambda seen: seen == 1, within_s=GOES_ON_WITHIN_S)
    case.expect("the committed offset", offset, 1)


@requirement("TV2-11")
@versions(TransactionVersion.TV2)
@needs(Needs(level=0))
def test_newer_requests_at_level_0_leave_the_id_usable(case: CaseContext) -> None:
    """While the finalized level is 0, a TV2 request is processed or refused, and its transactional id goes on."""
    (at,) = case.topic()
    case.require("the finalized level", case.level, 0)
    requests: Mapping[str, Callable[[ScriptedProducer], Response]] = {
        "Produce": lambda producer: producer.produce(at, ["x"], sequence=0),
        "EndTxn": lambda producer: producer.end(commit=False),
        "TxnOffsetCommit": lambda producer: producer.commit_offsets(f"{case.name}-group", {at: 1}),
    }
    case.group_coordinator(f"{case.name}-group")
    producers = {api: transactional(case, api) for api in requests}
    for api, ask in requests.items():
        answer = case.poll_until(
            partial(ask, producers[api]), lambda seen: seen.code not in NOT_NOW, within_s=GOES_ON_WITHIN_S
        )
        case.expect_code(f"{api} v{answer.version}", answer, Code.NONE, Code.UNSUPPORTED_VERSION)
    # The three ids are asked in turn, so that the wait for stuck ids happens once.
    again = case.poll_until(
        lambda: [each.copy().init() for each in producers.values()],
        lambda seen: not any(each.code == Code.CONCURRENT_TRANSACTIONS for each in seen),
        within_s=GOES_ON_WITHIN_S,
    )
    for api, answer in zip(producers, again, strict=True):
        case.expect_code(f"InitProducerId after it ({api})", answer, Code.NONE)
    stable = case.poll_until(
        lambda: case.inspect.stable(at), lambda seen: seen == case.inspect.end(at), within_s=GOES_ON_WITHIN_S
    )
    case.expect("the last stable offset", stable, case.inspect.end(at))


@requirement("TV2-12")
@versions(TransactionVersion.TV2)
@needs(Needs(level=1))
def test_the_level_changes_under_a_transaction(case: CaseContext) -> None:
    """A transaction that is open while the level rises or falls ends as it began, and the next one goes on from it."""
    (at,) = case.topic()
    case.require("the finalized level", case.level, 1)
    producer = transactional(case)
    first = producer.now
    case.require_code("AddPartitionsToTxn", producer.add(at))
    case.require_code("Produce v11", producer.produce(at, ["0"], version=PRODUCE_TV1))
    _set_level(case, 2, upgrade_type=1)
    case.expect_code("Produce v11 at level 2", producer.produce(at, ["1"], version=PRODUCE_TV1), Code.NONE)
    case.expect_code("EndTxn v4 at level 2", producer.end(commit=True, version=END_TV1), Code.NONE)
    case.expect("it completes", case.inspect.completed(producer.transactional_id), "CompleteCommit")
    case.expect("the epoch", producer.now, first)
    case.expect_code("Produce v12, the next transaction", producer.produce(at, ["2"]), Code.NONE)
    case.expect_code("EndTxn v5", producer.end(commit=True), Code.NONE)
    case.expect("it completes", case.inspect.completed(producer.transactional_id), "CompleteCommit")
    case.expect("the epoch", producer.now, following(first))
    case.expect_code("Produce v12 at level 2", producer.produce(at, ["3"]), Code.NONE)
    _set_level(case, 1, upgrade_type=2)
    case.expect_code("Produce v12 at level 1", producer.produce(at, ["4"]), Code.NONE)
    case.expect_code("EndTxn v5 at level 1", producer.end(commit=True), Code.NONE)
    case.expect("it completes", case.inspect.completed(producer.transactional_id), "CompleteCommit")
    case.require_code("AddPartitionsToTxn, the last transaction", producer.add(at))
    case.expect_code("Produce v11", producer.produce(at, ["5"], version=PRODUCE_TV1), Code.NONE)
    case.expect_code("EndTxn v4", producer.end(commit=True, version=END_TV1), Code.NONE)
    stable = case.poll_until(partial(case.inspect.stable, at), partial(eq, 10), within_s=GOES_ON_WITHIN_S)
    case.expect("the last stable offset", stable, 10)
    case.expect("what readers are given", case.inspect.committed(at), ["0", "1", "2", "3", "4", "5"])
    case.expect("the epochs of the markers", [epoch for _, _, epoch in case.inspect.markers(at)], [0, 1, 2, 2])


def _set_level(case: CaseContext, level: int, *, upgrade_type: int) -> None:
    """Set up: finalize another level; 1 raises it, 2 lowers it if that loses nothing."""
    update = {"Feature": FEATURE, "MaxVersionLevel": level, "UpgradeType": upgrade_type}
    case.require_code(f"UpdateFeatures to {level}", case.ask("UpdateFeatures", {"FeatureUpdates": [update]}))
    seen = case.poll_until(
        lambda: case.open_connection(case.brokers[0]).wire.features.get(FEATURE),
        partial(eq, level),
        within_s=GOES_ON_WITHIN_S,
    )
    case.require("the finalized level", seen, level)
