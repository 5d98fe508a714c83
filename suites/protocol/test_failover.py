"""COORD: a transaction whose coordinator fails or changes, in each state of the transaction.

Markers are held on the links between brokers, so that a transaction stays in Prepare while its coordinator changes. They
are released afterwards, when the coordinator that sent them has been replaced. A coordinator changes by a crash, or by a
move of its partition's leadership, which shows the same in a tenth of the time.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from chaos.frames import FrameFilter, Hold
from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import BOTH, THREE, alone, needs, requirement, shares, versions
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.coordinators import WAIT, EndedTransaction, described, id_at, log_of, moved
from runner.protocol.toolkit.inspector import ending, result
from runner.protocol.toolkit.producer import ScriptedProducer
from runner.protocol.toolkit.tampering import Tampered, tampered, to
from runner.protocol.toolkit.timing import LONG_MS, now_ms
from verification.scripts.script import Relation
from wire.codes import ErrorCode as Code
from wire.codes import code_name
from wire.schema import Body
from wire.values import TopicPartition

#: Long enough for a transaction to be open after the coordinator has gone, short enough to wait for.
TIMEOUT_MS = 8000
PARTLY_OVER_MS = 3500
#: Coordinators check timeouts every second, and a machine may be busy.
ENDED_WITHIN_S = 20.0
#: Enough for some requests to reach a coordinator while it loads; each move costs some requests.
MOVES = 4


def expect_too_late(case: CaseContext, markers: Tampered, *places: TopicPartition) -> None:
    """Claim that markers released only now are refused, because their coordinator was replaced."""
    ends = [case.inspect.end(at) for at in places]
    refused = code_name(Code.TRANSACTION_COORDINATOR_FENCED)
    for codes in markers.released():
        case.expect("the answer to a late marker", codes, [refused] * len(codes))
    case.expect("the ends of the logs after late markers", [case.inspect.end(at) for at in places], ends)


def _succeeded(case: CaseContext, *, commit: bool) -> None:
    one, two, coordinator = case.brokers
    places = replicas.placed(case, [one, two, coordinator], [two, one, coordinator])
    producer = id_at(case, "id", coordinator)
    links = to(coordinator, one, two)
    with tampered(case, FrameFilter(api="WriteTxnMarkers", producer_id=producer.now.id), Hold(), *links) as markers:
        transaction = EndedTransaction.held(case, producer, *places, commit=commit)
        markers.met("a marker to each leader", *links)
        transaction.expect_prepared()
        answer = producer.copy().init(continues=producer.now)
        case.expect_code("InitProducerId(id, e) in Prepare", answer, Code.CONCURRENT_TRANSACTIONS)
        moved(case, producer, to_broker=one)
        transaction.expect_complete()
        expect_too_late(case, markers, *places)
    transaction.expect_marked()
    transaction.expect_next()


@requirement("COORD-05", "COORD-10", "TXN-04")
@needs(THREE)
@versions(*BOTH)
def test_a_commit_is_completed_by_the_next_coordinator(case: CaseContext) -> None:
    """A commit whose markers were never written is completed by the next coordinator; the old one's come too late."""
    _succeeded(case, commit=True)


@requirement("COORD-06", "COORD-10", "TXN-04")
@needs(THREE)
@versions(*BOTH)
def test_an_abort_is_completed_by_the_next_coordinator(case: CaseContext) -> None:
    """An abort whose markers were never written is completed by the next coordinator; the old one's come too late."""
    _succeeded(case, commit=False)


@requirement("COORD-04")
@needs(THREE)
@versions(*BOTH)
def test_an_open_transaction_goes_on_at_the_next_coordinator(case: CaseContext) -> None:
    """An open transaction keeps its partitions, its records and its start, and ends as its owner says."""
    one, two, coordinator = case.brokers
    here, there = replicas.placed(case, *([one, two, coordinator],) * 2)
    owners = [id_at(case, word, coordinator).writes(here, values=[word]) for word in ("commit", "abort")]
    known = [described(case, each) for each in owners]
    moved(case, *owners, to_broker=one)
    case.expect("the transactions", [described(case, each) for each in owners], known)
    for owner, commit in zip(owners, (True, False), strict=True):
        owner.writes(there, values=["more"])
        case.expect_code(f"EndTxn, {ending(commit=commit)}", owner.end(commit=commit), Code.NONE)
        case.expect("the state", case.inspect.completed(owner.transactional_id), result(commit=commit))
    for at, given in ((here, ["commit"]), (there, ["more"])):
        case.expect(f"what a reader is given of {at}", case.inspect.committed(at), given)
        case.expect(f"the last stable offset of {at}", case.inspect.stable(at), case.inspect.end(at))


# Claims that the abort comes less than one timeout after the change, and five eighths of that pass in any case.
@alone
@requirement("COORD-04", "EXP-02")
@needs(THREE)
def test_a_timeout_runs_on_at_the_next_coordinator(case: CaseContext) -> None:
    """The next coordinator aborts an open transaction by the time at which it began, and not by that of the change."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [one, two, coordinator])
    late = id_at(case, "late", coordinator, timeout_ms=TIMEOUT_MS).writes(at, values=["late"])
    begun_ms = int(described(case, late)[3])
    passed_ms = case.poll_until(lambda: now_ms() - begun_ms, lambda ms: ms >= PARTLY_OVER_MS, within_s=ENDED_WITHIN_S)
    case.require("milliseconds until the change", passed_ms, PARTLY_OVER_MS, Relation.AT_LEAST)
    moved_ms = now_ms()
    moved(case, late, to_broker=one)
    state = case.inspect.state(str(late.transactional_id))
    case.require("milliseconds until it was looked at", now_ms() - begun_ms, TIMEOUT_MS - 1, Relation.AT_MOST)
    case.expect("the state after it", state, "Ongoing")
    # answer dropped: the next claim is on the markers
    case.poll_until(lambda: case.inspect.markers(at), bool, within_s=ENDED_WITHIN_S)
    written_ms = [each.max_timestamp_ms for each in case.inspect.batches(at) if each.control]
    case.expect("markers", len(written_ms), 1)
    if not written_ms:
        return
    case.expect("milliseconds from its start to its abort", written_ms[0] - begun_ms, TIMEOUT_MS, Relation.AT_LEAST)
    # Timeouts are checked every second. A clock that started with the change would end at the next check after it.
    since_ms = written_ms[0] - moved_ms
    case.expect("milliseconds from the change to its abort", since_ms, TIMEOUT_MS - 1, Relation.AT_MOST)
    case.expect("the state at last", case.inspect.completed(late.transactional_id), "CompleteAbort")
    case.expect("what a reader is given", case.inspect.committed(at), [])


@requirement("COORD-07")
@needs(THREE)
@versions(*BOTH)
def test_an_idle_id_goes_on_at_the_next_coordinator(case: CaseContext) -> None:
    """After Empty, commit and abort the next coordinator knows the id and its epoch, and the next transaction works."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [two, one, coordinator])
    producers = {state: _idle(case, state, coordinator, at) for state in _IDLE}
    known = {state: described(case, each) for state, each in producers.items()}
    moved(case, *producers.values(), to_broker=one)
    for state, producer in producers.items():
        case.expect(f"{state}: the transactional id", described(case, producer), known[state])
        producer.writes(at, values=[f"after {state}"]).ends(commit=True)
        before = producer.now
        case.expect_code(f"{state}: InitProducerId(id, e)", producer.init(continues=before), Code.NONE)
        case.expect_code(f"{state}: InitProducerId", producer.init(), Code.NONE)
        told = (producer.now.id, producer.now.epoch)
        case.expect(f"{state}: the id and epoch", told, (before.id, before.epoch + 2))
    given = ["CompleteCommit", *(f"after {state}" for state in _IDLE)]
    case.expect("what a reader is given", case.inspect.committed(at), given)


@requirement("COORD-07")
@needs(THREE)
@versions(*BOTH)
def test_a_bump_is_repeated_at_the_next_coordinator(case: CaseContext) -> None:
    """An epoch bump whose answer was lost with its coordinator is answered by the next one with the same epoch."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [two, one, coordinator])
    bumps = []
    for state in _IDLE:
        producer = _idle(case, state, coordinator, at)
        asked = producer.now
        case.require_code(f"{state}: InitProducerId(id, e)", producer.init(continues=asked))
        case.require(f"{state}: the epoch", producer.now.epoch, asked.epoch + 1)
        bumps.append((state, producer, asked, producer.now))
    moved(case, *(producer for _, producer, _, _ in bumps), to_broker=one)
    for state, producer, asked, bumped in bumps:
        answer = case.answered(partial(producer.init, continues=asked))
        case.expect_code(f"{state}: the same at the next coordinator", answer, Code.NONE)
        case.expect(f"{state}: its answer", (producer.now.id, producer.now.epoch), (bumped.id, bumped.epoch))


_IDLE = ("Empty", "CompleteCommit", "CompleteAbort")


def _idle(case: CaseContext, state: str, coordinator: int, at: TopicPartition) -> ScriptedProducer:
    """Precondition: an id in a state without an open or a completing transaction."""
    producer = id_at(case, state.lower(), coordinator)
    if state != "Empty":
        producer.writes(at, values=[state]).ends(commit=state == "CompleteCommit")
    case.require("the state", case.inspect.state(str(producer.transactional_id)), state)
    return producer


@requirement("COORD-03")
@needs(THREE)
@versions(*BOTH)
def test_whoever_cannot_coordinate_says_so(case: CaseContext) -> None:
    """While a coordinator changes every request is answered, with a retriable code until one takes it."""
    one, two, coordinator = case.brokers
    (at,) = replicas.placed(case, [two, one, coordinator])
    producer = id_at(case, "id", coordinator)
    log, codes = log_of(case, producer), set[int]()
    for turn in range(MOVES):
        producer.writes(at, values=[str(turn)])
        before, after = (coordinator, one) if turn % 2 == 0 else (one, coordinator)
        replicas.put(case, log, after, *(each for each in case.brokers if each != after))
        old, new = case.open_connection(before), case.open_connection(after)
        elected = replicas.electing(case, log, by=two)
        seen = _taken(case, producer.end_body(commit=True), new)
        case.require_code("the election", elected.receive())
        case.expect("EndTxn was taken at last", 0 in seen, True)
        codes |= seen
        declined = case.ask("EndTxn", producer.end_body(commit=True), connection=old)
        case.expect_code("EndTxn at the one before", declined, Code.NOT_COORDINATOR)
        case.expect("the state", case.inspect.completed(producer.transactional_id), "CompleteCommit")
        case.set_up("the next instance", producer.init)
    expected = (Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR, WAIT)
    case.expect("other codes meanwhile", sorted(codes - {0, *map(int, expected)}), [])
    case.expect("what a reader is given", case.inspect.committed(at), [str(turn) for turn in range(MOVES)])
    case.require("codes of whoever could not coordinate yet", len(codes - {0}), 1, Relation.AT_LEAST)


def _taken(case: CaseContext, body: Body, connection: BrokerConnection) -> set[int]:
    """Send EndTxn until it succeeds; returns every code in the answers."""
    codes: set[int] = set()

    def ask() -> set[int]:
        codes.add(case.ask("EndTxn", body, connection=connection).code)
        return codes

    seen: set[int] = case.poll_until(ask, lambda each: 0 in each, within_s=ENDED_WITHIN_S)
    return seen


@requirement("COORD-04", "COORD-05", "COORD-06", "COORD-07", "COORD-10")
@needs(THREE)
@shares("crashed", time_critical=True)
def test_a_coordinator_crashes_with_a_transaction_in_every_state(case: CaseContext) -> None:
    """When a coordinator is killed, its successor has every id in its state and completes decided transactions."""
    coordinator = brokers.spare(case)
    one, two = (each for each in case.brokers if each != coordinator)
    places = replicas.placed(case, *([one, two, coordinator], [two, one, coordinator]) * 3)
    idle = id_at(case, "idle", coordinator)
    known_idle = described(case, idle)
    ongoing = id_at(case, "ongoing", coordinator, timeout_ms=LONG_MS).writes(*places[:2], values=["open"])
    known = described(case, ongoing)
    producers = [id_at(case, word, coordinator) for word in ("commit", "abort")]
    links = to(coordinator, one, two)
    # The crash ends last, so that the links are restored before the cluster must be whole.
    with ExitStack() as away, tampered(case, FrameFilter(api="WriteTxnMarkers"), Hold(), *links) as markers:
        ends = [
            EndedTransaction.held(case, producers[0], *places[2:4], commit=True),
            EndedTransaction.held(case, producers[1], *places[4:], commit=False),
        ]
        markers.met("markers to each leader", *links)
        for each in ends:
            each.expect_prepared()
        away.enter_context(brokers.crashed(case, coordinator))
        for producer in (*producers, ongoing, idle):
            brokers.elected(case, log_of(case, producer), instead_of=coordinator)
        for each in ends:
            each.expect_complete()
        case.expect("the idle id", described(case, idle), known_idle)
        case.expect_code("its next initialisation", idle.init(), Code.NONE)
        case.expect("the open transaction", described(case, ongoing), known)
        case.expect_code("its EndTxn", ongoing.end(commit=True), Code.NONE)
        case.expect("its state", case.inspect.completed(ongoing.transactional_id), "CompleteCommit")
        expect_too_late(case, markers, *places[2:])
    for each in ends:
        each.expect_marked()
        each.expect_next()
    for at in places[:2]:
        case.expect(f"what a reader is given of {at}", case.inspect.committed(at), ["open"])
