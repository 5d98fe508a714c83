"""COORD: the coordinator as a state machine over its log, what it does with markers, and what others may not do for it.

Failovers in the midst of a transaction, and markers that are held back, need faults: they are decided elsewhere.
"""

from __future__ import annotations

from functools import partial

from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.case import BOTH, THREE, generations, needs, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.coordinators import whole_log
from runner.protocol.toolkit.expected_codes import fencing_code
from runner.protocol.toolkit.fetching import COMMITTED, coordinator_epoch, fetch, write_marker
from runner.protocol.toolkit.inspector import COMPLETE
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Answer
from verification.checks.transaction_states import judge
from verification.scripts.script import Relation
from verification.vocabulary import transaction_log
from verification.vocabulary.transaction_log import Entry
from wire.codes import ErrorCode as Code
from wire.transaction_versions import Generation
from wire.values import CoordinatorType, TopicPartition

#: Requests for one transactional id at the same time: connections, and requests in flight on each.
STORM = (10, 5)


@requirement("COORD-01")
@generations(*BOTH)
def test_the_transaction_log_is_a_legal_history(stage: Stage) -> None:
    """What the log says of this case's ids is what was done, and their histories are legal paths."""
    first, second = stage.topic(partitions=2)
    producer, late = transactional(stage, "id"), transactional(stage, "late", timeout_ms=1000)
    producer.writes(first).writes(second).ends(commit=True)
    producer.writes(first).ends(commit=False)
    producer.ready()
    producer.writes(first)
    producer.ready()  # it meets its own open transaction, and aborts it
    late.writes(first)
    state = stage.until(lambda: stage.see.state(late.transactional_id or ""), COMPLETE.__contains__, within_s=20)
    stage.require("the transaction that timed out", state, "CompleteAbort")
    entries = whole_log(stage)
    own = [each for each in entries if each.transactional_id == producer.transactional_id]
    stage.expect("the states of the id, repetitions left out", _path(own), _EXPECTED_PATH)
    stage.expect("their epochs, at each change of state", _epochs(own), _EPOCHS[stage.generation])
    decided = [sorted(each.places) for each in own if each.state.startswith("Prepare")]
    stage.expect("the partitions that were decided", decided, [[str(first), str(second)], [str(first)], [str(first)]])
    own = [each for each in entries if each.transactional_id == late.transactional_id]
    stage.expect(
        "the states of the id that timed out", _path(own), ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    )
    # Other scripts' ids share the log: what was done to those on purpose is theirs to judge. Of theirs the offsets count,
    # which show that nothing is missing between two records of ours.
    judgement = judge(entries)
    mine = {each.partition for each in entries if each.transactional_id.startswith(f"{stage.name}-")}
    stage.require("this case's partitions with holes", sorted(mine & set(judgement.compacted)), [])
    illegal = [str(each) for each in judgement.illegal if each.entry.transactional_id.startswith(f"{stage.name}-")]
    stage.expect("illegal steps of this case's ids", illegal[:5], [])


_EXPECTED_PATH = [
    *("Empty", "Ongoing", "PrepareCommit", "CompleteCommit"),
    *("Ongoing", "PrepareAbort", "CompleteAbort"),
    *("Empty", "Ongoing", "PrepareAbort", "CompleteAbort"),
    "Empty",
]
#: TV1: the second initialisation is epoch 1, the third fences it with 2 and goes on with 3. In TV2 each end is an epoch.
_EPOCHS = {
    Generation.TV1: [0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3],
    Generation.TV2: [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5],
}


def _path(entries: list[Entry]) -> list[str]:
    return [str(each.state) for each in _changes(entries)]


def _epochs(entries: list[Entry]) -> list[int]:
    return [each.epoch for each in _changes(entries)]


def _changes(entries: list[Entry]) -> list[Entry]:
    return [each for number, each in enumerate(entries) if not number or entries[number - 1].state != each.state]


@requirement("COORD-02")
@needs(THREE)
@generations(*BOTH)
def test_the_coordinator_follows_from_the_id(stage: Stage) -> None:
    """The leader of the partition that the id hashes to coordinates it, every broker says so, and the others decline."""
    # The last two have negative hashes, and characters beyond one byte and beyond the basic plane.
    for name in ("a", f"{stage.name}-id", "zzzzzzzzzzzz", f"grün-{stage.name}", f"𝄞-{stage.name}"):
        coordinator = stage.coordinator(name)
        partitions = stage.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions
        leader = partitions[partition_of(name, len(partitions))].leader
        stage.expect(f"{name}: the coordinator", coordinator, leader)
        for broker in stage.brokers:
            told = stage.ask("FindCoordinator", partial(_look_for, name), broker=broker)
            found = told["Coordinators"][0] if told.version >= 4 else {"NodeId": told["NodeId"]}
            stage.expect(f"{name}: whom broker {broker} names", found["NodeId"], coordinator)
    producer = transactional(stage, "id")
    identity = {"ProducerId": producer.now.id, "ProducerEpoch": producer.now.epoch}
    added = {
        "V3AndBelowTransactionalId": producer.transactional_id,
        "V3AndBelowProducerId": producer.now.id,
        "V3AndBelowProducerEpoch": producer.now.epoch,
        "V3AndBelowTopics": [{"Name": stage.topic()[0].topic, "Partitions": [0]}],
    }
    named = {"TransactionalId": producer.transactional_id}
    for broker in stage.brokers:
        if broker == stage.coordinator(producer.transactional_id or ""):
            continue
        for api, body in (
            ("InitProducerId", named | {"TransactionTimeoutMs": 60_000}),
            ("AddPartitionsToTxn", added),
            ("AddOffsetsToTxn", named | identity | {"GroupId": stage.name}),
            ("EndTxn", named | identity | {"Committed": True}),
        ):
            stage.expect_code(f"{api} at broker {broker}", stage.ask(api, body, broker=broker), Code.NOT_COORDINATOR)
    stage.expect("the state", stage.see.state(producer.transactional_id or ""), "Empty")


def _look_for(name: str, version: int) -> dict[str, object]:
    return {"KeyType": int(CoordinatorType.TRANSACTION)} | (
        {"Key": name} if version < 4 else {"CoordinatorKeys": [name]}
    )


@requirement("COORD-08")
@generations(*BOTH)
def test_a_marker_that_is_sent_twice_changes_nothing(stage: Stage) -> None:
    """The same marker once more takes an offset at most; stable offset, visibility and aborted list are as before."""
    (at,) = stage.topic()
    producer, other = transactional(stage, "id"), transactional(stage, "open")
    for commit in (True, False):
        producer.writes(at, values=["a", "b"]).ends(commit=commit)
        _kind, identity, epoch = stage.see.markers(at)[-1]
        before = stage.see.committed(at), fetch(stage, at, COMMITTED).aborted
        answer = write_marker(
            stage,
            at,
            producer_id=identity,
            epoch=epoch,
            coordinator_epoch=coordinator_epoch(stage, at, identity),
            commit=commit,
            transaction_version=2 if stage.generation is Generation.TV2 else 0,
        )
        word = "commit" if commit else "abort"
        stage.expect_code(f"the {word} marker again", answer, Code.NONE)
        stage.expect(f"{word}: the stable offset", stage.see.stable(at), stage.see.end(at))
        stage.expect(
            f"{word}: what is visible, and the aborted list",
            (stage.see.committed(at), fetch(stage, at, COMMITTED).aborted),
            before,
        )
    other.writes(at, values=["c"]).ends(commit=True)
    producer.writes(at, values=["d"]).ends(commit=True)
    stage.expect("what is visible in the end", stage.see.committed(at), ["a", "b", "c", "d"])


@requirement("COORD-10")
def test_a_marker_of_an_old_coordinator_is_refused(stage: Stage) -> None:
    """A marker with a lower coordinator epoch than the leader has seen for the producer is refused and not appended."""
    (at,) = stage.topic()
    # An idempotent producer has no coordinator whose own markers could be refused afterwards.
    producer = ScriptedProducer(stage, None).ready()
    producer.writes(at)
    send = partial(write_marker, stage, at, producer_id=producer.now.id, epoch=producer.now.epoch)
    stage.require_code("a marker of coordinator epoch 5", send(coordinator_epoch=5))
    end = stage.see.end(at)
    for commit in (True, False):
        answer = send(coordinator_epoch=4, commit=commit)
        stage.expect_code(f"coordinator epoch 4, commit={commit}", answer, Code.TRANSACTION_COORDINATOR_FENCED)
        stage.expect("the end of the log", stage.see.end(at), end)
    stage.expect_code("coordinator epoch 5 again", send(coordinator_epoch=5), Code.NONE)
    stage.expect("the markers", [kind for kind, _, _ in stage.see.markers(at)], ["abort", "abort"])


@requirement("COORD-12")
@generations(*BOTH)
def test_a_topic_that_is_deleted_under_its_transaction(stage: Stage) -> None:
    """A transaction one of whose topics is deleted completes on its other partitions."""
    (stays,) = stage.topic()
    (goes,) = stage.topic()
    producer = transactional(stage, "id")
    producer.writes(stays, goes, values=["a"])
    replicas.deleted(stage, goes.topic)
    stage.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
    stage.expect("the state", stage.see.completed(producer.transactional_id), "CompleteCommit")
    stage.expect("what is visible on the other partition", stage.see.committed(stays), ["a"])
    producer.writes(stays, values=["b"]).ends(commit=True)
    stage.expect("the next transaction", stage.see.committed(stays), ["a", "b"])


@requirement("COORD-16")
@generations(*BOTH)
def test_a_storm_of_initialisations(stage: Stage) -> None:
    """Of initialisations at the same time each epoch is won by one, the others are refused, and the id is usable."""
    producer = transactional(stage, "id")
    (at,) = stage.topic()
    producer.writes(at)  # the first one to come has a transaction to abort
    answers = _storm(stage, producer)
    stage.set_up("an initialisation between", producer.init)
    answers += _storm(stage, producer)  # and here there is none: somebody wins
    won = [(each["ProducerId"], each["ProducerEpoch"]) for each in answers if each.code == 0]
    codes = {each.code for each in answers}
    stage.expect("epochs that were won twice", len(won) - len(set(won)), 0)
    lawful = {int(code) for code in (Code.NONE, Code.CONCURRENT_TRANSACTIONS, fencing_code(answers[0]))}
    stage.expect("codes but for yes, wait and the fencing one", sorted(codes - lawful), [])
    stage.require("epochs that were won", len(won), 2, Relation.AT_LEAST)
    stage.expect_code("one more initialisation", stage.answered(producer.init), Code.NONE)
    later = (producer.now.id, producer.now.epoch)
    stage.expect("it is the highest epoch", max([*won, later]), later)
    stage.expect("the state", stage.see.state(producer.transactional_id or ""), "Empty")
    stage.expect("the partition's open transactions", stage.see.open_at(at), [])
    producer.writes(at, values=["b"]).ends(commit=True)
    stage.expect("what is visible", stage.see.committed(at), ["b"])


def _storm(stage: Stage, producer: ScriptedProducer) -> list[Answer]:
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": 60_000}
    coordinator = stage.coordinator(producer.transactional_id or "")
    lines = [stage.another_line(coordinator) for _ in range(STORM[0])]
    sent = [
        stage.send(stage.request("InitProducerId", body, line=line), line=line)
        for _ in range(STORM[1])
        for line in lines
    ]
    return [each.receive() for each in sent]


@requirement("COORD-18")
@needs(THREE)
def test_a_marker_for_another_broker_is_refused(stage: Stage) -> None:
    """A broker that does not lead the partition, or does not know it, refuses its marker; nothing is appended."""
    (at,) = stage.topic()
    producer = ScriptedProducer(stage, None).ready()
    producer.writes(at)
    send = partial(write_marker, stage, producer_id=producer.now.id, epoch=producer.now.epoch, coordinator_epoch=0)
    for broker in stage.brokers:
        if broker != stage.leader(at):
            stage.expect_code(f"at the follower {broker}", send(at, broker=broker), Code.NOT_LEADER_OR_FOLLOWER)
        unknown = TopicPartition(f"{stage.name}-nowhere", 0)
        answer = send(unknown, broker=broker)
        stage.expect_code(f"an unknown partition at {broker}", answer, Code.UNKNOWN_TOPIC_OR_PARTITION)
    stage.expect("the end of the log", stage.see.end(at), 1)
