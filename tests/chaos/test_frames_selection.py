"""Frames are selected by the fields of their requests, in every version, and counted across connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from chaos.frames import Delay, Direction, Disposition, FrameFilter, FrameLinks, Respond
from chaos.routes import Endpoint
from tests.support.servers.frame_broker import (
    FrameBroker,
    client,
    end_txn,
    heartbeat,
    produce,
    request,
    sound,
)
from tests.support.servers.wire_peer import PATIENT_S
from tests.support.wire_definitions import definitions
from wire.primitives import Raw
from wire.request import Request
from wire.values import TopicPartition

AT = TopicPartition(topic="t", partition=3)
TOPIC_ID = UUID(int=7)
X, PID, PART, GROUP = {"transactional_id": "x"}, {"producer_id": 17}, {"partition": AT}, {"group": "g"}
OTHERS: dict[str, Any] = {
    "transactional_id": "y",
    "producer_id": 18,
    "partition": TopicPartition(topic="t", partition=4),
    "group": "h",
}
MARKER = {"ProducerId": 17, "ProducerEpoch": 1, "Topics": [{"Name": "t", "PartitionIndexes": [1, 3]}]}
MARKERS = {"Markers": [{"ProducerId": 16, "ProducerEpoch": 1, "Topics": []}, MARKER]}
ADDED = {"Name": "t", "Partitions": [2, 3]}
ADD_3 = {"V3AndBelowTransactionalId": "x", "V3AndBelowProducerId": 17, "V3AndBelowTopics": [ADDED]}
ADD_5 = {"Transactions": [{"TransactionalId": "x", "ProducerId": 17, "Topics": [ADDED]}]}
COMMITTED = [{"Name": "t", "Partitions": [{"PartitionIndex": 3}]}]
COMMIT = {"TransactionalId": "x", "GroupId": "g", "ProducerId": 17, "Topics": COMMITTED}

SAYING: list[tuple[Request, tuple[dict[str, Any], ...]]] = [
    (end_txn(version=1), (X, PID)),
    (end_txn(version=5), (X, PID)),
    (request("InitProducerId", {"TransactionalId": "x", "ProducerId": 17}, 5), (X, PID)),
    (produce(3, {"Name": "t"}), (X, PID, PART)),
    (produce(12, {"Name": "t"}), (X, PID, PART)),
    (produce(13, {"TopicId": TOPIC_ID}), (X, PID, PART)),
    (request("AddPartitionsToTxn", ADD_3, 0), (X, PID, PART)),
    (request("AddPartitionsToTxn", ADD_3, 3), (X, PID, PART)),
    (request("AddPartitionsToTxn", ADD_5, 5), (X, PID, PART)),
    (request("AddOffsetsToTxn", {"TransactionalId": "x", "ProducerId": 17, "GroupId": "g"}, 3), (X, PID, GROUP)),
    (request("TxnOffsetCommit", COMMIT, 2), (X, PID, PART, GROUP)),
    (request("TxnOffsetCommit", COMMIT, 3), (X, PID, PART, GROUP)),
    (request("WriteTxnMarkers", MARKERS, 0), (PID, PART)),
    (request("WriteTxnMarkers", MARKERS, 2), (PID, PART)),
    (request("FindCoordinator", {"Key": "x", "KeyType": 1}, 1), (X,)),
    (request("FindCoordinator", {"Key": "g"}, 0), (GROUP,)),
    (request("FindCoordinator", {"CoordinatorKeys": ["z", "g"], "KeyType": 0}, 6), (GROUP,)),
    (request("DescribeTransactions", {"TransactionalIds": ["x"]}, 0), (X,)),
    (request("DescribeGroups", {"Groups": ["g"]}, 0), (GROUP,)),
    (request("Fetch", {"Topics": [{"Topic": "t", "Partitions": [{"Partition": 3}]}]}, 4), (PART,)),
    (request("Fetch", {"Topics": [{"TopicId": TOPIC_ID, "Partitions": [{"Partition": 3}]}]}, 17), (PART,)),
    (request("Vote", {"Topics": [{"TopicName": "t", "Partitions": [{"PartitionIndex": 3}]}]}, 1), (PART,)),
    (request("OffsetFetch", {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": [3]}]}, 5), (PART, GROUP)),
    (heartbeat(), (GROUP,)),
]


@pytest.fixture(scope="module")
def links() -> Iterator[FrameLinks]:
    with FrameLinks(definitions(), topic_ids={TOPIC_ID: "t"}, frame_bytes_max=1 << 16) as links:
        yield links
        assert sound(links)


@pytest.fixture
def at(links: FrameLinks, broker: FrameBroker, request: pytest.FixtureRequest) -> Endpoint:
    return links.open(request.node.name, broker.at)


@pytest.mark.parametrize(
    ("asked", "says"), SAYING, ids=lambda value: f"{value.api}-{value.version}" if isinstance(value, Request) else ""
)
def test_a_frame_is_selected_by_each_thing_it_says_and_by_no_other(
    links: FrameLinks, broker: FrameBroker, at: Endpoint, asked: Request, says: tuple[dict[str, Any], ...]
) -> None:
    """Each criterion alone and all together select it; another value, a field it lacks and another API do not."""
    together = {name: value for each in says for name, value in each.items()}
    meeting = [*says, together, {"api": asked.api}, {"api": asked.api, **together}]
    strangers = [{**together, name: other} for name, other in OTHERS.items()]
    strangers.append({**together, "api": "EndTxn" if asked.api != "EndTxn" else "Produce"})
    for criteria, count in [(each, 1) for each in meeting] + [(each, 0) for each in strangers]:
        rule = links.add(FrameFilter(**criteria), Delay(delay_s=0.0001))
        broker.received.clear()
        with client(at) as one:
            one.receive_bytes(one.send(asked))
        links.remove(rule)
        assert rule.count == count, criteria
        assert not rule.missed
        assert broker.frames == [asked.frame], "it passes byte for byte"


def test_skipping_and_counting_go_across_connections(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """Of five frames on two connections the first two pass, the next two are met, and the last passes."""
    rule = links.add(FrameFilter(api="EndTxn", skip=2, count=2), Respond(error_code=51))
    with client(at) as one, client(at) as two:
        codes = [each.receive(each.send(end_txn()))["ErrorCode"] for each in (one, two, one, two, one)]
    links.remove(rule)
    assert codes == [0, 0, 51, 51, 0]
    assert [each.connection for each in rule.met] == [1, 2]


def test_a_response_is_selected_by_its_request(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """Only the answers about "x" are changed, and counted when they come."""
    frames = FrameFilter(direction=Direction.RESPONSE, transactional_id="x", skip=1)
    rule = links.add(frames, Respond(body={"ErrorCode": 51}))
    with client(at) as one:
        codes = [one.receive(one.send(end_txn(name)))["ErrorCode"] for name in ("x", "y", "x", "y", "x")]
    links.remove(rule)
    assert codes == [0, 0, 51, 0, 51]


def test_the_first_rule_that_meets_a_frame_acts(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """The second rule sees only the frames that the first one let pass."""
    rules = [
        links.add(FrameFilter(api="EndTxn", count=1), Respond(error_code=51)),
        links.add(FrameFilter(transactional_id="x"), Respond(error_code=48)),
    ]
    with client(at) as one:
        codes = [one.receive(one.send(end_txn()))["ErrorCode"] for _ in range(3)]
    for rule in rules:
        links.remove(rule)
    assert codes == [51, 48, 48]


def test_a_rule_for_one_link_leaves_others_alone(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """Also one that is opened after the rule was made."""
    rule = links.add(FrameFilter(), Respond(error_code=51), links=("later",))
    later = links.open("later", broker.at)
    with client(at) as one, client(later) as two:
        assert one.receive(one.send(end_txn()))["ErrorCode"] == 0
        assert two.receive(two.send(end_txn()))["ErrorCode"] == 51
    links.remove(rule)
    assert [each.link for each in rule.met] == ["later"]


def test_rules_come_and_go_under_traffic(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """Four clients never see a wrong or missing answer while rules are added and removed."""
    stop, answered, failures = threading.Event(), [0] * 4, []

    def ask(which: int) -> None:
        try:
            with client(at) as one:
                while not stop.is_set():
                    pending = [one.send(end_txn()) for _ in range(3)]
                    answered[which] += sum(one.receive(each)["ErrorCode"] == 0 for each in pending)
        except BaseException as error:  # noqa: BLE001 (a thread's failure must reach the test)
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(which,)) for which in range(len(answered))]
    for thread in threads:
        thread.start()
    actions = [(Direction.REQUEST, 0.001), (Direction.RESPONSE, 0.001)] * 5
    for direction, delay_s in actions:
        rule = links.add(FrameFilter(api="EndTxn", direction=direction), Delay(delay_s=delay_s))
        rule.until("five frames", lambda met: len(met) >= 5, timeout_s=PATIENT_S)
        links.remove(rule)
        count = rule.count
        assert {each.disposition for each in rule.met} == {Disposition.DELIVERED}
    stop.set()
    for thread in threads:
        thread.join(PATIENT_S)
    assert not failures
    assert rule.count == count, "a rule that was removed met another frame"
    assert min(answered) > 0
    assert len(broker.frames) == sum(answered)


def test_what_cannot_be_read_passes_and_is_counted(links: FrameLinks, broker: FrameBroker, at: Endpoint) -> None:
    """A version without definition, a body that cannot be read, and a frame above the limit: they pass, and count."""
    rule = links.add(FrameFilter(transactional_id="x"), Respond(error_code=51))
    future = Request.of(definitions(), "EndTxn", 99, Raw(b"?"), header_version=2)
    broken = Request.of(definitions(), "EndTxn", 3, Raw(b"\x7f?"))
    large = produce(12, {"Name": "t"}, size=1 << 17)
    broker.silent |= {"EndTxn"}
    with client(at) as one:
        for each in (future, broken, large):
            one.send(each)
        broker.await_frames(3)
    links.remove(rule)
    assert broker.frames == [future.frame, broken.frame, large.frame]
    assert rule.count == 0
    reasons = " / ".join(rule.missed)
    assert "EndTxn v99: EndTxnRequest has no version 99" in reasons
    assert "EndTxn v3: in EndTxnRequest v3" in reasons
    assert "Produce v12: passing already, or above the size limit" in reasons


def test_an_api_without_definition_is_selected_by_its_number(
    links: FrameLinks, broker: FrameBroker, at: Endpoint
) -> None:
    """It needs no body to be read."""
    unknown = b"\x00\x00\x00\x0a\x75\x30\x00\x00\x00\x00\x00\x01\xff\xff"
    rule = links.add(FrameFilter(api=30_000), Delay(delay_s=0.0001))
    with client(at) as one:
        one._socket.sendall(unknown)
        (met,) = rule.until("the frame", bool, timeout_s=PATIENT_S)
    links.remove(rule)
    assert (met.api, met.request) == ("API 30000", unknown)
