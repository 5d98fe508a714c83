"""Sends each request to the right broker (leader, coordinator, controller) and repeats it where that is harmless.

Every request has one deadline. There are two kinds. A request that changes nothing is repeated after a lost connection
and after the codes of ``RETRIABLE`` (metadata moved, coordinator loading …). One that changes something is repeated only
after codes with which the broker says that it did nothing, and where no connection was made, so that nothing was sent: for
some seconds metadata name a controller that is stopped. Nothing else is ever repeated.

Brokers are reached at the addresses that Metadata gives through the listener of the bootstrap address.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from wire.codes import RETRIABLE, ErrorCode
from wire.connection import Authentication, Connection
from wire.deadline import Deadline
from wire.errors import BrokerError, ConnectError, DeadlineError, DisconnectedError, VersionError
from wire.messages import Definitions
from wire.pool import Pool
from wire.primitives import Raw
from wire.schema import Body
from wire.values import Address, CoordinatorType, Metadata, Partition, Topic, TopicPartition

Answer = TypeVar("Answer")

# The first pause is shorter than a local round trip under load, the last one than any broker-side interval awaited.
BACKOFF_S = (0.02, 0.05, 0.1, 0.2, 0.5)
# An error names so many partitions.
SHOWN_MAX = 3


class Router:
    """A cluster, reached at ``bootstrap`` ("host:port,host:port"); closed as a context manager.

    ``timeout_s`` bounds each request without a deadline of its own. ``attempt_s`` bounds the wait for one broker before
    the next attempt: a paused broker accepts connections and stays silent.
    """

    def __init__(
        self,
        bootstrap: str,
        definitions: Definitions,
        *,
        client_id: str = "onceproof",
        timeout_s: float = 15.0,
        attempt_s: float = 4.0,
        ssl_context: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
    ) -> None:
        self.definitions, self.timeout_s, self.attempt_s = definitions, timeout_s, attempt_s
        self.pool = Pool(
            [Address.parse(text) for text in bootstrap.split(",")],
            definitions,
            client_id=client_id,
            attempt_s=attempt_s,
            ssl_context=ssl_context,
            authentication=authentication,
        )
        self._brokers: Mapping[int, Address] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.pool.close()

    def abandon(self) -> None:
        """Let no request wait for a broker that is taken away: the next one raises AbandonedError at once.

        Another thread calls it than the one that asks. No broker may be left that answers that one.
        """
        self.pool.abandon()

    def deadline(self) -> Deadline:
        """The deadline of a request that is sent now."""
        return Deadline.after(self.timeout_s)

    def connection(self, broker: int | None = None, deadline: Deadline | None = None) -> Connection:
        """The connection to a broker by its id, or to any; raises BrokerError when Metadata does not list it."""
        deadline = deadline or self.deadline()
        if broker is None:
            return self.pool.any(deadline)
        return self.pool.at(self._address_of(broker, deadline), deadline)

    def open(self, broker: int, deadline: Deadline | None = None) -> Connection:
        """One more connection to a broker, which the caller closes; raises as `connection` does."""
        deadline = deadline or self.deadline()
        return self.pool.open(self._address_of(broker, deadline), deadline)

    def _address_of(self, broker: int, deadline: Deadline) -> Address:
        if broker not in self._brokers:
            self._metadata_once([], deadline)
        if broker not in self._brokers:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"Metadata lists {sorted(self._brokers)}, not {broker}")
        return self._brokers[broker]

    def call(
        self,
        api: str,
        body: Mapping[str, Any] | Raw | Callable[[int], Body],
        version: int | None = None,
        *,
        broker: int | None = None,
        deadline: Deadline | None = None,
    ) -> Body:
        """Ask a broker (any, if none is named) once, at the highest common version unless one is named.

        A body that depends on the version is given as a function of it. A connection without an answer in time is
        closed, so that the next call gets another.
        """
        deadline = deadline or self.deadline()
        connection = self.connection(broker, deadline)
        chosen = connection.version_for(api) if version is None else version
        try:
            return connection.call(api, body(chosen) if callable(body) else body, chosen, deadline)
        except DeadlineError as error:
            self.pool.drop(connection, str(error))
            raise

    def offers(self, api: str) -> bool:
        """Whether a broker (any) offers the API in a version that is known here."""
        try:
            self.connection().version_for(api)
        except VersionError:
            return False
        return True

    def until(
        self,
        what: str,
        ask: Callable[[Deadline], Answer],
        deadline: Deadline | None = None,
        *,
        codes: frozenset[ErrorCode] = RETRIABLE,
        harmless: bool = True,
    ) -> Answer:
        """Ask until there is an answer: again after ``codes``, unsent requests, and (if harmless) lost connections."""
        deadline = deadline or self.deadline()
        last: Exception | None = None
        for turn in range(1 << 20):
            try:
                return ask(deadline.at_most(self.attempt_s) if harmless else deadline)
            except BrokerError as error:
                if error.error not in codes:
                    raise
                last = error
            except (DisconnectedError, DeadlineError) as error:
                if not (harmless or isinstance(error, ConnectError)):
                    raise
                # The error of a broker says more than that no time was left to ask again.
                last = last if isinstance(last, BrokerError) and deadline.passed else error
            pause_s = BACKOFF_S[min(turn, len(BACKOFF_S) - 1)]
            if deadline.remaining_s(what, str(last)) <= pause_s:
                raise DeadlineError(f"waited {deadline.allowed_s:g} s for {what}; seen: {last}") from last
            time.sleep(pause_s)
            self._brokers = {}  # they may have moved
        raise AssertionError("the deadline ends the loop")

    def metadata(self, topics: Iterable[str] | None = None, deadline: Deadline | None = None) -> Metadata:
        """Brokers, controller and topics (all when none is named). Creates nothing; errors stay in the answer."""
        names = None if topics is None else list(topics)
        return self.until("metadata", lambda attempt: self._metadata_once(names, attempt), deadline)

    def _metadata_once(self, topics: list[str] | None, deadline: Deadline) -> Metadata:
        def body(version: int) -> Body:
            asked = None if topics is None else [{"Name": name} for name in topics]
            return {"Topics": asked} | ({"AllowAutoTopicCreation": False} if version >= 4 else {})

        answer = self.call("Metadata", body, deadline=deadline)
        check(answer.get("ErrorCode", 0), "Metadata")
        brokers = {item["NodeId"]: Address(item["Host"], item["Port"]) for item in answer["Brokers"]}
        self._brokers = brokers
        return Metadata(
            cluster_id=answer.get("ClusterId"),
            # librdkafka's mock cluster names a controller that is none of its brokers.
            controller=answer["ControllerId"] if answer["ControllerId"] in brokers else -1,
            brokers=brokers,
            topics={item["Name"]: _topic(item) for item in answer["Topics"]},
        )

    def leaders(
        self, partitions: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, int]:
        """The broker that leads each partition; asks until all have one."""
        wanted = list(dict.fromkeys(partitions))

        def ask(attempt: Deadline) -> dict[TopicPartition, int]:
            topics = self._metadata_once(sorted({at.topic for at in wanted}), attempt).topics
            return {at: _leader(topics, at) for at in wanted}

        return self.until(f"the leaders of {shown(wanted)}", ask, deadline)

    def leader_of(self, topic: str, partition: int, deadline: Deadline | None = None) -> int:
        """The broker that leads a partition; asks until there is one."""
        return self.leaders([TopicPartition(topic, partition)], deadline)[TopicPartition(topic, partition)]

    def find_coordinator(self, key: str, kind: CoordinatorType, deadline: Deadline | None = None) -> int:
        """The broker that coordinates a group or a transactional id; asks until there is one."""

        def body(version: int) -> Body:
            return {"KeyType": int(kind)} | ({"Key": key} if version < 4 else {"CoordinatorKeys": [key]})

        def ask(attempt: Deadline) -> int:
            answer = self.call("FindCoordinator", body, deadline=attempt)
            found = answer["Coordinators"][0] if "Coordinators" in answer else answer
            check(found["ErrorCode"], f"FindCoordinator of {key}")
            return int(found["NodeId"])

        return self.until(f"the {kind.name.lower()} coordinator of {key}", ask, deadline)


def shown(places: Sequence[TopicPartition]) -> str:
    """The first of them by name, and the number of the others: a topic may have hundreds."""
    more = f" and {len(places) - SHOWN_MAX} more" if len(places) > SHOWN_MAX else ""
    return ", ".join(map(str, places[:SHOWN_MAX])) + more


def check(code: int, what: str) -> None:
    """Raise BrokerError unless the code is 0; ``what`` names the request."""
    if code:
        raise BrokerError(code, what)


def _topic(item: Body) -> Topic:
    partitions = {
        each["PartitionIndex"]: Partition(
            leader=each["LeaderId"],
            leader_epoch=each.get("LeaderEpoch", -1),
            replicas=tuple(each["ReplicaNodes"]),
            in_sync=tuple(each["IsrNodes"]),
            error=each["ErrorCode"],
        )
        for each in item["Partitions"]
    }
    return Topic(id=item.get("TopicId", UUID(int=0)), error=item["ErrorCode"], partitions=partitions)


def _leader(topics: Mapping[str, Topic], at: TopicPartition) -> int:
    topic = topics[at.topic]
    check(topic.error, f"Metadata of {at.topic}")
    if at.partition not in topic.partitions:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Metadata of {at}")
    partition = topic.partitions[at.partition]
    check(partition.error or (ErrorCode.LEADER_NOT_AVAILABLE if partition.leader < 0 else 0), f"Metadata of {at}")
    return partition.leader
