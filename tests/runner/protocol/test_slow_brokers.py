"""A script outlasts a broker that answers late, and a controller that changes."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

from runner.protocol.toolkit import replicas
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from runner.protocol.toolkit.inspector import Inspector
from runner.protocol.toolkit.script_recorder import ScriptRecorder
from tests.support.servers.wire_peer import Peer, broker
from tests.support.wire_definitions import definitions
from verification.scripts.script import TopicUsed
from wire.client import Client
from wire.codes import ErrorCode
from wire.connection import Connection
from wire.errors import DeadlineError
from wire.values import TopicPartition

AT = TopicPartition("orders", 0)
BRIEF_S = 0.3


def _versions(peer: Peer) -> None:
    """Answer the first request of a connection."""
    _, _, correlation = peer.take()
    keys = [
        {"ApiKey": definitions().api_key(api), "MinVersion": 0, "MaxVersion": 3} for api in ("EndTxn", "ApiVersions")
    ]
    peer.answer(correlation, "ApiVersionsResponse", 3, {"ApiKeys": keys})


def _late(peer: Peer) -> None:
    """Answer the request after longer than its connection waits by itself."""
    _versions(peer)
    _, version, correlation = peer.take()
    time.sleep(2 * BRIEF_S)
    peer.answer(correlation, "EndTxnResponse", version, {"ErrorCode": int(ErrorCode.CONCURRENT_TRANSACTIONS)})
    peer.await_end()


def test_a_late_answer_is_the_answer() -> None:
    """A connection of the toolkit gives up soon, because others can ask another broker; a script waits for its answer."""
    case = object.__new__(CaseContext)
    case.recording = ScriptRecorder()
    with broker(_late) as address:
        wire = Connection(*address, definitions(), timeout_s=10.0)
        # From here on as long as `Router.attempt_s` leaves it.
        wire.timeout_s = BRIEF_S
        connection = BrokerConnection(broker=1, name="broker 1", wire=wire)
        body = {"TransactionalId": "shop", "ProducerId": 1, "ProducerEpoch": 0, "Committed": True}
        answer = case.send(
            case.request("EndTxn", body, connection=connection, version=1), connection=connection
        ).receive()
        wire.close()
    assert answer.code == ErrorCode.CONCURRENT_TRANSACTIONS


class ChangingController(Client):
    """Its first requests find no controller; `asked` are those that were sent."""

    def __init__(self, *refusals: ErrorCode | Exception) -> None:
        super().__init__("127.0.0.1:1", definitions())
        self.refusals = list(refusals)
        self.asked: list[str] = []

    def call(self, api: str, *_: Any, **__: Any) -> Any:
        """The answer of a controller, if there is one by now."""
        self.asked.append(api)
        refusal = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        if isinstance(refusal, Exception):
            raise refusal
        return {"ErrorCode": int(refusal), "Responses": [{"Partitions": [{"ErrorCode": 0}]}]}

    def metadata(self, *_: Any, **__: Any) -> Any:
        """Brokers 1 and 2, both in sync."""
        partition = SimpleNamespace(replicas=(1, 2), in_sync=(1, 2))
        return SimpleNamespace(topics={AT.topic: SimpleNamespace(partitions={0: partition})}, controller=1)

    def leader_of(self, *_: Any, **__: Any) -> int:
        """The preferred replica."""
        return 2


def _case(client: Client) -> CaseContext:
    case = object.__new__(CaseContext)
    case.recording, case.client, case.release = ScriptRecorder(), client, "4.0.0"
    case.inspect = cast(Inspector, SimpleNamespace(topic=lambda name: TopicUsed(name=name, replicas=())))
    return case


def test_a_reassignment_is_asked_for_until_there_is_a_controller() -> None:
    """A controller that was elected meanwhile refuses, or does not answer; that ends no case."""
    client = ChangingController(ErrorCode.NOT_CONTROLLER, DeadlineError("waited 4 s"), ErrorCode.REQUEST_TIMED_OUT)
    case = _case(client)
    replicas.put(case, AT, 2, 1)
    assert client.asked == ["AlterPartitionReassignments"] * 4
    assert [(each.required, each.holds) for each in case.recording.statements] == [(True, True)]


def test_an_election_is_asked_for_until_a_controller_answers() -> None:
    """The answer says little: the leader does."""
    client = ChangingController(DeadlineError("waited 4 s"))
    case = _case(client)
    replicas.elected(case, AT, 2)
    assert client.asked == ["ElectLeaders"] * 2
    assert [(each.required, each.holds) for each in case.recording.statements] == [(True, True)]
