"""Requests are repeated only where that is harmless, and a timeout names the last answer."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.servers.wire_peer import PATIENT_S, Peer, broker
from tests.support.wire_definitions import definitions
from wire.client import Client
from wire.codes import ErrorCode
from wire.errors import AbandonedError, BrokerError, DeadlineError, DisconnectedError
from wire.router import shown
from wire.values import Address, Producer, TopicPartition

# Long enough to be sure that nothing comes, short enough to wait for it.
BRIEF_S = 0.3


def metadata_of(peer: Peer, address: tuple[str, int], leader: int, error: int = 0) -> None:
    """Answer ApiVersions and Metadata as broker 1 at the address, with one topic."""
    _, version, correlation = peer.take()
    offered = [{"ApiKey": 3, "MinVersion": 0, "MaxVersion": 8}, {"ApiKey": 2, "MinVersion": 1, "MaxVersion": 3}]
    peer.answer(correlation, "ApiVersionsResponse", version, {"ApiKeys": offered})
    answer_metadata(peer, address, leader, error)


def answer_metadata(peer: Peer, address: tuple[str, int], leader: int, error: int = 0) -> None:
    _, version, correlation = peer.take()
    partition = {"ErrorCode": error, "PartitionIndex": 0, "LeaderId": leader, "ReplicaNodes": [1], "IsrNodes": [1]}
    body = {
        "Brokers": [{"NodeId": 1, "Host": address[0], "Port": address[1]}],
        "ControllerId": 1,
        "Topics": [{"ErrorCode": 0, "Name": "orders", "Partitions": [partition]}],
    }
    peer.answer(correlation, "MetadataResponse", version, body)


def answer_offset(peer: Peer, error: int, offset: int) -> None:
    _, version, correlation = peer.take()
    partition = {"PartitionIndex": 0, "ErrorCode": error, "Offset": offset, "Timestamp": -1}
    body = {"Topics": [{"Name": "orders", "Partitions": [partition]}]}
    peer.answer(correlation, "ListOffsetsResponse", version, body)


def client(address: tuple[str, int], **options: Any) -> Client:
    return Client(f"{address[0]}:{address[1]}", definitions(), **{"timeout_s": PATIENT_S, **options})


ORDERS = TopicPartition("orders", 0)


def test_a_question_is_asked_again_while_leadership_moves() -> None:
    """LEADER_NOT_AVAILABLE and NOT_LEADER_OR_FOLLOWER mean look again; the answer after them counts."""
    where: list[tuple[str, int]] = []

    def script(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=-1, error=5)
        answer_metadata(peer, where[0], leader=1)
        answer_offset(peer, 6, -1)
        answer_metadata(peer, where[0], leader=1)
        answer_offset(peer, 0, 42)

    with broker(script) as address:
        where.append(address)
        with client(address) as asking:
            assert asking.list_offsets([ORDERS]) == {ORDERS: 42}


def test_a_lost_connection_is_replaced_for_a_question() -> None:
    """A request that changes nothing survives a broker that closes the connection."""
    where: list[tuple[str, int]] = []

    def dying(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=1)
        peer.take()

    def living(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=1)
        answer_offset(peer, 0, 7)

    with broker(dying, living) as address:
        where.append(address)
        with client(address) as asking:
            assert asking.list_offsets([ORDERS]) == {ORDERS: 7}


def test_a_change_is_asked_for_again_where_nothing_was_sent() -> None:
    """Metadata name a controller that is stopped; the one after it gets the request."""
    where: list[tuple[str, int]] = []
    asked: list[int] = []

    def script(peer: Peer) -> None:
        _, version, correlation = peer.take()
        offered = [
            {"ApiKey": key, "MinVersion": lowest, "MaxVersion": highest}
            for key, lowest, highest in ((2, 1, 3), (3, 0, 8), (19, 2, 4))
        ]
        peer.answer(correlation, "ApiVersionsResponse", version, {"ApiKeys": offered})
        answer_metadata(peer, where[1], leader=1)
        answer_metadata(peer, where[0], leader=1)
        key, version, correlation = peer.take()
        asked.append(key)
        peer.answer(correlation, "CreateTopicsResponse", version, {"Topics": [{"Name": "orders", "ErrorCode": 0}]})
        answer_metadata(peer, where[0], leader=1)
        answer_offset(peer, 0, 0)

    with socket.create_server(("127.0.0.1", 0)) as bound:
        closed = bound.getsockname()
    with broker(script) as address:
        where += [address, closed]
        with client(address) as asking:
            asking.create_topics({"orders": 1})
    assert asked == [19]


def test_a_definite_refusal_is_not_asked_again() -> None:
    """A code outside the retriable ones is raised at once."""
    where: list[tuple[str, int]] = []

    def script(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=1)
        answer_offset(peer, 29, -1)

    with broker(script) as address:
        where.append(address)
        with client(address) as asking, pytest.raises(BrokerError) as caught:
            asking.list_offsets([ORDERS])
    assert caught.value.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "ListOffsets of orders-0" in str(caught.value)


def test_a_question_without_answer_names_the_last_observation() -> None:
    """When the time is up, the error names the thing waited for, the time, and the last answer."""
    where: list[tuple[str, int]] = []

    def script(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=-1, error=5)
        while True:
            answer_metadata(peer, where[0], leader=-1, error=5)

    with broker(script) as address:
        where.append(address)
        with (
            client(address, timeout_s=BRIEF_S) as asking,
            pytest.raises(
                DeadlineError, match=r"waited 0\.3 s for the leaders of orders-0; .*LEADER_NOT_AVAILABLE\(5\)"
            ),
        ):
            asking.leader_of("orders", 0)


def test_an_error_names_some_of_many_partitions() -> None:
    """And says how many others there are."""
    many = [TopicPartition("orders", number) for number in range(200)]
    assert shown(many) == "orders-0, orders-1, orders-2 and 197 more"
    assert shown(many[:3]) == "orders-0, orders-1, orders-2"


def test_a_shunned_broker_is_asked_only_by_its_id() -> None:
    """Its connection is open, and "any broker" is another one."""
    where: list[tuple[str, int]] = []

    def old(peer: Peer) -> None:
        metadata_of(peer, where[0], leader=1)
        answer_offset(peer, 0, 7)

    with broker(old) as first, broker(lambda peer: metadata_of(peer, where[0], leader=-1)) as second:
        where.append(first)
        with client(first) as asking:
            assert asking.metadata(["orders"]).topics["orders"].partitions[0].leader == 1
            asking.pool.bootstrap = [Address(*second)]
            asking.pool.shunned = frozenset({Address(*first)})
            assert asking.metadata(["orders"]).topics["orders"].partitions[0].leader == -1
            body = {"ReplicaId": -1, "IsolationLevel": 0, "Topics": []}
            assert asking.call("ListOffsets", body, broker=1)["Topics"][0]["Partitions"][0]["Offset"] == 7


def test_a_silent_bootstrap_broker_is_passed_over() -> None:
    """A paused first bootstrap broker costs one attempt; the second one answers."""
    where: list[tuple[str, int]] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,  # never accepts; the kernel completes handshakes
        broker(lambda peer: metadata_of(peer, where[0], leader=1)) as address,
    ):
        where.append(address)
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]},{address[0]}:{address[1]}"
        with Client(bootstrap, definitions(), timeout_s=PATIENT_S, attempt_s=BRIEF_S) as asking:
            assert asking.leader_of("orders", 0) == 1


def test_an_abandoned_client_stops_waiting_for_a_broker() -> None:
    """A request of an abandoned client ends at once, not at its deadline; nothing more is sent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    asking = client(address, timeout_s=60.0)
    with asking, ThreadPoolExecutor(1) as other:
        answer = other.submit(asking.leader_of, "orders", 0)
        with pytest.raises(TimeoutError):
            answer.result(BRIEF_S)
        asking.abandon()
        with pytest.raises(AbandonedError):
            answer.result(PATIENT_S)


@pytest.mark.parametrize("text", ["nowhere", "host:", ":9092", "host:port"])
def test_a_bad_bootstrap_is_one_sentence(text: str) -> None:
    """An address without host or port is refused with the form that is expected."""
    with pytest.raises(ValueError, match="host:port is expected"):
        Client(text, definitions())


def test_a_producer_id_is_asked_for_once() -> None:
    """InitProducerId raises an epoch: after a lost connection it is not sent again, and the caller gets the error."""

    def script(peer: Peer) -> None:
        _, version, correlation = peer.take()
        offered = [{"ApiKey": 22, "MinVersion": 0, "MaxVersion": 4}]
        peer.answer(correlation, "ApiVersionsResponse", version, {"ApiKeys": offered})
        assert peer.take()[0] == 22

    with broker(script) as address, client(address) as asking, pytest.raises(DisconnectedError):
        asking.init_producer_id()


def test_a_producer_id_is_asked_for_again_when_nothing_was_done() -> None:
    """CONCURRENT_TRANSACTIONS means that the transaction before is still being completed: the request is repeated."""

    def script(peer: Peer) -> None:
        _, version, correlation = peer.take()
        offered = [{"ApiKey": 22, "MinVersion": 0, "MaxVersion": 4}]
        peer.answer(correlation, "ApiVersionsResponse", version, {"ApiKeys": offered})
        for error in (51, 0):
            _, version, correlation = peer.take()
            body = {"ErrorCode": error, "ProducerId": 7, "ProducerEpoch": 3}
            peer.answer(correlation, "InitProducerIdResponse", version, body)

    with broker(script) as address, client(address) as asking:
        assert asking.init_producer_id() == Producer(id=7, epoch=3)


class RefusingCoordinator(Client):
    """Its only broker answers, and the answer is an error."""

    def metadata(self, *_: Any, **__: Any) -> Any:
        """One broker."""
        return SimpleNamespace(brokers={1: Address("127.0.0.1", 1)})

    def call(self, *_: Any, **__: Any) -> Any:
        """An error and no groups."""
        return {"ErrorCode": int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "Groups": []}


def test_groups_that_a_broker_does_not_list_are_not_absent() -> None:
    """Otherwise what a run leaves on a cluster would not be named."""
    with pytest.raises(BrokerError, match="ListGroups of broker 1"):
        RefusingCoordinator("127.0.0.1:1", definitions()).list_groups()
