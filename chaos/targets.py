"""Targets: roles, resolved to brokers at the moment of injection.

A schedule never says "broker 2". It names roles: the leader of a partition, the coordinator of a transactional id or a
group, the active controller. A target can also prove that its role has left a broker. Most faults are confirmed so.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from chaos.arena import Arena, admin_of
from chaos.cluster import BrokerId, PartitionView
from chaos.errors import UnresolvedTargetError
from verification.vocabulary.history import LEADERLESS
from wire.deadline import Deadline
from wire.errors import WireError
from wire.values import TopicPartition

#: The state of an open transaction in the answers of a coordinator.
ONGOING = "Ongoing"
#: A program that rests or recovers opens its next transaction later: Flink with its next checkpoint, a second.
OPENED_WITHIN_S = 10.0
#: A look is a few requests to each broker, some 10 ms; the shortest transactions last 50 ms.
LOOK_EVERY_S = 0.02
#: Coordinators answer within milliseconds. One that was killed is asked too, until the metadata is without it; then the look
#: is made again.
ANSWERED_WITHIN_S = 5.0


class Target(Protocol):
    """A role that one or more brokers have."""

    def describe(self) -> str:
        """The role in words."""

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The brokers that have the role now; raises UnresolvedTargetError when there is none."""

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """A sentence that proves the role has left these brokers, None while it has not."""


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """The leader of one partition."""

    topic: str
    partition: int

    def describe(self) -> str:
        """The role in words."""
        return f"leader of {self.topic}-{self.partition}"

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The present leader."""
        leader = _leader(arena, arena.partition(self.topic, self.partition))
        if leader is None:
            raise UnresolvedTargetError(f"{self.topic}-{self.partition} has no leader to aim at")
        return (leader,)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """Another broker leads, or none does."""
        leader = _leader(arena, arena.partition(self.topic, self.partition))
        if leader is None:
            return f"{self.topic}-{self.partition} {LEADERLESS}"
        return None if leader in brokers else f"leader of {self.topic}-{self.partition} moved {brokers[0]} → {leader}"


@dataclass(frozen=True, slots=True)
class FollowerOf:
    """An in-sync follower of one partition: the one with the highest id."""

    topic: str
    partition: int

    def describe(self) -> str:
        """The role in words."""
        return f"follower of {self.topic}-{self.partition}"

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """A broker that replicates the partition now and does not lead it."""
        seen = _seen(arena, arena.partition(self.topic, self.partition))
        followers = [broker for broker in seen.in_sync if broker != seen.leader]
        if not followers:
            raise UnresolvedTargetError(f"{self.topic}-{self.partition} has no in-sync follower to aim at")
        return (max(followers),)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """The in-sync set of the partition is without these brokers."""
        in_sync = _seen(arena, arena.partition(self.topic, self.partition)).in_sync
        if set(brokers) & set(in_sync):
            return None
        return f"in-sync replicas of {self.topic}-{self.partition} are {list(in_sync)}, without {list(brokers)}"


@dataclass(frozen=True, slots=True)
class LeaderAwayFromCoordinators:
    """The leader of that partition of a topic which coordinates the fewest of the producers' transactional ids.

    For attacks on a partition that must spare the coordinator: a transaction ends at its coordinator, and the marker
    has to travel to another broker.
    """

    topic: str

    def describe(self) -> str:
        """The role in words."""
        return f"leader of a partition of {self.topic}, the one that coordinates the fewest producers"

    def choose(self, arena: Arena) -> TopicPartition:
        """The partition whose leader coordinates the fewest producers; the lowest of equals."""
        view = arena.cluster.view()
        load = Counter(
            arena.cluster.transaction_coordinator(process.transactional_id)
            for process in arena.clients.alive("producer")
            if process.transactional_id is not None
        )
        real = arena.partition(self.topic, 0).topic
        led = [
            (load[seen.leader], at)
            for at, seen in view.partitions.items()
            if at.topic == real and seen.leader is not None
        ]
        if not led or min(led)[0] == sum(load.values()):
            raise UnresolvedTargetError(f"every leader of {self.topic} coordinates all producers")
        return min(led)[1]

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The leader of the chosen partition."""
        return LeaderOf(self.topic, self.choose(arena).partition).resolve(arena)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """A partition of the topic that these brokers hold alone has no leader."""
        for at, seen in sorted(arena.cluster.view().partitions.items()):
            if at.topic == arena.partition(self.topic, 0).topic and set(seen.replicas) <= set(brokers):
                return f"{self.topic}-{at.partition} {LEADERLESS}" if seen.leader is None else None
        return None


@dataclass(frozen=True, slots=True)
class TransactionCoordinatorOf:
    """The transaction coordinator of the n-th transactional id of the workload.

    It counts all ids, not only those of running processes, so that a process that ends does not change the target.
    """

    producer: int = 0

    def describe(self) -> str:
        """The role in words."""
        return f"transaction coordinator of producer {self.producer}"

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The present coordinator."""
        coordinator = arena.cluster.transaction_coordinator(arena.transactional_id(self.producer))
        if coordinator is None:
            raise UnresolvedTargetError(f"producer {self.producer} has no transaction coordinator to aim at")
        return (coordinator,)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """Another broker coordinates the id."""
        coordinator = arena.cluster.transaction_coordinator(arena.transactional_id(self.producer))
        if coordinator is None or coordinator in brokers:
            return None
        return f"transaction coordinator moved {brokers[0]} → {coordinator}"


@dataclass(frozen=True, slots=True)
class CoordinatorOfOpenTransaction:
    """The transaction coordinator of a transaction that is open in a topic; of several, that of the lowest id.

    For foreign programs, whose transactional ids the harness does not know. ListTransactions and DescribeTransactions (3.0+)
    say who coordinates what.
    """

    topic: str

    def describe(self) -> str:
        """The role in words."""
        return f"coordinator of a transaction that is open in {self.topic}"

    def _coordinators(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The coordinator of each transaction that is open in the topic, in the order of ids; none without an answer."""
        topic, admin = arena.partition(self.topic, 0).topic, admin_of(arena)
        try:
            within = Deadline.after(ANSWERED_WITHIN_S)
            listed = admin.list_transactions((ONGOING,), within)
            states = admin.describe_transactions(sorted(listed), within)
        except WireError:
            return ()
        return tuple(
            BrokerId(listed[name]["Coordinator"])
            for name, state in states.items()
            if topic in (each["Topic"] for each in state["Topics"])
        )

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The coordinator of a transaction that is open now, or is opened within `OPENED_WITHIN_S`."""
        deadline = time.monotonic() + OPENED_WITHIN_S
        while not (found := self._coordinators(arena)):
            if time.monotonic() > deadline:
                raise UnresolvedTargetError(f"no transaction was open in {self.topic} for {OPENED_WITHIN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        return found[:1]

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """Transactions are open in the topic, and these brokers coordinate none of them."""
        now = set(self._coordinators(arena))
        if not now or now & set(brokers):
            return None
        return f"transactions in {self.topic} are coordinated by {sorted(now)}, and none by {list(brokers)}"


@dataclass(frozen=True, slots=True)
class GroupCoordinator:
    """The group coordinator of the copiers' group."""

    def describe(self) -> str:
        """The role in words."""
        return "group coordinator of the copiers"

    def _coordinator(self, arena: Arena) -> BrokerId | None:
        if arena.group is None:
            raise UnresolvedTargetError("this run has no consumer group")
        return arena.cluster.group_coordinator(arena.group)

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The present coordinator."""
        coordinator = self._coordinator(arena)
        if coordinator is None:
            raise UnresolvedTargetError(f"group {arena.group} has no coordinator to aim at")
        return (coordinator,)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """Another broker coordinates the group."""
        coordinator = self._coordinator(arena)
        return None if coordinator is None or coordinator in brokers else f"group coordinator moved → {coordinator}"


@dataclass(frozen=True, slots=True)
class Controller:
    """The active KRaft controller."""

    def describe(self) -> str:
        """The role in words."""
        return "active controller"

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """The quorum leader."""
        controller = arena.cluster.view().controller
        if controller is None:
            raise UnresolvedTargetError("the quorum has no leader to aim at")
        return (controller,)

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """Another controller leads the quorum."""
        controller = arena.cluster.view().controller
        return None if controller is None or controller in brokers else f"controller moved {brokers[0]} → {controller}"


@dataclass(frozen=True, slots=True)
class AllBrokers:
    """Every broker at once."""

    def describe(self) -> str:
        """The role in words."""
        return "whole cluster, every broker at once"

    def resolve(self, arena: Arena) -> tuple[BrokerId, ...]:
        """Every broker of the cluster."""
        return arena.cluster.brokers

    def left(self, arena: Arena, brokers: tuple[BrokerId, ...]) -> str | None:
        """No broker's process is left, and none answers: only that shows what a command of the user did."""
        cluster = arena.cluster
        running = [broker for broker in brokers if cluster.is_running(broker) or cluster.answers(broker)]
        return None if running else f"no broker process is left of {len(brokers)}"


def aimed_at(target: Target, arena: Arena) -> tuple[TopicPartition, ...]:
    """The partitions of a role; none for roles that do not belong to a partition."""
    if isinstance(target, LeaderOf | FollowerOf):
        return (arena.partition(target.topic, target.partition),)
    return ()


def leader_and_followers(arena: Arena, topic: str, partition: int) -> tuple[BrokerId, tuple[BrokerId, ...]]:
    """The leader of a partition and its other replicas. Raises UnresolvedTargetError when there is no leader."""
    (leader,) = LeaderOf(topic, partition).resolve(arena)
    replicas = _seen(arena, arena.partition(topic, partition)).replicas
    return leader, tuple(broker for broker in replicas if broker != leader)


def leads_alone(arena: Arena, at: TopicPartition, leader: BrokerId) -> bool:
    """Whether the in-sync set of a partition has shrunk to this leader, which still leads."""
    seen = _seen(arena, at)
    return seen.leader == leader and seen.in_sync == (leader,)


def _seen(arena: Arena, at: TopicPartition) -> PartitionView:
    seen = arena.cluster.view().partitions.get(at)
    if seen is None:
        raise UnresolvedTargetError(f"the metadata does not have partition {at}")
    return seen


def _leader(arena: Arena, at: TopicPartition) -> BrokerId | None:
    return _seen(arena, at).leader
