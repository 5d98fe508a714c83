"""Addresses in responses become those of listeners, whatever rules do, and clients cannot speak unknown versions."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest

from chaos.frames.proxy.cluster_listeners import ADDRESSED, ClusterListeners
from chaos.frames.proxy.frame_log import FrameLog
from chaos.frames.proxy.rule_book import RuleBook
from chaos.frames.proxy.rule_language import parse
from chaos.routes import Endpoint
from tests.support.servers.frame_broker import FrameBroker, client, end_txn, frame_broker, produce, request
from tests.support.wire_definitions import definitions
from wire.errors import DisconnectedError
from wire.schema import Body

ANY = Endpoint(host="127.0.0.1", port=0)
TOPIC = UUID(int=5)
FAILED = {"NodeId": -1, "Host": "", "Port": -1}


def address(node: int, broker: FrameBroker, name: str = "NodeId") -> Body:
    """An entry with a broker's address."""
    return {name: node, "Host": broker.at.host, "Port": broker.at.port}


def offered(extra: int = 0) -> list[Body]:
    """The versions that a broker offers, some more than the definitions have."""
    return [
        {
            "ApiKey": definitions().api_key(api),
            "MinVersion": 0,
            "MaxVersion": definitions().latest(f"{api}Request") + extra,
        }
        for api in (*ADDRESSED, "EndTxn")
    ]


@pytest.fixture
def brokers() -> Iterator[tuple[FrameBroker, FrameBroker]]:
    """The first one knows both."""
    with frame_broker() as first, frame_broker() as second:
        first.says["ApiVersions"] = {"ApiKeys": offered()}
        first.says["Metadata"] = {
            "Brokers": [address(1, first), address(2, second)],
            "Topics": [{"Name": "orders", "TopicId": TOPIC}],
        }
        yield first, second


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def cluster(brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO) -> Iterator[ClusterListeners]:
    cluster = ClusterListeners(definitions(), ANY, brokers[0].at, FrameLog(out, every_frame=True))
    try:
        cluster.start()
        yield cluster
        assert cluster.links.problems() == ()
    finally:
        cluster.links.close()


def lines(out: io.StringIO, event: str) -> list[dict[str, Any]]:
    """The lines with an event."""
    return [line for line in map(json.loads, out.getvalue().splitlines()) if line["event"] == event]


def listeners(out: io.StringIO) -> dict[str, Endpoint]:
    """The listener in front of each broker."""
    found = {}
    for line in lines(out, "listening"):
        host, _, port = line["listener"].rpartition(":")
        found[line["broker"]] = Endpoint(host=host, port=int(port))
    return found


def ask(at: Endpoint, api: str, body: Body, version: int) -> Body:
    """The answer to one request."""
    with client(at) as one:
        return one.receive(one.send(request(api, body, version)))


def places(entries: list[Body]) -> list[Endpoint]:
    """The addresses in entries."""
    return [Endpoint(host=each["Host"], port=each["Port"]) for each in entries]


def test_every_broker_has_a_listener_from_the_start(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """Metadata names the listeners, and each one leads to its broker."""
    found = listeners(out)
    assert list(found) == [str(each.at) for each in brokers]
    first, second = found.values()
    assert places(ask(first, "Metadata", {"Topics": []}, 12)["Brokers"]) == [first, second]
    ask(second, "Heartbeat", {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}, 4)
    assert len(brokers[1].frames) == 1


@pytest.mark.parametrize(
    ("api", "body", "version", "entries"),
    [
        ("FindCoordinator", {"KeyType": 1, "CoordinatorKeys": ["x"]}, 4, "Coordinators"),
        ("DescribeCluster", {}, 1, "Brokers"),
        ("Fetch", {"MaxWaitMs": 1, "MinBytes": 1, "Topics": []}, 16, "NodeEndpoints"),
        ("Produce", {"Acks": 1, "TimeoutMs": 1, "TopicData": []}, 10, "NodeEndpoints"),
    ],
)
def test_a_broker_that_joins_later_is_behind_the_proxy(
    cluster: ClusterListeners,
    brokers: tuple[FrameBroker, FrameBroker],
    out: io.StringIO,
    api: str,
    body: Body,
    version: int,
    entries: str,
) -> None:
    """A new address in any response gets a listener before the client sees it."""
    with frame_broker() as late:
        node = "BrokerId" if api == "DescribeCluster" else "NodeId"
        brokers[0].says[api] = {entries: [address(1, brokers[0], node), address(3, late, node)]}
        (first, *_) = listeners(out).values()
        answer = ask(first, api, body, version)
        assert places(answer[entries]) == [first, listeners(out)[str(late.at)]]
        assert len(listeners(out)) == 3


def test_old_and_failed_answers(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """Version 3 of FindCoordinator has one address at its top; an answer without an address stays as it is."""
    first, second = listeners(out).values()
    for said, expected in ((address(2, brokers[1]), second), (FAILED, Endpoint(host="", port=-1))):
        brokers[0].says["FindCoordinator"] = said
        assert places([ask(first, "FindCoordinator", {"Key": "x", "KeyType": 1}, 3)]) == [expected]
    assert len(listeners(out)) == 2


def test_no_rule_undoes_the_rewriting(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """A delayed Metadata response has the addresses of listeners, and two rules meet it."""
    book = RuleBook(cluster.links, FrameLog(io.StringIO(), every_frame=False))
    for text in ("delay 0.05 response Metadata", "delay 0.05 response any #1", "answer 29 response EndTxn"):
        book.add(*parse(text, definitions()))
    first, second = listeners(out).values()
    assert places(ask(first, "Metadata", {"Topics": []}, 12)["Brokers"]) == [first, second]
    assert [each["met"] for each in book.list()] == [1, 1, 0]


def test_a_frame_that_has_ended_is_not_counted_by_later_rules(cluster: ClusterListeners, out: io.StringIO) -> None:
    """An answered request is not seen by the second rule; a held one is, as soon as it was released."""
    book = RuleBook(cluster.links, FrameLog(io.StringIO(), every_frame=False))
    for text in ("answer 51 request EndTxn #1", "delay 0.01 request EndTxn", "answer 48 request EndTxn #2"):
        book.add(*parse(text, definitions()))
    (first, _) = listeners(out).values()
    with client(first) as one:
        codes = [one.receive(one.send(end_txn()))["ErrorCode"] for _ in range(4)]
    assert codes == [51, 0, 48, 0]
    assert [each["met"] for each in book.list()] == [1, 3, 1]


def test_topic_ids_are_learned_from_metadata(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """A request that names a topic by its id is selected by the topic's name."""
    book = RuleBook(cluster.links, FrameLog(io.StringIO(), every_frame=False))
    book.add(*parse("answer 7 request Produce of topic orders partition 3 epoch 1 client id onceproof", definitions()))
    (first, _) = listeners(out).values()
    ask(first, "Metadata", {"Topics": []}, 12)
    with client(first) as one:
        answer = one.receive(one.send(produce(13, {"TopicId": TOPIC})))
    assert answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 7
    assert [each["met"] for each in book.list()] == [1]


def test_a_client_is_not_offered_versions_without_a_definition(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """The highest version of the APIs with addresses is lowered, and others stay."""
    brokers[0].says["ApiVersions"] = {"ApiKeys": offered(extra=3)}
    (first, _) = listeners(out).values()
    answer = ask(first, "ApiVersions", {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}, 3)
    assert answer["ApiKeys"] == [*offered()[:-1], offered(extra=3)[-1]]


def test_every_frame_is_logged(cluster: ClusterListeners, out: io.StringIO) -> None:
    """A request with its ids, a response with its errors."""
    (first, _) = listeners(out).values()
    with client(first) as one:
        one.receive(one.send(end_txn("billing-1")))
    (asked,), (answered,) = lines(out, "request"), lines(out, "response")
    assert (asked["api"], asked["transactional_ids"], asked["producer_epochs"]) == ("EndTxn", ["billing-1"], ["1"])
    assert (answered["api"], answered["errors"]) == ("EndTxn", ["NONE"])
    assert asked["correlation_id"] == answered["correlation_id"]


def test_later_listeners_have_the_ports_that_follow(brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO) -> None:
    """From the given port on; a taken one is replaced by any free one."""
    with ExitStack() as undo:
        # The kernel gives any free port, and the one below may be that of another test.
        tried = (undo.enter_context(frame_broker()) for _ in range(20))
        taken = next(each for each in tried if _is_free(each.at.port - 1))
        cluster = ClusterListeners(
            definitions(),
            Endpoint(host="127.0.0.1", port=taken.at.port - 1),
            brokers[0].at,
            FrameLog(out, every_frame=False),
        )
        try:
            cluster.start()
            first, second = listeners(out).values()
            assert first.port == taken.at.port - 1
            assert second.port not in (first.port, taken.at.port)
        finally:
            cluster.links.close()


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_a_broker_that_is_gone(
    cluster: ClusterListeners, brokers: tuple[FrameBroker, FrameBroker], out: io.StringIO
) -> None:
    """Its listener resets the connection of a client, and the log says why."""
    (_, second) = listeners(out).values()
    brokers[1].close()
    # The reset may come before the client has seen that its connection was accepted.
    with pytest.raises(DisconnectedError), client(second) as one:
        one.receive(one.send(end_txn()))
    (line,) = lines(out, "unreachable")
    assert line["broker"] == str(brokers[1].at)
    assert "Connect call failed" in line["reason"]
