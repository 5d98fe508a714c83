"""The stage of a protocol case: a real cluster, the connections to it, and the script that is written on the way.

Every request of the script is sent exactly once, on a connection that the script can name, at a version that follows
from the generation of the transaction protocol unless the script says another one. Nothing is repeated behind the
script's back: answers that mean "not now" (a coordinator that loads, a transaction that completes) are part of what is
tested, except in `set_up`, which builds the ground for a claim and may ask again.

A request is a value: `request` encodes one and keeps it, `send` sends it, on whatever connection, as often as wanted.
What is asked for orientation only (who leads, who coordinates) is no part of the script.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fixtures.waiting import LOOK_EVERY_S
from runner.protocol.toolkit.inspector import Inspector
from runner.protocol.toolkit.outage import OnOutage, at_once
from runner.protocol.toolkit.responses import Response
from runner.protocol.toolkit.script_recorder import ScriptRecorder
from verification.scripts.script import Relation
from verification.vocabulary import releases
from wire.client import Client
from wire.codes import ErrorCode, code_name
from wire.connection import Connection, Pending
from wire.deadline import Deadline
from wire.errors import WireError
from wire.primitives import Raw
from wire.request import Request
from wire.responses import Responses
from wire.schema import Body
from wire.transaction_versions import AT_MOST, TransactionVersion
from wire.values import CoordinatorType, TopicPartition

if TYPE_CHECKING:
    from fixtures.clusters.runtime import RunningCluster
    from wire.messages import Definitions

T = TypeVar("T")

#: Clusters of releases before this one keep their metadata in ZooKeeper.
QUORUM_SINCE = "3.3.0"
#: A coordinator that was just elected loads its partition in milliseconds, a transaction completes in a round trip.
SET_UP_WITHIN_S = 15.0
#: A transaction that cannot be aborted in this time is stuck: the cluster will be replaced.
TIDY_WITHIN_S = 3.0
#: With these a broker says "not now": the request did nothing, or what it asked for is still under way.
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
    """A connection to a broker, by a name that the script shows."""

    broker: int
    name: str
    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request on its way; `CaseContext.receive` waits for its answer."""

    line: BrokerConnection
    pending: Pending
    receive: Callable[[], Response]


class CaseContext:
    """What a case is given. `name` makes topics, groups and transactional ids unique.

    `cluster` is there for cases that take brokers away (see `runner.protocol.toolkit.brokers`); whoever changes it must
    leave it whole. `together` is how it waits for those that share its outages. `defined` are the messages as the
    release itself defines them; the client speaks the newest definitions.
    """

    def __init__(
        self,
        client: Client,
        *,
        generation: TransactionVersion,
        release: str,
        defined: Definitions,
        cluster: RunningCluster,
        on_outage: OnOutage = at_once,
    ) -> None:
        self.client = client
        self.defined = defined
        self.release = release
        self.cluster = cluster
        self.on_outage = on_outage
        self.generation = generation
        self.recording = ScriptRecorder()
        self.inspect = Inspector(client)
        self.name = secrets.token_hex(4)
        self._lines: dict[int, BrokerConnection] = {}
        self._others: list[BrokerConnection] = []
        self._topics = 0

    # -- requests ----------------------------------------------------------------------------------------------

    def line(self, broker: int) -> BrokerConnection:
        """The usual connection to a broker; opened anew when it has ended."""
        line = self._lines.get(broker)
        if line is None or line.connection.closed:
            line = self._lines[broker] = BrokerConnection(
                broker=broker, name=f"broker {broker}", connection=self._open(broker)
            )
        return line

    def open_connection(self, broker: int) -> BrokerConnection:
        """One more connection to a broker, which belongs to the script."""
        name = f"broker {broker}, connection {len(self._others) + 2}"
        line = BrokerConnection(broker=broker, name=name, connection=self._open(broker))
        self._others.append(line)
        return line

    def close_connections(self) -> None:
        """Close every connection that stands open to ask on: a broker is about to go, or has gone."""
        for line in self._lines.values():
            line.connection.close("the broker goes away")
        self.client.pool.close()

    def _open(self, broker: int) -> Connection:
        return self.client.open(broker)

    def version_of(self, api: str, line: BrokerConnection) -> int:
        """The highest version of an API that the broker offers and the generation has."""
        return line.connection.version_for(api, at_most=AT_MOST[self.generation].get(api, 0x7FFF))

    def request(
        self,
        api: str,
        body: Mapping[str, Any] | Raw | Callable[[int], Body],
        *,
        line: BrokerConnection,
        version: int | None = None,
    ) -> Request:
        """A request as a value, not sent; a body that depends on the version is given as a function of it."""
        chosen = self.version_of(api, line) if version is None else version
        return line.connection.request(api, body(chosen) if callable(body) else body, chosen)

    def send(self, request: Request, *, line: BrokerConnection) -> Sent:
        """Send a request, byte for byte, and do not wait for its answer yet."""
        begun = self.recording.begin(request.api, request.version, line.name, request.body)
        pending = line.connection.send(request)

        def receive() -> Response:
            try:
                return self.recording.answered(begun, line.connection.receive(pending))
            except WireError as error:
                return self.recording.answered(begun, error)

        return Sent(line=line, pending=pending, receive=receive)

    def ask(
        self,
        api: str,
        body: Mapping[str, Any] | Raw | Callable[[int], Body],
        *,
        broker: int | None = None,
        line: BrokerConnection | None = None,
        version: int | None = None,
    ) -> Response:
        """Send one request and wait for its answer; any broker where none is named."""
        chosen = line or self.line(self.brokers[0] if broker is None else broker)
        return self.send(self.request(api, body, line=chosen, version=version), line=chosen).receive()

    def send_many(self, request: Request, *, line: BrokerConnection, count: int) -> Sequence[Body]:
        """Send one request so many times without waiting, then receive every answer; one exchange of the script.

        Raises WireError when an answer does not come: a flood is ground, not claim. An answer is decoded when it is
        looked at, which few are.
        """
        begun = self.recording.begin(f"{request.api} × {count}", request.version, line.name, request.body)
        sent = line.connection.send_repeatedly(request, count)
        answers = Responses(line.connection, sent)
        self.recording.answered(begun, {"First": answers[0], "Last": answers[-1]})
        return answers

    def since(self, release: str) -> bool:
        """Whether the brokers are of this release or a later one, where releases may lawfully differ."""
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
        """Who leads a partition now."""
        return self.client.leader_of(*at, self.client.deadline())

    def coordinator(self, transactional_id: str) -> int:
        """Who coordinates a transactional id now."""
        return self.client.find_coordinator(transactional_id, CoordinatorType.TRANSACTION, self.client.deadline())

    def group_coordinator(self, group: str) -> int:
        """Who coordinates a group now."""
        return self.client.find_coordinator(group, CoordinatorType.GROUP, self.client.deadline())

    def topic(self, partitions: int = 1, **settings: str) -> tuple[TopicPartition, ...]:
        """The partitions of a new topic; settings are named with underscores for dots."""
        self._topics += 1
        name = f"{self.name}-{self._topics}"
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        self.client.create_topics({name: partitions}, configs=configs)
        self.heard_of(name)
        return tuple(TopicPartition(name, index) for index in range(partitions))

    def heard_of(self, topic: str) -> None:
        """Wait until every broker knows a new topic, which its leaders do already.

        One that does not refuses to add its partitions, and answers with that before it says that it does not coordinate.
        """
        brokers = self.brokers
        for broker in brokers if len(brokers) > 1 else ():
            code = self.poll_until(
                partial(self.told_of, topic, broker), lambda each: each == 0, within_s=SET_UP_WITHIN_S
            )
            self.require(f"what broker {broker} says of {topic}", code, 0)

    def told_of(self, topic: str, broker: int) -> int:
        """The code with which a broker names a topic."""
        body = {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
        return int(self.client.call("Metadata", body, broker=broker)["Topics"][0]["ErrorCode"])

    def by_release(self, answers: Mapping[str, T]) -> T:
        """What the newest of these releases says that is not newer than the one on stage: {"2.4.0": …, "4.1.0": …}."""
        since = [release for release in answers if releases.within(self.release, release, None)]
        return answers[max(since, key=releases.parse)]

    # -- statements --------------------------------------------------------------------------------------------

    def require(self, what: str, observed: Any, expected: Any, relation: Relation = Relation.EQUALS) -> None:
        """State the ground of a claim; where it does not hold the script ends, inconclusive."""
        self.recording.state(what, observed, relation, expected, required=True)

    def expect(self, what: str, observed: Any, expected: Any, relation: Relation = Relation.EQUALS) -> None:
        """State a claim; where it does not hold the requirement is violated, and the script goes on."""
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

    def set_up(self, what: str, call: Callable[[], Response], *, within_s: float = SET_UP_WITHIN_S) -> Response:
        """Ask until the broker no longer says "not now", and require that it then says yes."""
        return self.require_code(what, self.answered(call, within_s=within_s))

    def answered(self, call: Callable[[], Response], *, within_s: float = SET_UP_WITHIN_S) -> Response:
        """Ask until the broker no longer says "not now", as after a restart; its answer, whatever that is."""
        end_s = time.monotonic() + within_s
        while (answer := call()).code in NOT_NOW and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S / 2)
        return answer

    def poll_until(self, look: Callable[[], Any], wanted: Callable[[Any], bool], *, within_s: float) -> Any:
        """Look until what is seen is wanted, or the time is over; returns what was seen last, and states nothing."""
        end_s = time.monotonic() + within_s
        while not wanted(seen := look()) and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S / 2)
        return seen

    def close(self) -> None:
        """Abort what the script left open, for the next case is to find nothing, and close its connections."""
        with contextlib.suppress(WireError):
            for name in self.client.list_transactions(["Ongoing"]):
                if name.startswith(self.name):
                    self.client.init_producer_id(name, deadline=Deadline.after(TIDY_WITHIN_S))
        for line in [*self._lines.values(), *self._others]:
            line.connection.close()
