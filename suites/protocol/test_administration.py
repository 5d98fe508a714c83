"""ADM: the requests with which an operator sees transactions, finds one that hangs, and ends it (KIP-664)."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from runner.protocol.toolkit.case import BOTH, THREE, generations, needs, requirement
from runner.protocol.toolkit.context import Stage
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Answer
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.settings import unverified
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import Generation
from wire.values import TopicPartition

#: States in which a coordinator still owes a partition its marker.
UNDECIDED = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
#: Dynamic settings reach a broker through the metadata log.
APPLIED_WITHIN_S = 15.0


def described(stage: Stage, producer: ScriptedProducer) -> Body:
    """DescribeTransactions of a producer's id as a request of the script."""
    name = producer.transactional_id or ""
    answer = stage.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=stage.coordinator(name))
    found: Body = stage.require_code("DescribeTransactions", answer)["TransactionStates"][0]
    return found


@requirement("ADM-01")
@generations(*BOTH)
def test_describe_producers(stage: Stage) -> None:
    """DescribeProducers names every producer of a partition with epoch, sequence, times and its open transaction."""
    (at,) = stage.topic()
    plain, open_one, over = (
        ScriptedProducer(stage, None).ready(),
        transactional(stage, "open"),
        transactional(stage, "over"),
    )
    now_ms = time.time_ns() // 1_000_000
    stage.require_code(
        "two records of an idempotent producer", plain.produce(at, ["a", "b"], timestamp_ms=now_ms - 5000)
    )
    wrote = over.now
    over.writes(at, values=["c"]).ends(commit=True)
    (_, _, marked) = stage.see.markers(at)[0]
    open_one.writes(at, values=["d", "e", "f"])
    topics = [{"Name": at.topic, "PartitionIndexes": [at.partition]}]
    answer = stage.ask("DescribeProducers", {"Topics": topics}, broker=stage.leader(at))
    stage.require_code("DescribeProducers", answer)
    found = {each["ProducerId"]: each for each in answer["Topics"][0]["Partitions"][0]["ActiveProducers"]}
    stage.expect("the producers", sorted(found), sorted([plain.now.id, open_one.now.id, wrote.id]))

    def claim(what: str, producer: int, epoch: int, sequence: int, start: int) -> None:
        told = found[producer]
        stage.expect(f"{what}: epoch", told["ProducerEpoch"], epoch)
        stage.expect(f"{what}: last sequence", told["LastSequence"], sequence)
        stage.expect(f"{what}: start of the open transaction", told["CurrentTxnStartOffset"], start)

    claim("idempotent", plain.now.id, 0, 1, -1)
    claim("open", open_one.now.id, open_one.now.epoch, 2, 4)
    # A marker of the same epoch leaves the last sequence; one of the next epoch (TV2) begins without one.
    claim("over", wrote.id, marked, 0 if marked == wrote.epoch else -1, -1)
    stage.expect("idempotent: last timestamp", found[plain.now.id]["LastTimestamp"], now_ms - 5000)
    stage.expect("open: last timestamp", found[open_one.now.id]["LastTimestamp"], now_ms, Relation.AT_LEAST)
    stage.expect("idempotent: coordinator epoch", found[plain.now.id]["CoordinatorEpoch"], -1)
    stage.expect("over: coordinator epoch", found[wrote.id]["CoordinatorEpoch"], 0, Relation.AT_LEAST)
    open_one.ends(commit=False)


@requirement("ADM-02")
@generations(*BOTH)
def test_describe_transactions(stage: Stage) -> None:
    """DescribeTransactions shows state, identity, timeout, start and partitions, and does not know a foreign id."""
    first, second = stage.topic(partitions=2)
    producer = transactional(stage, "id", timeout_ms=54_321)

    def claim(state: str, places: list[TopicPartition], began: tuple[int, int]) -> None:
        told = described(stage, producer)
        stage.expect(f"{state}: the state", told["TransactionState"], state)
        stage.expect(
            f"{state}: the identity", [told["ProducerId"], told["ProducerEpoch"]], [producer.now.id, producer.now.epoch]
        )
        stage.expect(f"{state}: the timeout", told["TransactionTimeoutMs"], 54_321)
        named = sorted(f"{each['Topic']}-{index}" for each in told["Topics"] for index in each["Partitions"])
        stage.expect(f"{state}: the partitions", named, [str(each) for each in places])
        stage.expect(f"{state}: the start, at least", told["TransactionStartTimeMs"], began[0], Relation.AT_LEAST)
        stage.expect(f"{state}: the start, at most", told["TransactionStartTimeMs"], began[1], Relation.AT_MOST)

    claim("Empty", [], (-1, -1))
    before_ms = time.time_ns() // 1_000_000
    producer.writes(first)
    after_ms = time.time_ns() // 1_000_000
    claim("Ongoing", [first], (before_ms, after_ms))
    producer.writes(second)
    claim("Ongoing", [first, second], (before_ms, after_ms))
    producer.ends(commit=True)
    claim("CompleteCommit", [], (before_ms, after_ms))
    producer.writes(first).ends(commit=False)
    claim("CompleteAbort", [], (after_ms, time.time_ns() // 1_000_000))
    nobody = f"{stage.name}-nobody"
    answer = stage.ask("DescribeTransactions", {"TransactionalIds": [nobody]}, broker=stage.coordinator(nobody))
    stage.expect_code("an unknown id", answer, Code.TRANSACTIONAL_ID_NOT_FOUND)


@requirement("ADM-02")
@needs(THREE)
def test_only_the_coordinator_describes(stage: Stage) -> None:
    """DescribeTransactions at any other broker is declined."""
    producer = transactional(stage, "id")
    name = producer.transactional_id or ""
    for broker in stage.brokers:
        answer = stage.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=broker)
        expected = Code.NONE if broker == stage.coordinator(name) else Code.NOT_COORDINATOR
        stage.expect_code(f"broker {broker}", answer, expected)


def listed(stage: Stage, **filters: Any) -> tuple[dict[str, str], Answer]:
    """The case's own ids and their states in ListTransactions of its one broker, and the whole answer."""
    answer = stage.require_code("ListTransactions", stage.ask("ListTransactions", {"StateFilters": []} | filters))
    own = {
        each["TransactionalId"].removeprefix(f"{stage.name}-"): each["TransactionState"]
        for each in answer["TransactionStates"]
        if each["TransactionalId"].startswith(stage.name)
    }
    return own, answer


def needs_version(stage: Stage, version: int, since: str) -> None:
    """A filter that a release lacks cannot be asked for; one that it should have must be offered."""
    if not stage.since(since):
        raise NotApplicableError(f"ListTransactions v{version} begins at {since}")
    offered = stage.version_of("ListTransactions", stage.line(stage.brokers[0]))
    stage.require("the version of ListTransactions", offered, version, Relation.AT_LEAST)


def three_states(stage: Stage) -> dict[str, ScriptedProducer]:
    """Set up: an id without a transaction, one with an open and one with a committed transaction."""
    (at,) = stage.topic()
    producers = {name: transactional(stage, name) for name in ("empty", "open", "over")}
    producers["open"].writes(at)
    producers["over"].writes(at).ends(commit=True)
    return producers


@requirement("ADM-03")
@generations(*BOTH)
def test_list_transactions(stage: Stage) -> None:
    """ListTransactions gives exactly what its filters for states and producer ids describe, and echoes what it lacks."""
    producers = three_states(stage)
    every = {"empty": "Empty", "open": "Ongoing", "over": "CompleteCommit"}
    own, answer = listed(stage)
    stage.expect("without a filter", own, every)
    told = {each["TransactionalId"]: each["ProducerId"] for each in answer["TransactionStates"]}
    stage.expect("its producer id", told[f"{stage.name}-open"], producers["open"].now.id)
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["PrepareAbort"]):
        own, answer = listed(stage, StateFilters=states)
        stage.expect(f"states {states}", own, {name: state for name, state in every.items() if state in states})
        others = {each["TransactionState"] for each in answer["TransactionStates"]} - set(states)
        stage.expect(f"states {states}: other states in the answer", sorted(others), [])
    own, answer = listed(stage, StateFilters=["Ongoing", "Asleep"])
    stage.expect("a known and an unknown state", own, {"open": "Ongoing"})
    stage.expect("the unknown state is echoed", answer["UnknownStateFilters"], ["Asleep"])
    own, answer = listed(stage, StateFilters=["Asleep"])
    stage.expect("an unknown state alone", [own, answer["TransactionStates"]], [{}, []])
    wanted = producers["over"].now.id
    own, answer = listed(stage, ProducerIdFilters=[wanted])
    stage.expect("a producer id", [own, len(answer["TransactionStates"])], [{"over": "CompleteCommit"}, 1])
    own, _ = listed(stage, ProducerIdFilters=[wanted], StateFilters=["Ongoing"])
    stage.expect("a producer id in another state", own, {})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
@generations(*BOTH)
def test_list_transactions_by_duration(stage: Stage) -> None:
    """A filter for the duration gives exactly the transactions that have been running longer (KIP-994)."""
    needs_version(stage, 1, "3.8.0")
    producers = three_states(stage)
    longer = partial(listed, stage, StateFilters=["Ongoing"])
    own = stage.until(lambda: longer(DurationFilter=500)[0], bool, within_s=10)
    stage.expect("open for more than half a second", own, {"open": "Ongoing"})
    stage.expect("open for more than an hour", longer(DurationFilter=3_600_000)[0], {})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
@generations(*BOTH)
def test_what_does_not_run_has_no_duration(stage: Stage) -> None:
    """A filter for the duration gives no id without a running transaction, whatever it was used for before (KIP-994)."""
    needs_version(stage, 1, "3.8.0")
    producers = three_states(stage)
    own = stage.until(lambda: listed(stage, DurationFilter=500)[0], lambda seen: "open" in seen, within_s=10)
    stage.expect("running for more than half a second", own, {"open": "Ongoing"})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
def test_list_transactions_by_pattern(stage: Stage) -> None:
    """A pattern gives exactly the ids that match it as a whole; what is no pattern is refused (KIP-1152)."""
    needs_version(stage, 2, "4.1.0")
    for name in ("one", "two", "three"):
        transactional(stage, name)
    for pattern, names in ((".*-t.*", ["three", "two"]), ("one", []), (f"{stage.name}-(one|two)", ["one", "two"])):
        own, _ = listed(stage, TransactionalIdPattern=pattern)
        stage.expect(f"the pattern {pattern}", sorted(own), names)
    answer = stage.ask("ListTransactions", {"StateFilters": [], "TransactionalIdPattern": "(["})
    stage.expect_code("no pattern", answer, Code.INVALID_REGULAR_EXPRESSION)


# -- transactions that hang --------------------------------------------------------------------------------------


def hanging(stage: Stage, at: TopicPartition) -> list[int]:
    """The producer ids whose transaction is open on a partition while no coordinator has it open there (KIP-664)."""
    found = []
    for producer in stage.see.open_at(at):
        answer = stage.ask("ListTransactions", {"StateFilters": [], "ProducerIdFilters": [producer]})
        ids = [each["TransactionalId"] for each in stage.require_code("ListTransactions", answer)["TransactionStates"]]
        open_there = [name for name in ids if stage.see.state(name) in UNDECIDED and str(at) in stage.see.places(name)]
        found += [] if open_there else [producer]
    return found


@requirement("ADM-04", "ADM-05")
@generations(Generation.TV1)
def test_a_hanging_transaction_is_found_and_ended(stage: Stage) -> None:
    """A transaction that is open only on a partition is found, ended by the right marker and by no other."""
    if not stage.since("3.0.0"):
        raise NotApplicableError("a transaction that hangs is found by ListTransactions, which begins with 3.0")
    (at,) = stage.topic()
    honest, hangs = transactional(stage, "honest"), transactional(stage, "hangs")
    hangs.ready()  # epoch 1, so that there is a lower one
    hangs.writes(at, values=["a"]).ends(commit=True)
    honest.writes(at, values=["b"])
    stage.expect("an open transaction does not count as hanging", hanging(stage, at), [])
    honest.ends(commit=True)
    stage.expect("nothing is open", [stage.see.open_at(at), hanging(stage, at)], [[], []])
    with unverified(stage):
        late = hangs.batch(at, ["late"])
        answer = stage.until(
            partial(hangs.send_batch, at, late), lambda seen: seen.code == 0, within_s=APPLIED_WITHIN_S
        )
        stage.require_code("a late batch is accepted", answer)
    start = stage.see.end(at) - 1
    stage.require("the late batch pins the stable offset", stage.see.stable(at), start)
    stage.expect("the coordinator's state", stage.see.state(hangs.transactional_id or ""), "CompleteCommit")
    stage.expect("what hangs", hanging(stage, at), [hangs.now.id])
    known = coordinator_epoch(stage, at, hangs.now.id)
    send = partial(write_marker, stage, at, producer_id=hangs.now.id)
    answer = send(epoch=hangs.now.epoch - 1, coordinator_epoch=known)
    stage.expect_code("a marker of a lower epoch", answer, Code.INVALID_PRODUCER_EPOCH)
    answer = send(epoch=hangs.now.epoch, coordinator_epoch=known - 1)
    stage.expect_code("a marker of an older coordinator", answer, Code.TRANSACTION_COORDINATOR_FENCED)
    stage.expect("the log's end and stable offset", [stage.see.end(at), stage.see.stable(at)], [start + 1, start])
    stage.expect_code("the right marker", send(epoch=hangs.now.epoch, coordinator_epoch=known), Code.NONE)
    stage.expect("the log's end and stable offset", [stage.see.end(at), stage.see.stable(at)], [start + 2, start + 2])
    stage.expect("what hangs afterwards", hanging(stage, at), [])
    stage.expect("what is visible", stage.see.committed(at), ["a", "b"])


@requirement("ADM-04")
@generations(*BOTH)
def test_hanging_offsets_are_no_exception(stage: Stage) -> None:
    """A transaction that is open on the offsets of a group is shown like any other, and does not count as hanging."""
    (at,) = stage.topic()
    producer = transactional(stage, "id")
    group = f"{stage.name}-group"
    if stage.generation is Generation.TV1:
        stage.set_up("the group is added", partial(producer.add_offsets, group))
    stage.set_up("an offset is pending", partial(producer.commit_offsets, group, {at: 9}))
    places = stage.see.places(producer.transactional_id or "")
    stage.require("partitions of the transaction", len(places), 1)
    name, _, index = places[0].rpartition("-")
    offsets = TopicPartition(name, int(index))
    stage.expect("the topic", name, "__consumer_offsets")
    stage.expect("the producer is open there", producer.now.id in stage.see.open_at(offsets), True)
    stage.expect("it does not count as hanging", producer.now.id in hanging(stage, offsets), False)
    producer.ends(commit=False)
    stage.expect("it is open there afterwards", producer.now.id in stage.see.open_at(offsets), False)
