"""The context of a protocol case: a real cluster, the connections to it, and the script that the case writes.

Every request of the script is sent exactly once, on a connection that the script can name. Its API version follows from
the transaction version, unless the script gives another one.

Nothing is repeated without the script. Answers that mean "not now" (a coordinator loads, a transaction completes) are
part of the test. The exception is `set_up`, which establishes a precondition and may ask again.

A request is a value: `request` encodes and keeps it, `send` sends it, on any connection, as often as wanted. Requests for
orientation only (which broker leads or coordinates) are not part of the script.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fixtures.clusters.given.cluster import GivenCluster
from fixtures.waiting import LOOK_EVERY_S
from runner.protocol.toolkit.inspector import Inspector
from runner.protocol.toolkit.outage import OnOutage, OutageEvent, at_once
from runner.protocol.toolkit.repeated_markers import OLD_S, repeated
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import ScriptRecorder
from verification.scripts.script import Relation
from verification.vocabulary import releases
from wire.client import Client
from wire.codes import NO_RIGHT, ErrorCode, code_name
from wire.connection import Connection, Pending
from wire.deadline import Deadline
from wire.errors import VersionError, WireError
from wire.primitives import Raw
from wire.request import Request
from wire.responses import Responses
from wire.router import check
from wire.schema import Body
from wire.transaction_versions import AT_MOST, TransactionVersion
from wire.values import CoordinatorType, TopicPartition

if TYPE_CHECKING:
    from fixtures.clients.java.kept_jvm import KeptJvm
    from fixtures.clusters.runtime import RunningCluster
    from wire.messages import Definitions

T = TypeVar("T")

#: Clusters of releases before this one keep their metadata in ZooKeeper.
QUORUM_SINCE = "3.3.0"
#: A coordinator that was just elected loads its partition in milliseconds, a transaction completes in a round trip.
SET_UP_WITHIN_S = 15.0
#: And for each partition of a new topic: at a load of 40 a broker had made 148 of 200 partitions after 15 s.
PARTITION_WITHIN_S = 0.2
#: The longest wait for an answer. Elsewhere a connection is given up after 4 s and another broker is asked. A script asks
#: this broker once, and a broker that stood still for 4 s would end it as an ERROR.
ANSWERED_WITHIN_S = 15.0
#: A transaction that cannot be aborted in this time is stuck, and the cluster will be replaced.
TIDY_WITHIN_S = 3.0
#: The codes that mean "not now": the request did nothing, or its effect is not complete yet.
NOT_NOW = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


@dataclass(slots=True, kw_only=True, eq=False)
class BrokerConnection:
    """A connection to a broker, with the name that the script shows."""

    broker: int
    name: str
    wire: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request on its way; `CaseContext.receive` waits for its answer."""

    connection: BrokerConnection
    pending: Pending
    receive: Callable[[], Response]


class CaseContext:
    """The argument of a case. `name` makes topics, groups and transactional ids unique.

    `cluster` is for cases that take brokers away (see `runner.protocol.toolkit.brokers`); a case that changes it must
    leave it whole. `topic_settings` are the user's own, which a case may replace. `on_outage` performs an outage event,
    alone or for all cases that share it. `defined` are the messages as the release itself defines them; the client uses
    the newest definitions. `java` has the release's own kafka-clients.
    """

    def __init__(
        self,
        client: Client,
        *,
        transaction_version: TransactionVersion,
        release: str,
        defined: Definitions,
        cluster: RunningCluster,
        java: KeptJvm,
        on_outage: OnOutage = at_once,
        prefix: str = "",
        topic_settings: Mapping[str, str] = {},
    ) -> None:
        self.client = client
        self.topic_settings = topic_settings
        self.defined = defined
        self.release = release
        self.cluster = cluster
        self.java = java
        self._on_outage = on_outage
        self.transaction_version = transaction_version
        self.recording = ScriptRecorder()
        self.inspect = Inspector(client)
        # On a cluster of the user names are those of a run, so that what is left is found by them.
        self.name = f"{prefix}{secrets.token_hex(6)}" if prefix else secrets.token_hex(4)
        self.leaving: dict[str, Callable[[], object]] = {}
        """For each member of a group, by its id, the request with which it leaves."""
        self._connections: dict[int, BrokerConnection] = {}
        self._own_connections: list[BrokerConnection] = []
        self._topics = 0

    # -- requests ----------------------------------------------------------------------------------------------

    def connection(self, broker: int) -> BrokerConnection:
        """The usual connection to a broker; opened again if it is closed."""
        connection = self._connections.get(broker)
        if connection is None or connection.wire.closed:
            connection = self._connections[broker] = BrokerConnection(
                broker=broker, name=f"broker {broker}", wire=self._open(broker)
            )
        return connection

    def open_connection(self, broker: int) -> BrokerConnection:
        """Open one more connection to a broker, for the script only."""
        name = f"broker {broker}, connection {len(self._own_connections) + 2}"
        connection = BrokerConnection(broker=broker, name=name, wire=self._open(broker))
        self._own_connections.append(connection)
        return connection

    def close_connections(self) -> None:
        """Close the usual connections, because a broker is about to go or has gone."""
        for connection in self._connections.values():
            connection.wire.close("the broker goes away")
        self.client.pool.close()

    def _open(self, broker: int) -> Connection:
        return self.client.open(broker)

    def version_of(self, api: str, connection: BrokerConnection) -> int:
        """The highest version of an API that the broker offers and the transaction version uses."""
        return connection.wire.version_for(api, at_most=AT_MOST[self.transaction_version].get(api, 0x7FFF))

    def request(
        self,
        api: str,
        body: Mapping[str, Any] | Raw | Callable[[int], Body],
        *,
        connection: BrokerConnection,
        version: int | None = None,
    ) -> Request:
        """Encode a request without sending it. A body that depends on the API version is a function of it."""
        chosen = self.version_of(api, connection) if version is None else version
        return connection.wire.request(api, body(chosen) if callable(body) else body, chosen)

    def send(self, request: Request, *, connection: BrokerConnection) -> Sent:
        """Send a request, byte for byte, and do not wait for its answer yet."""
        begun = self.recording.begin(request.api, request.version, connection.name, request.body)
        pending = connection.wire.send(request)

        def receive() -> Response:
            try:
                answer = connection.wire.receive(pending, Deadline.after(ANSWERED_WITHIN_S))
                return self.recording.answered(begun, answer)
            except WireError as error:
                return self.recording.answered(begun, error)

        return Sent(connection=connection, pending=pending, receive=receive)

    def ask(
        self,
        api: str,
        body: Mapping[str, Any] | Raw | Callable[[int], Body],
        *,
        broker: int | None = None,
        connection: BrokerConnection | None = None,
        version: int | None = None,
    ) -> Response:
        """Send one request and wait for its answer; to the first broker if none is named."""
        chosen = connection or self.connection(self.brokers[0] if broker is None else broker)
        return self.send(self.request(api, body, connection=chosen, version=version), connection=chosen).receive()

    def send_many(self, request: Request, *, connection: BrokerConnection, count: int) -> Sequence[Body]:
        """Send one request `count` times without waiting, then receive every answer, as `begin_many` does."""
        return self.begin_many(request, connection=connection, count=count)()

    def begin_many(self, request: Request, *, connection: BrokerConnection, count: int) -> Callable[[], Sequence[Body]]:
        """Send one request `count` times; the broker carries them out one after the other. One exchange of the script.

        The result receives every answer, and raises WireError if one does not come, because such requests are
        preconditions and not claims. An answer is decoded when it is read, because few are.
        """
        begun = self.recording.begin(f"{request.api} × {count}", request.version, connection.name, request.body)
        sent = connection.wire.send_repeatedly(request, count)

        def receive() -> Sequence[Body]:
            answers = Responses(connection.wire, sent)
            # answer dropped: it is only recorded here, and each answer is the caller's to read
            self.recording.answered(begun, {"First": answers[0], "Last": answers[-1]})
            return answers

        return receive

    def since(self, release: str) -> bool:
        """Whether the brokers are of this release or a later one; for behaviour that may differ between releases."""
        return releases.within(self.release, release, None)

    # -- orientation, which is no part of the script -----------------------------------------------------------

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers that Metadata lists."""
        return tuple(sorted(self.client.metadata([]).brokers))

    @property
    def level(self) -> int:
        """The cluster's finalized `transaction.version`; 0 where brokers do not know the feature."""
        return self.client.connection().features.get("transaction.version", 0)

    def leader(self, at: TopicPartition) -> int:
        """The broker that leads a partition now."""
        return self.client.leader_of(*at, self.client.deadline())

    def coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates a transactional id now."""
        return self.client.find_coordinator(transactional_id, CoordinatorType.TRANSACTION, self.client.deadline())

    def group_coordinator(self, group: str) -> int:
        """The broker that coordinates a group now."""
        return self.client.find_coordinator(group, CoordinatorType.GROUP, self.client.deadline())

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics that the case has made, or has begun to make."""
        return tuple(f"{self.name}-{number}" for number in range(1, self._topics + 1))

    def client_settings(self, client: str) -> dict[str, str]:
        """The settings with which a client library reaches the cluster, besides its bootstrap servers."""
        cluster = self.cluster
        return cluster.client_connection.settings(client) if isinstance(cluster, GivenCluster) else {}

    def topic(self, partitions: int = 1, **settings: str) -> tuple[TopicPartition, ...]:
        """The partitions of a new topic; settings are named with underscores for dots."""
        self._topics += 1
        name = self.topics[-1]
        configs = {**self.topic_settings, **{key.replace("_", "."): value for key, value in settings.items()}}
        deadline = Deadline.after(SET_UP_WITHIN_S + partitions * PARTITION_WITHIN_S)
        try:
            self.client.create_topics({name: partitions}, configs=configs, deadline=deadline)
        except VersionError:
            if configs:
                raise
            self._have_created(name)
        self.await_topic(name)
        self.note_topic(name)
        return tuple(TopicPartition(name, index) for index in range(partitions))

    def _have_created(self, topic: str) -> None:
        """Let a broker without CreateTopics make a topic, which it does when Metadata asks for it."""
        body = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": True}
        # answer dropped: the first one says that the topic is not there yet, and then it is asked again
        self.client.call("Metadata", body)
        code = self.poll_until(
            lambda: self.topic_code(topic, self.brokers[0]), lambda each: each == 0, within_s=SET_UP_WITHIN_S
        )
        self.require(f"the code of {topic}", code, 0)

    def await_topic(self, topic: str) -> None:
        """Wait until every broker knows a new topic. Its leaders know it already.

        A broker that does not know it refuses to add its partitions, even before it says that it does not coordinate.
        """
        brokers = self.brokers
        for broker in brokers if len(brokers) > 1 else ():
            code = self.poll_until(
                partial(self.topic_code, topic, broker), lambda each: each == 0, within_s=SET_UP_WITHIN_S
            )
            self.require(f"the error code of broker {broker} for {topic}", code, 0)

    def note_topic(self, topic: str) -> None:
        """Record a topic's replicas and settings, as far as the brokers tell them; no part of the script."""
        with contextlib.suppress(WireError):
            self.recording.topics[topic] = self.inspect.topic(topic)

    def on_outage(self, event: OutageEvent) -> None:
        """Perform an outage event, alone or with the cases that share it, and record it."""
        self._on_outage(event)
        self.recording.outage(event.name)

    def topic_code(self, topic: str, broker: int) -> int:
        """The code with which a broker names a topic."""
        body = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
        return int(self.client.call("Metadata", body, broker=broker)["Topics"][0]["ErrorCode"])

    def by_release(self, answers: Mapping[str, T]) -> T:
        """The value of the newest of these releases that is not newer than the one under test: {"2.4.0": …, "4.1.0": …}."""
        since = [release for release in answers if releases.within(self.release, release, None)]
        return answers[max(since, key=releases.parse)]

    # -- statements --------------------------------------------------------------------------------------------

    def require(self, what: str, observed: Any, expected: Any, relation: Relation = Relation.EQUALS) -> None:
        """State a precondition of a claim; if it does not hold, the script ends, INCONCLUSIVE."""
        self.recording.state(what, observed, relation, expected, required=True)

    def expect(self, what: str, observed: Any, expected: Any, relation: Relation = Relation.EQUALS) -> None:
        """State a claim; if it does not hold, the requirement is violated, and the script goes on.

        If a repeated marker may be the reason, the script ends, INCONCLUSIVE (see `repeated_markers`).
        """
        if self.recording.seconds >= OLD_S and not self.recording.holds(observed, relation, expected):
            places = repeated(self.name, self.recording, self.client, self.inspect)
            if places:
                self.require(f"partitions with a marker that was sent again, before a claim on {what}", places, [])
        self.recording.state(what, observed, relation, expected, required=False)

    def expect_code(self, what: str, answer: Response, *codes: int) -> None:
        """Claim that an answer has exactly this code, or one of these."""
        names = [code_name(code) for code in codes]
        if len(names) == 1:
            self.expect(what, code_name(answer.code), names[0])
        else:
            self.expect(what, code_name(answer.code), names, Relation.ONE_OF)

    def require_code(self, what: str, answer: Response, code: int = ErrorCode.NONE) -> Response:
        """Require that an answer has exactly this code."""
        self.require(what, code_name(answer.code), code_name(code))
        return answer

    def with_right(self, answer: Response) -> Response:
        """An answer about a name that is not under the prefix of the run.

        Raises BrokerError where a principal of the user has no right on it: the broker looks no further then.
        """
        if isinstance(self.cluster, GivenCluster) and answer.code in NO_RIGHT:
            check(answer.code, answer.api)
        return answer

    def set_up(self, what: str, call: Callable[[], Response], *, within_s: float = SET_UP_WITHIN_S) -> Response:
        """Ask until the broker no longer says "not now", and require that the answer has no error."""
        return self.require_code(what, self.answered(call, within_s=within_s))

    def answered(self, call: Callable[[], Response], *, within_s: float = SET_UP_WITHIN_S) -> Response:
        """Ask until the broker no longer says "not now", as after a restart; returns any other answer."""
        end_s = time.monotonic() + within_s
        while (answer := call()).code in NOT_NOW and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S / 2)
        return answer

    def poll_until(self, look: Callable[[], Any], wanted: Callable[[Any], bool], *, within_s: float) -> Any:
        """Repeat `look` until its value is wanted or the time is over; returns the last value, and states nothing."""
        end_s = time.monotonic() + within_s
        while not wanted(seen := look()) and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S / 2)
        return seen

    def close(self) -> None:
        """Abort open transactions of the script, so that the next case finds none, and close its connections."""
        with contextlib.suppress(WireError):
            for name in self.client.list_transactions(["Ongoing"]):
                if name.startswith(self.name):
                    self.client.init_producer_id(name, deadline=Deadline.after(TIDY_WITHIN_S))
        for connection in [*self._connections.values(), *self._own_connections]:
            connection.wire.close()
