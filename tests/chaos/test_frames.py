"""Every action on selected frames, over real sockets between a real client and a scripted broker."""

from __future__ import annotations

import asyncio
import time

import pytest

from chaos.errors import InjectionError
from chaos.frames import (
    Cut,
    Delay,
    Direction,
    Disposition,
    Drop,
    Duplicate,
    FrameFilter,
    FrameLinks,
    Hold,
    MatchedFrame,
    ResentRequest,
    Respond,
    Rule,
)
from chaos.frames.resend import send_copy
from chaos.routes import Endpoint
from runner.protocol.toolkit.tampering import Tampered
from tests.support.servers.frame_broker import (
    END,
    FrameBroker,
    client,
    end_txn,
    heartbeat,
    produce,
    request,
)
from tests.support.servers.wire_peer import PATIENT_S
from wire.codes import code_name
from wire.deadline import Deadline
from wire.errors import CorrelationError, DeadlineError, DisconnectedError
from wire.values import TopicPartition

# Long enough for bytes that are let through to arrive, in tests of bytes that are not.
SILENCE_S = 0.3
RESPONSES = FrameFilter(api="EndTxn", direction=Direction.RESPONSE)
ENDS = FrameFilter(api="EndTxn")


@pytest.fixture
def at(links: FrameLinks, broker: FrameBroker) -> Endpoint:
    return links.open("app→1", broker.at)


def await_all(rule: Rule, disposition: Disposition, count: int = 1) -> tuple[MatchedFrame, ...]:
    """Wait until so many frames were met, and all have ended so."""

    def ended(met: tuple[MatchedFrame, ...]) -> bool:
        return len(met) == count and all(each.disposition is disposition for each in met)

    return rule.until(f"{count} frames {disposition}", ended, timeout_s=PATIENT_S)


def test_a_held_request_keeps_what_follows_it_and_nothing_else(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """All bytes behind it on its connection wait, in order; another connection and earlier answers do not."""
    rule = links.add(ENDS, Hold())
    first, held, behind, elsewhere = heartbeat(), end_txn(), heartbeat(), heartbeat()
    with client(at) as one, client(at) as two:
        pending = [one.send(each) for each in (first, held, behind)]
        one.receive(pending[0])
        await_all(rule, Disposition.KEPT)
        two.receive(two.send(elsewhere))
        assert broker.frames == [first.frame, elsewhere.frame]
        rule.release()
        one.receive(pending[2])
        one.receive(pending[1])
    assert [frame for number, frame in broker.received if number == 1] == [first.frame, held.frame, behind.frame]
    (met,) = rule.met
    assert met.disposition is Disposition.DELIVERED
    assert met.request == held.frame
    assert met.answer is not None
    assert links.reader.error_codes("EndTxn", 4, met.answer) == (0,)
    assert met.answered_ns is not None
    assert met.ended_ns is not None
    assert met.met_ns < met.ended_ns < met.answered_ns


def test_a_held_request_outlives_its_client(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """The client gives up, reconnects and retries; the first attempt arrives after the retry, and its answer is kept."""
    rule = links.add(FrameFilter(api="EndTxn", count=1), Hold())
    first, retry = end_txn(), end_txn()
    with client(at) as one:
        one.send(first)
        await_all(rule, Disposition.KEPT)
    with client(at) as two:
        two.receive(two.send(retry))
        assert broker.frames == [retry.frame]
        rule.release()
        assert broker.await_frames(2) == [retry.frame, first.frame]
        rule.until("the late answer", lambda met: met[0].answer is not None, timeout_s=PATIENT_S)
        broker.await_ends(1)


def test_what_follows_an_answer_is_held_again_and_not_waited_for(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """A release gives the answers to the frames met by then, though the next request is met, and kept, at once."""
    tampered = Tampered(rule=links.add(ENDS, Hold()), relay=links)
    with client(at) as one:
        first, _ = one.send(end_txn()), one.send(end_txn())
        await_all(tampered.rule, Disposition.KEPT)
        assert tampered.released() == [[code_name(0)]]
        one.receive(first)
        tampered.rule.until("the next one", lambda met: len(met) == 2, timeout_s=PATIENT_S)
        assert [each.disposition for each in tampered.rule.met] == [Disposition.DELIVERED, Disposition.KEPT]
        assert tampered.released()[1:] == [[code_name(0)]]


def test_a_held_response_was_carried_out(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """The broker has the request, requests behind it go on, answers wait in order until the release."""
    rule = links.add(RESPONSES, Hold())
    with client(at) as one:
        held, behind = one.send(end_txn()), one.send(heartbeat())
        broker.await_frames(2)
        await_all(rule, Disposition.KEPT)
        with pytest.raises(DeadlineError):
            one.receive(behind, Deadline.after(SILENCE_S))
        rule.release()
        one.receive(held)
        one.receive(behind)
    assert rule.met[0].answer == held.response


def test_delayed_frames_arrive_late_each_counted_from_its_own_reading(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """Two frames that were read together are both released after one delay, not after two."""
    rule = links.add(ENDS, Delay(delay_s=1.0))
    with client(at) as one:
        began = time.monotonic()
        one._socket.sendall(end_txn().frame + end_txn().frame)
        broker.await_frames(2)
        assert time.monotonic() - began >= 1.0
        first, second = await_all(rule, Disposition.DELIVERED, 2)
    assert first.ended_ns is not None
    assert second.ended_ns is not None
    assert second.ended_ns - first.ended_ns < 0.9e9


def test_removing_a_rule_lets_go_what_it_holds(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """In the order in which frames were met, across connections; later frames pass, and a second call does nothing."""
    rule = links.add(ENDS, Hold())
    requests = [end_txn(name) for name in "abc"]
    clients = [client(at) for _ in requests]
    for number, (each, asked) in enumerate(zip(clients, requests, strict=True), 1):
        each.send(asked)
        await_all(rule, Disposition.KEPT, number)
    links.remove(rule)
    links.remove(rule)
    assert {each.disposition for each in rule.met} == {Disposition.DELIVERED}
    ended = [each.ended_ns for each in rule.met]
    assert ended == sorted(ended, key=lambda at_ns: at_ns or 0)
    broker.await_frames(3)
    clients[0].receive(clients[0].send(end_txn()))
    assert rule.count == 3
    for each in clients:
        each.close()


def test_a_dropped_request_takes_with_it_what_follows(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """As after a loss in a network: the connection stays open and silent, another one works."""
    rule = links.add(FrameFilter(api="EndTxn", count=1), Drop())
    with client(at) as one, client(at) as two:
        one.send(end_txn())
        behind = one.send(heartbeat())
        with pytest.raises(DeadlineError):
            one.receive(behind, Deadline.after(SILENCE_S))
        two.receive(two.send(end_txn()))
    assert len(broker.frames) == 1
    assert [each.disposition for each in rule.met] == [Disposition.DROPPED]


def test_a_request_dropped_alone_leaves_a_hole_in_the_answers(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """The next request is carried out and answered, which a client that expects answers in order refuses."""
    links.add(ENDS, Drop(alone=True))
    with client(at) as one:
        one.send(end_txn())
        behind = one.send(heartbeat())
        with pytest.raises(CorrelationError):
            one.receive(behind)
    assert len(broker.frames) == 1


@pytest.mark.parametrize("alone", [False, True])
def test_a_dropped_response_was_carried_out(links: FrameLinks, broker: FrameBroker, at: Endpoint, alone: bool) -> None:
    """Requests behind it are carried out; their answers are lost with it, or arrive when it was dropped alone."""
    rule = links.add(RESPONSES, Drop(alone=alone))
    with client(at) as one:
        one.send(end_txn())
        behind = one.send(heartbeat())
        with pytest.raises(CorrelationError if alone else DeadlineError):
            one.receive(behind, Deadline.after(PATIENT_S if alone else SILENCE_S))
        broker.await_frames(2)
    assert rule.met[0].answer is not None
    assert rule.met[0].disposition is Disposition.DROPPED


def test_a_duplicate_is_the_same_bytes_on_a_connection_of_its_own(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """The client gets one answer; the answers to the copies are kept; each copy is sent after its delay."""
    rule = links.add(ENDS, Duplicate(times=2, after_s=0.2))
    asked = end_txn()
    began_ns = time.monotonic_ns()
    with client(at) as one:
        one.receive(one.send(asked))
        one.receive(one.send(heartbeat()))
        rule.until("two copies", lambda met: len(met[0].copies) == 2, timeout_s=PATIENT_S)
    copies = rule.met[0].copies
    assert [frame for number, frame in broker.received if number > 1] == [asked.frame] * 2
    assert len({number for number, _ in broker.received}) == 3
    for number, copy in enumerate(copies, 1):
        assert copy.answer is not None
        assert links.reader.error_codes("EndTxn", 4, copy.answer) == (0,)
        assert copy.sent_ns is not None
        assert copy.sent_ns - began_ns >= number * 0.2e9


def test_copies_that_were_not_sent_end_with_the_rule(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """After healing, no more copies are sent."""
    rule = links.add(ENDS, Duplicate(after_s=2.0))
    with client(at) as one:
        one.receive(one.send(end_txn()))
        links.remove(rule)
        with pytest.raises(InjectionError, match=r"a copy did not happen within .*EndTxn delivered"):
            rule.until("a copy", lambda met: bool(met[0].copies), timeout_s=2.5)
    assert len(broker.frames) == 1


def test_a_copy_says_how_it_ended(broker: FrameBroker) -> None:
    """It is sent byte for byte; a broker may leave it without an answer, or be gone."""

    def copy(**bounds: float) -> ResentRequest:
        return asyncio.run(send_copy(broker.at, asked.frame, answered=True, **bounds))  # type: ignore[arg-type]

    asked = end_txn()
    assert copy().answer is not None
    assert broker.frames == [asked.frame]
    broker.silent.add("EndTxn")
    assert "did not answer within 0.2 s" in copy(within_s=0.2).problem
    broker.close()
    assert "Connect call failed" in copy().problem


ASKED: list[tuple[str, int, dict[str, object]]] = [
    ("EndTxn", 5, END),
    ("InitProducerId", 3, {"TransactionalId": "x", "TransactionTimeoutMs": 1}),
    (
        "AddPartitionsToTxn",
        3,
        {"V3AndBelowTransactionalId": "x", "V3AndBelowTopics": [{"Name": "t", "Partitions": [3]}]},
    ),
    (
        "AddPartitionsToTxn",
        5,
        {"Transactions": [{"TransactionalId": "x", "Topics": [{"Name": "t", "Partitions": [3]}]}]},
    ),
    ("TxnOffsetCommit", 2, {"TransactionalId": "x", "Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 3}]}]}),
    ("WriteTxnMarkers", 1, {"Markers": [{"ProducerId": 17, "Topics": [{"Name": "t", "PartitionIndexes": [3]}]}]}),
    ("FindCoordinator", 1, {"Key": "x", "KeyType": 1}),
    ("FindCoordinator", 6, {"CoordinatorKeys": ["x"], "KeyType": 1}),
    ("Produce", 8, {"Acks": -1, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 3, "Records": b""}]}]}),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked[0]}-{asked[1]}")
def test_an_error_code_is_said_where_the_api_says_errors(
    links: FrameLinks, broker: FrameBroker, at: Endpoint, asked: tuple[str, int, dict[str, object]]
) -> None:
    """The client reads the code for every partition of its request, and the broker never saw the request."""
    api, version, body = asked
    links.add(FrameFilter(api=api), Respond(error_code=51))
    with client(at) as one:
        pending = one.send(request(api, body, version))
        answer = one.receive_bytes(pending)
    assert [code for code in links.reader.error_codes(api, version, answer) if code] == [51]
    assert broker.frames == []


def test_our_answer_waits_for_its_turn(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """It leaves after the answer to an earlier request, and before that to a later one."""
    held = links.add(FrameFilter(api="Heartbeat", direction=Direction.RESPONSE, count=1), Hold())
    links.add(ENDS, Respond(body={"ErrorCode": 47}))
    with client(at) as one:
        pending = [one.send(each) for each in (heartbeat(), end_txn(), heartbeat())]
        broker.await_frames(2)
        await_all(held, Disposition.KEPT)
        with pytest.raises(DeadlineError):
            one.receive(pending[1], Deadline.after(SILENCE_S))
        held.release()
        one.receive(pending[2])
        assert one.receive(pending[1])["ErrorCode"] == 47


def test_an_answered_response_hides_what_the_broker_said(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """The broker carried out the request; the client gets another answer; the broker's answer is kept."""
    rule = links.add(RESPONSES, Respond(error_code=51))
    with client(at) as one:
        assert one.receive(one.send(end_txn()))["ErrorCode"] == 51
    assert len(broker.frames) == 1
    (met,) = await_all(rule, Disposition.ANSWERED)
    assert met.answer is not None
    assert links.reader.error_codes("EndTxn", 4, met.answer) == (0,)


def test_a_request_without_answer_takes_no_place_in_the_order(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """Produce with Acks 0 before a request that the relay answers: its answer does not wait for the broker's."""
    links.add(ENDS, Respond(error_code=51))
    links.add(FrameFilter(api="Produce"), Delay(delay_s=0.01))
    with client(at) as one:
        one.send(produce(8, {"Name": "t"}, acks=0))
        assert one.receive(one.send(end_txn()))["ErrorCode"] == 51
        one.receive(one.send(heartbeat()))
    assert len(broker.frames) == 2


@pytest.mark.parametrize(("frames", "arrives"), [(ENDS, 1), (RESPONSES, 2)], ids=["request", "response"])
def test_a_cut_ends_the_connection_instead_of_delivering(
    links: FrameLinks, broker: FrameBroker, at: Endpoint, frames: FrameFilter, arrives: int
) -> None:
    """A cut request is not carried out, one with a cut response was; both ends see the end of the connection."""
    rule = links.add(frames, Cut())
    with client(at) as one, client(at) as two:
        one.receive(one.send(heartbeat()))
        with pytest.raises(DisconnectedError):
            one.receive(one.send(end_txn()))
        broker.await_ends(1)
        assert len(broker.frames) == arrives
        two.receive(two.send(heartbeat()))
    assert [each.disposition for each in rule.met] == [Disposition.CUT]


def test_rules_that_can_do_nothing_are_refused(links: FrameLinks) -> None:
    """An unknown API, a count of 0, a second response, an answer without content: one sentence each."""
    for frames, action, message in (
        (FrameFilter(api="EndTransaction"), Hold(), "no API is called EndTransaction"),
        (FrameFilter(count=0), Hold(), "selects no frame"),
        (FrameFilter(skip=-1), Hold(), "cannot be skipped"),
        (RESPONSES, Duplicate(), "cannot be duplicated"),
        (ENDS, Respond(), "either an error code or a body"),
        (ENDS, Delay(delay_s=0), "delay of 0 s"),
        (ENDS, Duplicate(times=0), "0 copies"),
    ):
        with pytest.raises(InjectionError, match=message):
            links.add(frames, action)


def test_a_proof_names_count_kind_link_and_time(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """The text that a report quotes, before and after the first frame."""
    rule = links.add(FrameFilter(api="EndTxn", partition=TopicPartition(topic="t", partition=0)), Hold())
    assert rule.describe() == "held no EndTxn requests about t-0"
    rule = links.add(ENDS, Delay(delay_s=0.01))
    with client(at) as one:
        one.receive(one.send(end_txn()))
        one.receive(one.send(end_txn(version=3)))
    said = rule.describe()
    assert said.startswith("delayed 2 EndTxn v3, EndTxn v4 requests on app→1, the first ")
    assert said.endswith(f"s ago (at {rule.met[0].met_ns} ns)")
