"""COORD: the coordinator as a state machine over its log, its markers, and requests that other brokers must refuse.

Failovers during a transaction, and markers that are held, need faults: see test_failover and test_held_frames.
"""

from __future__ import annotations

from functools import partial

from fixtures.clusters.observing.coordinators import partition_of
from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.case import BOTH, THREE, needs, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.coordinators import whole_log
from runner.protocol.toolkit.expected_codes import fencing_code
from runner.protocol.toolkit.fetching import COMMITTED, coordinator_epoch, fetch, write_marker
from runner.protocol.toolkit.inspector import COMPLETE, ending
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Response
from verification.checks.transaction_states import judge
from verification.scripts.script import Relation
from verification.vocabulary import transaction_log
from verification.vocabulary.transaction_log import Entry
from wire.codes import ErrorCode as Code
from wire.transaction_versions import TransactionVersion
from wire.values import CoordinatorType, TopicPartition

#: Requests for one transactional id at the same time: connections, and requests in flight on each.
STORM = (10, 5)


@requirement("COORD-01")
@versions(*BOTH)
def test_the_transaction_log_is_a_legal_history(case: CaseContext) -> None:
    """The log has exactly the transactions of this case's ids, and their histories are legal paths of states."""
    first, second = case.topic(partitions=2)
    producer, late = transactional(case, "id"), transactional(case, "late", timeout_ms=1000)
    producer.writes(first).writes(second).ends(commit=True)
    producer.writes(first).ends(commit=False)
    producer.ready()
    producer.writes(first)
    producer.ready()  # it finds its own open transaction, and aborts it
    late.writes(first)
    state = case.poll_until(lambda: case.inspect.state(late.transactional_id or ""), COMPLETE.__contains__, within_s=20)
    case.require("the transaction that timed out", state, "CompleteAbort")
    entries = whole_log(case)
    own = [each for each in entries if each.transactional_id == producer.transactional_id]
    case.expect("the states of the id, repetitions left out", _path(own), _EXPECTED_PATH)
    case.expect("their epochs, at each change of state", _epochs(own), _EPOCHS[case.transaction_version])
    decided = [sorted(each.places) for each in own if each.state.startswith("Prepare")]
    case.expect("the partitions that were decided", decided, [[str(first), str(second)], [str(first)], [str(first)]])
    own = [each for each in entries if each.transactional_id == late.transactional_id]
    case.expect(
        "the states of the id that timed out", _path(own), ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    )
    # Ids of other cases share the log, and those cases judge them. Only their offsets count here: they show that no
    # record is missing between two records of this case.
    judgement = judge(entries)
    mine = {each.partition for each in entries if each.transactional_id.startswith(f"{case.name}-")}
    case.require("this case's partitions with holes", sorted(mine & set(judgement.compacted)), [])
    illegal = [str(each) for each in judgement.illegal if each.entry.transactional_id.startswith(f"{case.name}-")]
    case.expect("illegal steps of this case's ids", illegal[:5], [])


_EXPECTED_PATH = [
    *("Empty", "Ongoing", "PrepareCommit", "CompleteCommit"),
    *("Ongoing", "PrepareAbort", "CompleteAbort"),
    *("Empty", "Ongoing", "PrepareAbort", "CompleteAbort"),
    "Empty",
]
#: TV1: the second initialisation has epoch 1; the third fences it with 2 and goes on with 3. In TV2 each end adds one.
_EPOCHS = {
    TransactionVersion.TV1: [0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3],
    TransactionVersion.TV2: [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5],
}


def _path(entries: list[Entry]) -> list[str]:
    return [str(each.state) for each in _changes(entries)]


def _epochs(entries: list[Entry]) -> list[int]:
    return [each.epoch for each in _changes(entries)]


def _changes(entries: list[Entry]) -> list[Entry]:
    return [each for number, each in enumerate(entries) if not number or entries[number - 1].state != each.state]


@requirement("COORD-02")
@needs(THREE)
@versions(*BOTH)
def test_the_coordinator_follows_from_the_id(case: CaseContext) -> None:
    """The leader of the partition that the id hashes to coordinates it, every broker says so, and the others decline."""
    # The last two have negative hashes, and characters of more than one byte and beyond the basic plane.
    for name in ("a", f"{case.name}-id", "zzzzzzzzzzzz", f"grün-{case.name}", f"𝄞-{case.name}"):
        coordinator = case.coordinator(name)
        partitions = case.client.metadata([transaction_log.TOPIC]).topics[transaction_log.TOPIC].partitions
        leader = partitions[partition_of(name, len(partitions))].leader
        case.expect(f"{name}: the coordinator", coordinator, leader)
        for broker in case.brokers:
            told = case.ask("FindCoordinator", partial(_look_for, name), broker=broker)
            found = told["Coordinators"][0] if told.version >= 4 else {"NodeId": told["NodeId"]}
            case.expect(f"{name}: whom broker {broker} names", found["NodeId"], coordinator)
    producer = transactional(case, "id")
    identity = {"ProducerId": producer.now.id, "ProducerEpoch": producer.now.epoch}
    added = {
        "V3AndBelowTransactionalId": producer.transactional_id,
        "V3AndBelowProducerId": producer.now.id,
        "V3AndBelowProducerEpoch": producer.now.epoch,
        "V3AndBelowTopics": [{"Name": case.topic()[0].topic, "Partitions": [0]}],
    }
    named = {"TransactionalId": producer.transactional_id}
    for broker in case.brokers:
        if broker == case.coordinator(producer.transactional_id or ""):
            continue
        for api, body in (
            ("InitProducerId", named | {"TransactionTimeoutMs": 60_000}),
            ("AddPartitionsToTxn", added),
            ("AddOffsetsToTxn", named | identity | {"GroupId": case.name}),
            ("EndTxn", named | identity | {"Committed": True}),
        ):
            case.expect_code(f"{api} at broker {broker}", case.ask(api, body, broker=broker), Code.NOT_COORDINATOR)
    case.expect("the state", case.inspect.state(producer.transactional_id or ""), "Empty")


def _look_for(name: str, version: int) -> dict[str, object]:
    return {"KeyType": int(CoordinatorType.TRANSACTION)} | (
        {"Key": name} if version < 4 else {"CoordinatorKeys": [name]}
    )


@requirement("COORD-08")
@versions(*BOTH)
def test_a_marker_that_is_sent_twice_changes_nothing(case: CaseContext) -> None:
    """The same marker once more takes an offset at most; stable offset, visibility and aborted list are as before."""
    (at,) = case.topic()
    producer, other = transactional(case, "id"), transactional(case, "open")
    for commit in (True, False):
        producer.writes(at, values=["a", "b"]).ends(commit=commit)
        _kind, identity, epoch = case.inspect.markers(at)[-1]
        before = case.inspect.committed(at), fetch(case, at, COMMITTED).aborted
        answer = write_marker(
            case,
            at,
            producer_id=identity,
            epoch=epoch,
            coordinator_epoch=coordinator_epoch(case, at, identity),
            commit=commit,
            transaction_version=2 if case.transaction_version is TransactionVersion.TV2 else 0,
        )
        word = "commit" if commit else "abort"
        case.expect_code(f"the {word} marker again", answer, Code.NONE)
        case.expect(f"{word}: the stable offset", case.inspect.stable(at), case.inspect.end(at))
        case.expect(
            f"{word}: what is visible, and the aborted list",
            (case.inspect.committed(at), fetch(case, at, COMMITTED).aborted),
            before,
        )
    other.writes(at, values=["c"]).ends(commit=True)
    producer.writes(at, values=["d"]).ends(commit=True)
    case.expect("what is visible in the end", case.inspect.committed(at), ["a", "b", "c", "d"])


@requirement("COORD-10")
def test_a_marker_of_an_old_coordinator_is_refused(case: CaseContext) -> None:
    """A marker with a lower coordinator epoch than the leader has seen for the producer is refused and not appended."""
    (at,) = case.topic()
    # An idempotent producer has no coordinator whose own markers could be refused afterwards.
    producer = ScriptedProducer(case, None).ready()
    producer.writes(at)
    send = partial(write_marker, case, at, producer_id=producer.now.id, epoch=producer.now.epoch)
    case.require_code("a marker of coordinator epoch 5", send(coordinator_epoch=5))
    end = case.inspect.end(at)
    for commit in (True, False):
        answer = send(coordinator_epoch=4, commit=commit)
        case.expect_code(f"coordinator epoch 4, {ending(commit=commit)}", answer, Code.TRANSACTION_COORDINATOR_FENCED)
        case.expect("the end of the log", case.inspect.end(at), end)
    case.expect_code("coordinator epoch 5 again", send(coordinator_epoch=5), Code.NONE)
    case.expect("the markers", [kind for kind, _, _ in case.inspect.markers(at)], ["abort", "abort"])


@requirement("COORD-12")
@versions(*BOTH)
def test_a_topic_that_is_deleted_under_its_transaction(case: CaseContext) -> None:
    """If one topic of a transaction is deleted, it completes on its other partitions."""
    (stays,) = case.topic()
    (goes,) = case.topic()
    producer = transactional(case, "id")
    producer.writes(stays, goes, values=["a"])
    replicas.deleted(case, goes.topic)
    case.expect_code("EndTxn", producer.end(commit=True), Code.NONE)
    case.expect("the state", case.inspect.completed(producer.transactional_id), "CompleteCommit")
    case.expect("what is visible on the other partition", case.inspect.committed(stays), ["a"])
    producer.writes(stays, values=["b"]).ends(commit=True)
    case.expect("the next transaction", case.inspect.committed(stays), ["a", "b"])


@requirement("COORD-16")
@versions(*BOTH)
def test_a_storm_of_initialisations(case: CaseContext) -> None:
    """Of initialisations at the same time one gets each epoch, the others are refused, and the id stays usable."""
    producer = transactional(case, "id")
    (at,) = case.topic()
    producer.writes(at)  # the first one to come has a transaction to abort
    answers = _storm(case, producer)
    case.set_up("an initialisation between", producer.init)
    answers += _storm(case, producer)  # and here there is none, so that one request succeeds
    won = [(each["ProducerId"], each["ProducerEpoch"]) for each in answers if each.code == 0]
    codes = {each.code for each in answers}
    case.expect("epochs that were won twice", len(won) - len(set(won)), 0)
    expected = {int(code) for code in (Code.NONE, Code.CONCURRENT_TRANSACTIONS, fencing_code(answers[0]))}
    case.expect("codes but for yes, wait and the fencing one", sorted(codes - expected), [])
    case.require("epochs that were won", len(won), 2, Relation.AT_LEAST)
    case.expect_code("one more initialisation", case.answered(producer.init), Code.NONE)
    later = (producer.now.id, producer.now.epoch)
    case.expect("it is the highest epoch", max([*won, later]), later)
    case.expect("the state", case.inspect.state(producer.transactional_id or ""), "Empty")
    case.expect("the partition's open transactions", case.inspect.open_at(at), [])
    producer.writes(at, values=["b"]).ends(commit=True)
    case.expect("what is visible", case.inspect.committed(at), ["b"])


def _storm(case: CaseContext, producer: ScriptedProducer) -> list[Response]:
    body = {"TransactionalId": producer.transactional_id, "TransactionTimeoutMs": 60_000}
    coordinator = case.coordinator(producer.transactional_id or "")
    connections = [case.open_connection(coordinator) for _ in range(STORM[0])]
    sent = [
        case.send(case.request("InitProducerId", body, connection=connection), connection=connection)
        for _ in range(STORM[1])
        for connection in connections
    ]
    return [each.receive() for each in sent]


@requirement("COORD-18")
@needs(THREE)
def test_a_marker_for_another_broker_is_refused(case: CaseContext) -> None:
    """A broker that does not lead the partition, or does not know it, refuses its marker; nothing is appended."""
    (at,) = case.topic()
    producer = ScriptedProducer(case, None).ready()
    producer.writes(at)
    send = partial(write_marker, case, producer_id=producer.now.id, epoch=producer.now.epoch, coordinator_epoch=0)
    for broker in case.brokers:
        if broker != case.leader(at):
            case.expect_code(f"at the follower {broker}", send(at, broker=broker), Code.NOT_LEADER_OR_FOLLOWER)
        unknown = TopicPartition(f"{case.name}-nowhere", 0)
        answer = send(unknown, broker=broker)
        case.expect_code(f"an unknown partition at {broker}", answer, Code.UNKNOWN_TOPIC_OR_PARTITION)
    case.expect("the end of the log", case.inspect.end(at), 1)
