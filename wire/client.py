"""The requests of the suite by name: ends of logs, states of transactions and producers, offsets of groups, topics.

Each method says after which errors it asks again; ``wire.router`` explains the two kinds. Answers with many fields
keep the names of the protocol.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from wire.codes import ErrorCode
from wire.deadline import Deadline
from wire.errors import ProtocolError, VersionError
from wire.router import Router, check, shown
from wire.schema import Body
from wire.values import LATEST, CommittedOffset, CoordinatorType, Features, Isolation, Producer, TopicPartition

# With these a broker says that it is the wrong one, not ready, or still busy with the transaction before.
UNDONE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_CONTROLLER,
    }
)


class Client(Router):
    """A router with a method per request."""

    def list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        timestamp: int = LATEST,
        deadline: Deadline | None = None,
    ) -> dict[TopicPartition, int]:
        """The offset for a timestamp (milliseconds, EARLIEST or LATEST) in each partition, -1 where there is none."""
        wanted = list(partitions)

        def ask(attempt: Deadline) -> dict[TopicPartition, int]:
            found = {}
            for leader, mine in _by_leader(self, wanted, attempt).items():
                topics = [
                    {"Name": topic, "Partitions": [{"PartitionIndex": i, "Timestamp": timestamp} for i in indexes]}
                    for topic, indexes in _by_topic(mine).items()
                ]
                body = {"ReplicaId": -1, "IsolationLevel": int(isolation), "Topics": topics}
                answer = self.call("ListOffsets", body, broker=leader, deadline=attempt)
                for at, item in _flat(answer["Topics"]):
                    check(item["ErrorCode"], f"ListOffsets of {at}")
                    found[at] = item["Offset"]
            return found

        return self.until(f"the offsets of {shown(wanted)}", ask, deadline)

    def features(self, broker: int | None = None, deadline: Deadline | None = None) -> Features:
        """The feature levels in a fresh answer of a broker, or of any (2.7+)."""
        who = {"ClientSoftwareName": "onceproof", "ClientSoftwareVersion": "1"}
        answer = self.call("ApiVersions", lambda version: who if version >= 3 else {}, broker=broker, deadline=deadline)
        check(answer["ErrorCode"], "ApiVersions")
        return Features(
            finalized={each["Name"]: each["MaxVersionLevel"] for each in answer.get("FinalizedFeatures", ())},
            supported={each["Name"]: each["MaxVersion"] for each in answer.get("SupportedFeatures", ())},
        )

    def describe_quorum(self, deadline: Deadline | None = None) -> Body:
        """The metadata quorum: LeaderId, LeaderEpoch, HighWatermark, CurrentVoters, Observers (3.3+, KRaft only)."""
        body = {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]}

        def ask(attempt: Deadline) -> Body:
            answer = self.call("DescribeQuorum", body, deadline=attempt)
            check(answer["ErrorCode"], "DescribeQuorum")
            partitions: list[Body] = [each for topic in answer["Topics"] for each in topic["Partitions"]]
            if not partitions:
                raise ProtocolError("DescribeQuorum: the answer lacks the partition that was asked for")
            check(partitions[0]["ErrorCode"], "DescribeQuorum")
            return partitions[0]

        return self.until("the metadata quorum", ask, deadline)

    def describe_transactions(self, ids: Iterable[str], deadline: Deadline | None = None) -> dict[str, Body]:
        """The state of each transaction at its coordinator (3.0+), without ids that it does not know.

        TransactionState ("Empty", "Ongoing", "PrepareCommit" …), ProducerId, ProducerEpoch, TransactionTimeoutMs,
        TransactionStartTimeMs, Topics.
        """
        deadline = deadline or self.deadline()
        found = {}
        for name in ids:
            ask = partial(self._describe_one, name)
            if (state := self.until(f"the transaction {name}", ask, deadline)) is not None:
                found[name] = state
        return found

    def _describe_one(self, name: str, deadline: Deadline) -> Body | None:
        coordinator = self.find_coordinator(name, CoordinatorType.TRANSACTION, deadline)
        body = {"TransactionalIds": [name]}
        answer = self.call("DescribeTransactions", body, broker=coordinator, deadline=deadline)
        state: Body = answer["TransactionStates"][0]
        if state["ErrorCode"] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        check(state["ErrorCode"], f"DescribeTransactions of {name}")
        return state

    def list_transactions(self, states: Iterable[str] = (), deadline: Deadline | None = None) -> dict[str, Body]:
        """All transactions of all coordinators (3.0+) by id: ProducerId, TransactionState, and the ``Coordinator``."""
        wanted = list(states)

        def ask(attempt: Deadline) -> dict[str, Body]:
            found = {}
            for broker in self.metadata([], attempt).brokers:
                answer = self.call("ListTransactions", {"StateFilters": wanted}, broker=broker, deadline=attempt)
                check(answer["ErrorCode"], f"ListTransactions of broker {broker}")
                for item in answer["TransactionStates"]:
                    found[item["TransactionalId"]] = {**item, "Coordinator": broker}
            return found

        return self.until("the list of transactions", ask, deadline)

    def list_groups(self, deadline: Deadline | None = None) -> list[str]:
        """The groups of all coordinators that this principal sees."""

        def ask(attempt: Deadline) -> list[str]:
            found = []
            for broker in self.metadata([], attempt).brokers:
                body: Body = {"StatesFilter": [], "TypesFilter": []}
                answer = self.call("ListGroups", body, broker=broker, deadline=attempt)
                check(answer["ErrorCode"], f"ListGroups of broker {broker}")
                found += [str(each["GroupId"]) for each in answer["Groups"]]
            return found

        return self.until("the list of groups", ask, deadline)

    def describe_producers(
        self, partitions: Iterable[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, list[Body]]:
        """The producers that each leader remembers (2.8+).

        ProducerId, ProducerEpoch, LastSequence, LastTimestamp, CoordinatorEpoch, CurrentTxnStartOffset (-1: none open).
        """
        wanted = list(partitions)

        def ask(attempt: Deadline) -> dict[TopicPartition, list[Body]]:
            found = {}
            for leader, mine in _by_leader(self, wanted, attempt).items():
                topics = [{"Name": topic, "PartitionIndexes": indexes} for topic, indexes in _by_topic(mine).items()]
                answer = self.call("DescribeProducers", {"Topics": topics}, broker=leader, deadline=attempt)
                for at, item in _flat(answer["Topics"]):
                    check(item["ErrorCode"], f"DescribeProducers of {at}")
                    found[at] = item["ActiveProducers"]
            return found

        return self.until(f"the producers of {shown(wanted)}", ask, deadline)

    def init_producer_id(
        self,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        producer: Producer | None = None,
        deadline: Deadline | None = None,
    ) -> Producer:
        """A producer id; for a transactional id its next epoch, which fences the one before.

        ``producer`` is the current id and epoch of a producer that continues (KIP-360, 2.5+). It is repeated only while
        the coordinator answers that it did nothing, or is still completing the transaction before (51).
        """
        body: Body = {"TransactionalId": transactional_id, "TransactionTimeoutMs": transaction_timeout_ms}
        if producer is not None:
            body |= {"ProducerId": producer.id, "ProducerEpoch": producer.epoch}

        def ask(attempt: Deadline) -> Producer:
            broker = None
            if transactional_id is not None:
                broker = self.find_coordinator(transactional_id, CoordinatorType.TRANSACTION, attempt)
            answer = self.call("InitProducerId", body, broker=broker, deadline=attempt)
            check(answer["ErrorCode"], f"InitProducerId of {transactional_id}")
            return Producer(id=answer["ProducerId"], epoch=answer["ProducerEpoch"])

        return self.until(f"a producer id for {transactional_id}", ask, deadline, codes=UNDONE, harmless=False)

    def offset_fetch(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = True,
        deadline: Deadline | None = None,
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of a group for the partitions, or for all that it has; -1 where there is none.

        ``require_stable`` (2.5+) raises BrokerError(88) where a transaction on the offsets is still undecided. It uses
        v7 or below: the versions above say the same in other words.
        """
        topics = None
        if partitions is not None:
            topics = [{"Name": name, "PartitionIndexes": indexes} for name, indexes in _by_topic(partitions).items()]
        body: Body = {"GroupId": group, "Topics": topics}

        def ask(attempt: Deadline) -> dict[TopicPartition, CommittedOffset]:
            coordinator = self.find_coordinator(group, CoordinatorType.GROUP, attempt)
            version = self.connection(coordinator, attempt).version_for("OffsetFetch", at_most=7)
            if version < 7 and require_stable:
                raise VersionError(f"the broker offers OffsetFetch up to v{version}; require_stable needs v7")
            shaped = body | ({"RequireStable": True} if require_stable else {})
            answer = self.call("OffsetFetch", shaped, version, broker=coordinator, deadline=attempt)
            check(answer.get("ErrorCode", 0), f"OffsetFetch of {group}")
            return {at: _committed(item, f"OffsetFetch of {group} for {at}") for at, item in _flat(answer["Topics"])}

        return self.until(f"the offsets of group {group}", ask, deadline)

    def create_topics(
        self,
        partitions: Mapping[str, int],
        *,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        """Create topics with so many partitions each, and wait until each partition's leader answers for it.

        Metadata names a leader before that broker knows of it: the first Produce would be refused with 6.
        It is repeated only after NOT_CONTROLLER. Raises BrokerError(36) for a topic that exists.
        """
        deadline = deadline or self.deadline()
        settings = [{"Name": name, "Value": value} for name, value in (configs or {}).items()]
        topics = [
            {"Name": name, "NumPartitions": count, "ReplicationFactor": replication_factor, "Configs": settings}
            for name, count in partitions.items()
        ]

        def ask(attempt: Deadline) -> None:
            timeout_ms = max(1, int(attempt.remaining_s("the creation of topics") * 1000))
            controller = self.metadata([], attempt).controller
            body = {"Topics": topics, "TimeoutMs": timeout_ms}
            answer = self.call("CreateTopics", body, broker=controller if controller >= 0 else None, deadline=attempt)
            for item in answer["Topics"]:
                check(item["ErrorCode"], f"CreateTopics of {item['Name']}: {item.get('ErrorMessage') or ''}")

        self.until("the creation of topics", ask, deadline, codes=UNDONE, harmless=False)
        created = [TopicPartition(name, index) for name, count in partitions.items() for index in range(max(count, 1))]
        self.list_offsets(created, deadline=deadline)

    def delete_topics(self, names: Iterable[str], deadline: Deadline | None = None) -> None:
        """Delete topics. It is repeated only after NOT_CONTROLLER. Raises BrokerError(3) for a topic that does not exist.

        It uses v5 or below: the later versions want topic ids, or names in another place.
        """
        deadline = deadline or self.deadline()
        wanted = list(names)

        def ask(attempt: Deadline) -> None:
            timeout_ms = max(1, int(attempt.remaining_s("the deletion of topics") * 1000))
            controller = self.metadata([], attempt).controller
            broker = controller if controller >= 0 else None
            version = self.connection(broker, attempt).version_for("DeleteTopics", at_most=5)
            body = {"TopicNames": wanted, "TimeoutMs": timeout_ms}
            answer = self.call("DeleteTopics", body, version, broker=broker, deadline=attempt)
            for item in answer["Responses"]:
                check(item["ErrorCode"], f"DeleteTopics of {item['Name']}")

        self.until("the deletion of topics", ask, deadline, codes=UNDONE, harmless=False)

    def delete_groups(self, names: Iterable[str], deadline: Deadline | None = None) -> None:
        """Delete groups without members, one by one. Raises BrokerError(69) for one that does not exist, 68 with members."""
        deadline = deadline or self.deadline()
        for name in names:

            def ask(attempt: Deadline, name: str = name) -> None:
                coordinator = self.find_coordinator(name, CoordinatorType.GROUP, attempt)
                answer = self.call("DeleteGroups", {"GroupsNames": [name]}, broker=coordinator, deadline=attempt)
                for item in answer["Results"]:
                    check(item["ErrorCode"], f"DeleteGroups of {item['GroupId']}")

            self.until(f"the deletion of group {name}", ask, deadline, codes=UNDONE, harmless=False)


def _by_leader(
    client: Client, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[int, list[TopicPartition]]:
    groups: dict[int, list[TopicPartition]] = defaultdict(list)
    for at, leader in client.leaders(partitions, deadline).items():
        groups[leader].append(at)
    return groups


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for at in partitions:
        topics[at.topic].append(at.partition)
    return topics


def _flat(topics: Iterable[Body]) -> Iterable[tuple[TopicPartition, Body]]:
    """Every partition of a nested answer with its name."""
    for topic in topics:
        for item in topic["Partitions"]:
            yield TopicPartition(topic["Name"], item["PartitionIndex"]), item


def _committed(item: Mapping[str, Any], what: str) -> CommittedOffset:
    check(item["ErrorCode"], what)
    return CommittedOffset(
        offset=item["CommittedOffset"],
        leader_epoch=item.get("CommittedLeaderEpoch", -1),
        metadata=item["Metadata"] or "",
    )
