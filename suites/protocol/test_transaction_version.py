"""TV2: transaction.version 2 (KIP-890 part 2), in which every transaction has an epoch of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import eq

from runner.protocol.toolkit.case import Needs, generations, needs, requirement
from runner.protocol.toolkit.context import NOT_NOW, Stage
from runner.protocol.toolkit.expected_codes import late_commit_code
from runner.protocol.toolkit.inspector import result
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.timing import short, timed_out
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import AT_MOST, Generation
from wire.values import Producer, TopicPartition

FEATURE = "transaction.version"
#: ApiVersions up to v3 leaves out features whose lowest level is 0 (KAFKA-17011).
API_VERSIONS = 4
GOES_ON_WITHIN_S = 5.0
#: What a TV1 producer sends, whatever the broker offers.
PRODUCE_TV1, END_TV1 = AT_MOST[Generation.TV1]["Produce"], AT_MOST[Generation.TV1]["EndTxn"]


def following(producer: Producer) -> Producer:
    """The id and epoch of the transaction after this one."""
    return Producer(id=producer.id, epoch=producer.epoch + 1)


@requirement("TV2-01")
def test_the_feature_is_advertised(stage: Stage) -> None:
    """A broker offers transaction.version 0 to 2, and a new cluster has finalized 2."""
    body = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"}
    answer = stage.ask("ApiVersions", body, version=API_VERSIONS)
    stage.require_code("ApiVersions", answer)
    offered = [[each["MinVersion"], each["MaxVersion"]] for each in _of_feature(answer["SupportedFeatures"])]
    stage.expect("the levels that are offered", offered, [[0, 2]])
    final = [each["MaxVersionLevel"] for each in _of_feature(answer["FinalizedFeatures"])]
    stage.expect("the finalized level", final, [2])


def _of_feature(features: list[Body]) -> list[Body]:
    return [each for each in features if each["Name"] == FEATURE]


@requirement("TV2-02", "TV2-04")
@generations(Generation.TV2)
def test_every_end_answers_with_the_next_epoch(stage: Stage) -> None:
    """EndTxn v5 answers with the next transaction's epoch, and its markers carry that epoch."""
    (at,) = stage.topic()
    producer = transactional(stage)
    markers = []
    for number, commit in enumerate((True, False, True)):
        before = producer.now
        producer.writes(at, values=[str(number)])
        answer = stage.set_up("EndTxn", partial(producer.end, commit=commit))
        told = Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])
        stage.expect(f"what EndTxn answers with, commit {commit}", told, following(before))
        stage.expect(
            "it completes",
            stage.see.completed(producer.transactional_id),
            result(commit=commit),
        )
        markers.append(("commit" if commit else "abort", before.id, before.epoch + 1))
    epochs = [batch.producer_epoch for batch in stage.see.batches(at) if not batch.control]
    stage.expect("the epochs of the data", epochs, [0, 1, 2])
    stage.expect("the markers", stage.see.markers(at), markers)
    stage.expect("what readers are given", stage.see.committed(at), ["0", "2"])


@requirement("TV2-03")
@generations(Generation.TV2)
def test_partitions_and_offsets_are_added_by_writing(stage: Stage) -> None:
    """The first Produce and the first TxnOffsetCommit add their partition, and the commit covers both."""
    here, there = stage.topic(partitions=2)
    producer, group = transactional(stage), f"{stage.name}-group"
    assert producer.transactional_id is not None
    stage.expect("the state before", stage.see.state(producer.transactional_id), "Empty")
    stage.expect_code("Produce", producer.produce(here), Code.NONE)
    stage.expect("the partitions", stage.see.places(producer.transactional_id), [str(here)])
    stage.set_up("TxnOffsetCommit", lambda: producer.commit_offsets(group, {there: 7}))
    places = stage.see.places(producer.transactional_id)
    topics = sorted({place.rpartition("-")[0] for place in places})
    stage.expect("the topics of the transaction", topics, sorted([here.topic, "__consumer_offsets"]))
    stage.expect("the number of its partitions", len(places), 2)
    stage.expect("the committed offset before the end", stage.see.offset(group, there), -1)
    producer.ends(commit=True)
    stage.expect("what readers are given", stage.see.committed(here), ["a"])
    offset = stage.until(lambda: stage.see.offset(group, there), lambda seen: seen == 7, within_s=GOES_ON_WITHIN_S)
    stage.expect("the committed offset", offset, 7)


@requirement("TV2-07")
@generations(Generation.TV2)
def test_a_transaction_begins_at_sequence_0(stage: Stage) -> None:
    """The first batch on a partition without state for its producer is refused unless its sequence is 0."""
    (at,) = stage.topic()
    producer = transactional(stage)
    answer = producer.produce(at, ["late"], sequence=5)
    stage.expect_code("sequence 5 first", answer, Code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    stage.expect("the end of the log", stage.see.end(at), 0)
    stage.expect_code("sequence 0 then", producer.produce(at, ["a"], sequence=0), Code.NONE)
    stage.set_up("EndTxn", lambda: producer.end(commit=True))
    stage.see.complete(producer.transactional_id)
    stage.expect("what readers are given", stage.see.committed(at), ["a"])


@requirement("TV2-14", "FENCE-07")
@generations(Generation.TV2)
def test_a_timed_out_transaction_is_not_committed(stage: Stage) -> None:
    """After a timeout the owner cannot commit, and goes on with the epoch that its abort is answered with."""
    (at,) = stage.topic()
    producer = short(stage, "owner").writes(at)
    current = producer.now
    stage.require("the state after the timeout", timed_out(stage, producer), "CompleteAbort")
    stage.expect("the markers", stage.see.markers(at), [("abort", current.id, current.epoch + 1)])
    late = producer.copy()
    stage.expect_code("Produce", late.produce(at, ["x"], sequence=1), Code.INVALID_PRODUCER_EPOCH)
    stage.expect_code("AddPartitionsToTxn", late.add(at), Code.PRODUCER_FENCED)
    stage.expect_code("EndTxn(commit)", late.end(commit=True), late_commit_code(stage))
    answer = producer.end(commit=False)
    stage.expect_code("EndTxn(abort)", answer, Code.NONE)
    stage.expect("what it answers with", producer.now, following(current))
    stage.expect("what readers are given", stage.see.committed(at), [])
    producer.writes(at, values=["b"]).ends(commit=True)
    stage.expect("what readers are given of the next one", stage.see.committed(at), ["b"])


@requirement("TV2-14")
@generations(Generation.TV2)
def test_a_timed_out_producer_continues(stage: Stage) -> None:
    """After a timeout InitProducerId with the aborted id and epoch answers with the next epoch."""
    (at,) = stage.topic()
    producer = short(stage, "owner").writes(at)
    current = producer.now
    stage.require("the state after the timeout", timed_out(stage, producer), "CompleteAbort")
    answer = producer.init(continues=current)
    if stage.since("4.0.1"):
        stage.expect_code("InitProducerId with the aborted epoch", answer, Code.NONE)
        stage.expect("what it answers with", producer.now, following(current))
        producer.writes(at, values=["b"]).ends(commit=True)
        stage.expect("what readers are given", stage.see.committed(at), ["b"])
    else:
        stage.expect_code("InitProducerId with the aborted epoch", answer, Code.PRODUCER_FENCED)


@requirement("TV2-10")
@generations(Generation.TV1)
@needs(Needs(level=2))
def test_the_older_protocol_keeps_working(stage: Stage) -> None:
    """On a cluster whose level is 2 transactions of TV1 requests commit, abort and keep their epoch."""
    (at,) = stage.topic()
    stage.require("the finalized level", stage.level, 2)
    _transactions_of_the_older_protocol(stage, at)


@requirement("TV2-11")
@generations(Generation.TV1)
@needs(Needs(level=0))
def test_the_older_protocol_at_level_0(stage: Stage) -> None:
    """On a cluster whose level is 0 transactions of TV1 requests commit, abort and keep their epoch."""
    (at,) = stage.topic()
    stage.require("the finalized level", stage.level, 0)
    _transactions_of_the_older_protocol(stage, at)


def _transactions_of_the_older_protocol(stage: Stage, at: TopicPartition) -> None:
    producer, group = transactional(stage), f"{stage.name}-group"
    for number, commit in enumerate((True, False, True)):
        producer.writes(at, values=[str(number)])
        stage.set_up("AddOffsetsToTxn", lambda: producer.add_offsets(group))
        stage.set_up("TxnOffsetCommit", partial(producer.commit_offsets, group, {at: number + 1}))
        answer = producer.end(commit=commit)
        stage.expect_code(f"EndTxn, commit {commit}", answer, Code.NONE)
        stage.expect("the state", stage.see.completed(producer.transactional_id), result(commit=commit))
        wanted = 3 if number == 2 else 1
        look, enough = partial(stage.see.offset, group, at, stable=True), partial(eq, wanted)
        stage.expect("the committed offset", stage.until(look, enough, within_s=GOES_ON_WITHIN_S), wanted)
    stage.expect("the epochs of the markers", [epoch for _, _, epoch in stage.see.markers(at)], [0, 0, 0])
    stage.expect("what readers are given", stage.see.committed(at), ["0", "2"])


@requirement("TV2-11")
@generations(Generation.TV2)
@needs(Needs(level=1))
def test_newer_requests_at_level_1(stage: Stage) -> None:
    """While the finalized level is 1, TV2 requests are processed as TV2."""
    (at,) = stage.topic()
    stage.require("the finalized level", stage.level, 1)
    producer, group = transactional(stage), f"{stage.name}-group"
    for number, commit in enumerate((True, False)):
        before = producer.now
        stage.expect_code("Produce v12", producer.produce(at, [str(number)]), Code.NONE)
        stage.set_up("TxnOffsetCommit v5", partial(producer.commit_offsets, group, {at: number + 1}))
        stage.expect_code(f"EndTxn v5, commit {commit}", producer.end(commit=commit), Code.NONE)
        stage.expect("what it answers with", producer.now, following(before))
        stage.expect(
            "it completes",
            stage.see.completed(producer.transactional_id),
            result(commit=commit),
        )
    stage.expect("the epochs of the markers", [epoch for _, _, epoch in stage.see.markers(at)], [1, 2])
    stage.expect("what readers are given", stage.see.committed(at), ["0"])
    offset = stage.until(lambda: stage.see.offset(group, at), lambda seen: seen == 1, within_s=GOES_ON_WITHIN_S)
    stage.expect("the committed offset", offset, 1)


@requirement("TV2-11")
@generations(Generation.TV2)
@needs(Needs(level=0))
def test_newer_requests_at_level_0_leave_the_id_usable(stage: Stage) -> None:
    """While the finalized level is 0, a TV2 request is processed or refused, and its transactional id goes on."""
    (at,) = stage.topic()
    stage.require("the finalized level", stage.level, 0)
    requests: Mapping[str, Callable[[ScriptedProducer], Answer]] = {
        "Produce": lambda producer: producer.produce(at, ["x"], sequence=0),
        "EndTxn": lambda producer: producer.end(commit=False),
        "TxnOffsetCommit": lambda producer: producer.commit_offsets(f"{stage.name}-group", {at: 1}),
    }
    stage.group_coordinator(f"{stage.name}-group")
    producers = {api: transactional(stage, api) for api in requests}
    for api, ask in requests.items():
        answer = stage.until(
            partial(ask, producers[api]), lambda seen: seen.code not in NOT_NOW, within_s=GOES_ON_WITHIN_S
        )
        stage.expect_code(f"{api} v{answer.version}", answer, Code.NONE, Code.UNSUPPORTED_VERSION)
    # Asked for in turns: where all three ids are stuck, that is waited for once.
    again = stage.until(
        lambda: [each.copy().init() for each in producers.values()],
        lambda seen: not any(each.code == Code.CONCURRENT_TRANSACTIONS for each in seen),
        within_s=GOES_ON_WITHIN_S,
    )
    for api, answer in zip(producers, again, strict=True):
        stage.expect_code(f"InitProducerId after it ({api})", answer, Code.NONE)
    stable = stage.until(
        lambda: stage.see.stable(at), lambda seen: seen == stage.see.end(at), within_s=GOES_ON_WITHIN_S
    )
    stage.expect("the last stable offset", stable, stage.see.end(at))


@requirement("TV2-12")
@generations(Generation.TV2)
@needs(Needs(level=1))
def test_the_level_changes_under_a_transaction(stage: Stage) -> None:
    """A transaction that is open while the level rises or falls ends as it began, and the next one goes on from it."""
    (at,) = stage.topic()
    stage.require("the finalized level", stage.level, 1)
    producer = transactional(stage)
    first = producer.now
    stage.require_code("AddPartitionsToTxn", producer.add(at))
    stage.require_code("Produce v11", producer.produce(at, ["0"], version=PRODUCE_TV1))
    _set_level(stage, 2, upgrade_type=1)
    stage.expect_code("Produce v11 at level 2", producer.produce(at, ["1"], version=PRODUCE_TV1), Code.NONE)
    stage.expect_code("EndTxn v4 at level 2", producer.end(commit=True, version=END_TV1), Code.NONE)
    stage.expect("it completes", stage.see.completed(producer.transactional_id), "CompleteCommit")
    stage.expect("the epoch", producer.now, first)
    stage.expect_code("Produce v12, the next transaction", producer.produce(at, ["2"]), Code.NONE)
    stage.expect_code("EndTxn v5", producer.end(commit=True), Code.NONE)
    stage.expect("it completes", stage.see.completed(producer.transactional_id), "CompleteCommit")
    stage.expect("the epoch", producer.now, following(first))
    stage.expect_code("Produce v12 at level 2", producer.produce(at, ["3"]), Code.NONE)
    _set_level(stage, 1, upgrade_type=2)
    stage.expect_code("Produce v12 at level 1", producer.produce(at, ["4"]), Code.NONE)
    stage.expect_code("EndTxn v5 at level 1", producer.end(commit=True), Code.NONE)
    stage.expect("it completes", stage.see.completed(producer.transactional_id), "CompleteCommit")
    stage.require_code("AddPartitionsToTxn, the last transaction", producer.add(at))
    stage.expect_code("Produce v11", producer.produce(at, ["5"], version=PRODUCE_TV1), Code.NONE)
    stage.expect_code("EndTxn v4", producer.end(commit=True, version=END_TV1), Code.NONE)
    stable = stage.until(partial(stage.see.stable, at), partial(eq, 10), within_s=GOES_ON_WITHIN_S)
    stage.expect("the last stable offset", stable, 10)
    stage.expect("what readers are given", stage.see.committed(at), ["0", "1", "2", "3", "4", "5"])
    stage.expect("the epochs of the markers", [epoch for _, _, epoch in stage.see.markers(at)], [0, 1, 2, 2])


def _set_level(stage: Stage, level: int, *, upgrade_type: int) -> None:
    """Set up: finalize another level; 1 raises it, 2 lowers it where nothing is lost by that."""
    update = {"Feature": FEATURE, "MaxVersionLevel": level, "UpgradeType": upgrade_type}
    stage.require_code(f"UpdateFeatures to {level}", stage.ask("UpdateFeatures", {"FeatureUpdates": [update]}))
    seen = stage.until(
        lambda: stage.another_line(stage.brokers[0]).connection.features.get(FEATURE),
        partial(eq, level),
        within_s=GOES_ON_WITHIN_S,
    )
    stage.require("the finalized level", seen, level)
