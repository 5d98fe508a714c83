"""ADM: the requests with which an operator sees transactions, finds one that hangs, and ends it (KIP-664)."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from runner.protocol.toolkit.case import BOTH, THREE, inside, needs, one_broker, requirement, versions
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import coordinator_epoch, write_marker
from runner.protocol.toolkit.producer import ScriptedProducer, transactional
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import NotApplicableError
from runner.protocol.toolkit.settings import unverified
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.schema import Body
from wire.transaction_versions import TransactionVersion
from wire.values import TopicPartition

#: States in which a coordinator still owes a partition its marker.
UNDECIDED = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
#: Dynamic settings reach a broker through the metadata log.
APPLIED_WITHIN_S = 15.0


def described(case: CaseContext, producer: ScriptedProducer) -> Body:
    """Send DescribeTransactions for a producer's id, as a request of the script."""
    name = producer.transactional_id or ""
    answer = case.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=case.coordinator(name))
    found: Body = case.require_code("DescribeTransactions", answer)["TransactionStates"][0]
    return found


@requirement("ADM-01")
@versions(*BOTH)
def test_describe_producers(case: CaseContext) -> None:
    """DescribeProducers names every producer of a partition with epoch, sequence, times and its open transaction."""
    (at,) = case.topic()
    plain, open_one, over = (
        ScriptedProducer(case, None).ready(),
        transactional(case, "open"),
        transactional(case, "over"),
    )
    now_ms = time.time_ns() // 1_000_000
    case.require_code(
        "two records of an idempotent producer", plain.produce(at, ["a", "b"], timestamp_ms=now_ms - 5000)
    )
    wrote = over.now
    over.writes(at, values=["c"]).ends(commit=True)
    (_, _, marked) = case.inspect.markers(at)[0]
    open_one.writes(at, values=["d", "e", "f"])
    topics = [{"Name": at.topic, "PartitionIndexes": [at.partition]}]
    answer = case.ask("DescribeProducers", {"Topics": topics}, broker=case.leader(at))
    case.require_code("DescribeProducers", answer)
    found = {each["ProducerId"]: each for each in answer["Topics"][0]["Partitions"][0]["ActiveProducers"]}
    case.expect("the producers", sorted(found), sorted([plain.now.id, open_one.now.id, wrote.id]))

    def claim(what: str, producer: int, epoch: int, sequence: int, start: int) -> None:
        told = found[producer]
        case.expect(f"{what}: epoch", told["ProducerEpoch"], epoch)
        case.expect(f"{what}: last sequence", told["LastSequence"], sequence)
        case.expect(f"{what}: start of the open transaction", told["CurrentTxnStartOffset"], start)

    claim("idempotent", plain.now.id, 0, 1, -1)
    claim("open", open_one.now.id, open_one.now.epoch, 2, 4)
    # A marker of the same epoch keeps the last sequence; one of the next epoch (TV2) clears it.
    claim("over", wrote.id, marked, 0 if marked == wrote.epoch else -1, -1)
    case.expect("idempotent: last timestamp", found[plain.now.id]["LastTimestamp"], now_ms - 5000)
    case.expect("open: last timestamp", found[open_one.now.id]["LastTimestamp"], now_ms, Relation.AT_LEAST)
    case.expect("idempotent: coordinator epoch", found[plain.now.id]["CoordinatorEpoch"], -1)
    case.expect("over: coordinator epoch", found[wrote.id]["CoordinatorEpoch"], 0, Relation.AT_LEAST)
    open_one.ends(commit=False)


@requirement("ADM-02")
@versions(*BOTH)
def test_describe_transactions(case: CaseContext) -> None:
    """DescribeTransactions shows state, identity, timeout, start and partitions, and does not know a foreign id."""
    first, second = case.topic(partitions=2)
    producer = transactional(case, "id", timeout_ms=54_321)

    def claim(state: str, places: list[TopicPartition], began: tuple[int, int]) -> None:
        told = described(case, producer)
        case.expect(f"{state}: the state", told["TransactionState"], state)
        case.expect(
            f"{state}: the identity", [told["ProducerId"], told["ProducerEpoch"]], [producer.now.id, producer.now.epoch]
        )
        case.expect(f"{state}: the timeout", told["TransactionTimeoutMs"], 54_321)
        named = sorted(f"{each['Topic']}-{index}" for each in told["Topics"] for index in each["Partitions"])
        case.expect(f"{state}: the partitions", named, [str(each) for each in places])
        case.expect(f"{state}: the start, at least", told["TransactionStartTimeMs"], began[0], Relation.AT_LEAST)
        case.expect(f"{state}: the start, at most", told["TransactionStartTimeMs"], began[1], Relation.AT_MOST)

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
    unknown = f"{case.name}-nobody"
    answer = case.ask("DescribeTransactions", {"TransactionalIds": [unknown]}, broker=case.coordinator(unknown))
    case.expect_code("an unknown id", answer, Code.TRANSACTIONAL_ID_NOT_FOUND)


@requirement("ADM-02")
@needs(THREE)
def test_only_the_coordinator_describes(case: CaseContext) -> None:
    """DescribeTransactions at any other broker is declined."""
    producer = transactional(case, "id")
    name = producer.transactional_id or ""
    for broker in case.brokers:
        answer = case.ask("DescribeTransactions", {"TransactionalIds": [name]}, broker=broker)
        expected = Code.NONE if broker == case.coordinator(name) else Code.NOT_COORDINATOR
        case.expect_code(f"broker {broker}", answer, expected)


def listed(case: CaseContext, **filters: Any) -> tuple[dict[str, str], Response]:
    """The ids of the case and their states in ListTransactions of its one broker, and the whole answer."""
    answer = case.require_code("ListTransactions", case.ask("ListTransactions", {"StateFilters": []} | filters))
    own = {
        each["TransactionalId"].removeprefix(f"{case.name}-"): each["TransactionState"]
        for each in answer["TransactionStates"]
        if each["TransactionalId"].startswith(case.name)
    }
    return own, answer


def needs_version(case: CaseContext, version: int, since: str) -> None:
    """End the case where the release lacks a filter; require that the brokers offer a filter that it should have."""
    if not case.since(since):
        raise NotApplicableError(f"ListTransactions v{version} begins at {since}")
    offered = case.version_of("ListTransactions", case.connection(case.brokers[0]))
    case.require("the version of ListTransactions", offered, version, Relation.AT_LEAST)


def three_states(case: CaseContext) -> dict[str, ScriptedProducer]:
    """Set up: an id without a transaction, one with an open and one with a committed transaction."""
    (at,) = case.topic()
    producers = {name: transactional(case, name) for name in ("empty", "open", "over")}
    producers["open"].writes(at)
    producers["over"].writes(at).ends(commit=True)
    return producers


@requirement("ADM-03")
@versions(*BOTH)
@one_broker
def test_list_transactions(case: CaseContext) -> None:
    """ListTransactions returns exactly the ids that match its filters (states, producer ids), and names unknown states."""
    producers = three_states(case)
    every = {"empty": "Empty", "open": "Ongoing", "over": "CompleteCommit"}
    own, answer = listed(case)
    case.expect("without a filter", own, every)
    told = {each["TransactionalId"]: each["ProducerId"] for each in answer["TransactionStates"]}
    case.expect("its producer id", told[f"{case.name}-open"], producers["open"].now.id)
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["PrepareAbort"]):
        own, answer = listed(case, StateFilters=states)
        case.expect(f"only {', '.join(states)}", own, {name: state for name, state in every.items() if state in states})
        others = {each["TransactionState"] for each in answer["TransactionStates"]} - set(states)
        case.expect(f"only {', '.join(states)}: other states in the answer", sorted(others), [])
    own, answer = listed(case, StateFilters=["Ongoing", "Asleep"])
    case.expect("a known and an unknown state", own, {"open": "Ongoing"})
    case.expect("the unknown state is echoed", answer["UnknownStateFilters"], ["Asleep"])
    own, answer = listed(case, StateFilters=["Asleep"])
    case.expect("an unknown state alone", [own, answer["TransactionStates"]], [{}, []])
    wanted = producers["over"].now.id
    own, answer = listed(case, ProducerIdFilters=[wanted])
    case.expect("a producer id", [own, len(answer["TransactionStates"])], [{"over": "CompleteCommit"}, 1])
    own, _ = listed(case, ProducerIdFilters=[wanted], StateFilters=["Ongoing"])
    case.expect("a producer id in another state", own, {})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
@versions(*BOTH)
@one_broker
def test_list_transactions_by_duration(case: CaseContext) -> None:
    """A filter for the duration returns exactly the transactions that have been running longer (KIP-994)."""
    needs_version(case, 1, "3.8.0")
    producers = three_states(case)
    longer = partial(listed, case, StateFilters=["Ongoing"])
    own = case.poll_until(lambda: longer(DurationFilter=500)[0], bool, within_s=10)
    case.expect("open for more than half a second", own, {"open": "Ongoing"})
    case.expect("open for more than an hour", longer(DurationFilter=3_600_000)[0], {})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
@versions(*BOTH)
@one_broker
def test_what_does_not_run_has_no_duration(case: CaseContext) -> None:
    """A filter for the duration returns no id without a running transaction, even if it had one before (KIP-994)."""
    needs_version(case, 1, "3.8.0")
    producers = three_states(case)
    own = case.poll_until(lambda: listed(case, DurationFilter=500)[0], lambda seen: "open" in seen, within_s=10)
    case.expect("running for more than half a second", own, {"open": "Ongoing"})
    producers["open"].ends(commit=False)


@requirement("ADM-03")
@one_broker
def test_list_transactions_by_pattern(case: CaseContext) -> None:
    """A pattern returns exactly the ids that match it as a whole; an invalid pattern is refused (KIP-1152)."""
    needs_version(case, 2, "4.1.0")
    for name in ("one", "two", "three"):
        transactional(case, name)
    for pattern, names in ((".*-t.*", ["three", "two"]), ("one", []), (f"{case.name}-(one|two)", ["one", "two"])):
        own, _ = listed(case, TransactionalIdPattern=pattern)
        case.expect(f"the pattern {pattern}", sorted(own), names)
    answer = case.ask("ListTransactions", {"StateFilters": [], "TransactionalIdPattern": "(["})
    case.expect_code("no pattern", answer, Code.INVALID_REGULAR_EXPRESSION)


# -- transactions that hang --------------------------------------------------------------------------------------


def hanging(case: CaseContext, at: TopicPartition) -> list[int]:
    """The producer ids whose transaction is open on a partition while no coordinator has it open there (KIP-664)."""
    found = []
    for producer in case.inspect.open_at(at):
        answer = case.ask("ListTransactions", {"StateFilters": [], "ProducerIdFilters": [producer]})
        ids = [each["TransactionalId"] for each in case.require_code("ListTransactions", answer)["TransactionStates"]]
        open_there = [
            name for name in ids if case.inspect.state(name) in UNDECIDED and str(at) in case.inspect.places(name)
        ]
        found += [] if open_there else [producer]
    return found


@requirement("ADM-04", "ADM-05")
@versions(TransactionVersion.TV1)
@one_broker
def test_a_hanging_transaction_is_found_and_ended(case: CaseContext) -> None:
    """A transaction that is open only on a partition is found, ended by the right marker and by no other."""
    if not case.since("3.0.0"):
        raise NotApplicableError("a transaction that hangs is found by ListTransactions, which begins with 3.0")
    (at,) = case.topic()
    honest, hangs = transactional(case, "honest"), transactional(case, "hangs")
    hangs.ready()  # epoch 1, so that there is a lower one
    hangs.writes(at, values=["a"]).ends(commit=True)
    honest.writes(at, values=["b"])
    case.expect("an open transaction does not count as hanging", hanging(case, at), [])
    honest.ends(commit=True)
    case.expect("nothing is open", [case.inspect.open_at(at), hanging(case, at)], [[], []])
    with unverified(case):
        late = hangs.batch(at, ["late"])
        answer = case.poll_until(
            partial(hangs.send_batch, at, late), lambda seen: seen.code == 0, within_s=APPLIED_WITHIN_S
        )
        case.require_code("a late batch is accepted", answer)
    start = case.inspect.end(at) - 1
    case.require("the late batch pins the stable offset", case.inspect.stable(at), start)
    case.expect("the coordinator's state", case.inspect.state(hangs.transactional_id or ""), "CompleteCommit")
    case.expect("what hangs", hanging(case, at), [hangs.now.id])
    known = coordinator_epoch(case, at, hangs.now.id)
    send = partial(write_marker, case, at, producer_id=hangs.now.id)
    answer = send(epoch=hangs.now.epoch - 1, coordinator_epoch=known)
    case.expect_code("a marker of a lower epoch", answer, Code.INVALID_PRODUCER_EPOCH)
    answer = send(epoch=hangs.now.epoch, coordinator_epoch=known - 1)
    case.expect_code("a marker of an older coordinator", answer, Code.TRANSACTION_COORDINATOR_FENCED)
    case.expect("the log's end and stable offset", [case.inspect.end(at), case.inspect.stable(at)], [start + 1, start])
    case.expect_code("the right marker", send(epoch=hangs.now.epoch, coordinator_epoch=known), Code.NONE)
    case.expect(
        "the log's end and stable offset", [case.inspect.end(at), case.inspect.stable(at)], [start + 2, start + 2]
    )
    case.expect("what hangs afterwards", hanging(case, at), [])
    case.expect("what is visible", case.inspect.committed(at), ["a", "b"])


@requirement("ADM-04")
@versions(*BOTH)
@one_broker
@inside
def test_hanging_offsets_are_no_exception(case: CaseContext) -> None:
    """A transaction that is open on the offsets of a group is shown like any other, and does not count as hanging."""
    (at,) = case.topic()
    producer = transactional(case, "id")
    group = f"{case.name}-group"
    if case.transaction_version is TransactionVersion.TV1:
        case.set_up("the group is added", partial(producer.add_offsets, group))
    case.set_up("an offset is pending", partial(producer.commit_offsets, group, {at: 9}))
    places = case.inspect.places(producer.transactional_id or "")
    case.require("partitions of the transaction", len(places), 1)
    name, _, index = places[0].rpartition("-")
    offsets = TopicPartition(name, int(index))
    case.expect("the topic", name, "__consumer_offsets")
    case.expect("the producer is open there", producer.now.id in case.inspect.open_at(offsets), True)
    case.expect("it does not count as hanging", producer.now.id in hanging(case, offsets), False)
    producer.ends(commit=False)
    case.expect("it is open there afterwards", producer.now.id in case.inspect.open_at(offsets), False)
