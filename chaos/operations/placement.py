"""Places roles on nodes by their release: coordinators on one release, the leaders that they send markers to on another.

During an upgrade some paths exist only between releases: markers from the coordinator of a transaction to the leaders that
it wrote to (WriteTxnMarkers), and the check of a partition from its leader to the coordinator (AddPartitionsToTxn v4+).
Every partition of `__transaction_state` goes to the one release. Every partition of one topic, and of
`__consumer_offsets`, goes to the other. So each transaction that writes to the topic takes both paths, whatever its id.

An operator does this by reassignment (the order of replicas, AlterPartitionReassignments) and preferred election
(ElectLeaders). No replica moves, so every partition must have a replica on a node of the wanted release. The proof is the
leaders in the brokers' metadata, their answers to who coordinates, and coordinators that have read their logs. The
placement stays until something moves it: the faults of later steps strike in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from chaos.arena import Arena, admin_of
from chaos.cluster import GROUPS_TOPIC, BrokerId
from chaos.errors import InjectionError, UnresolvedTargetError
from chaos.faults.fault import Injection
from verification.vocabulary import transaction_log
from wire.client import Client
from wire.codes import code_name
from wire.errors import WireError
from wire.schema import Body
from wire.values import TopicPartition

#: By partition its replicas; the first one is preferred.
Order = Mapping[TopicPartition, tuple[BrokerId, ...]]
#: Both take some 50 ms; an election of the controller in between takes seconds.
PLACED_WITHIN_MS = 10_000
#: The version that every release speaks. A broker of 4.x may forward version 1, which a controller of 3.9 does not know.
_REASSIGNMENT_VERSION = 0
_PREFERRED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRoles:
    """Let nodes of one release coordinate transactions, and nodes of another lead a topic and coordinate groups.

    Without a release, a role is spread over all nodes. The proof names the coordinator of `producer`, the leader of the
    topic's first partition and, if there are copiers, the coordinator of their group.
    """

    topic: str
    coordinators: str = ""
    leaders: str = ""
    producer: int = 0

    def describe(self) -> str:
        """The operation in words."""
        return (
            f"transaction coordinators placed on {_side(self.coordinators)}, leaders of {self.topic} and group "
            f"coordinators on {_side(self.leaders)}"
        )

    def futility(self) -> str | None:
        """A leader always shows."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Ask for the order of replicas and for elections. Raises InjectionError without an answer."""
        admin, order = admin_of(arena), self._order(arena)
        reassign(admin, order)
        elect(admin, order)
        return Injection(
            target=f"{len(order)} partitions",
            confirm=lambda: self._placed(arena, admin, order),
            heal=lambda: None,
            partitions=tuple(at for at in order if at.topic == arena.partition(self.topic, 0).topic),
            lasts=False,
        )

    def _order(self, arena: Arena) -> Order:
        releases = {
            transaction_log.TOPIC: self.coordinators,
            GROUPS_TOPIC: self.leaders,
            arena.partition(self.topic, 0).topic: self.leaders,
        }
        installed = arena.cluster.installed()
        order = {}
        for at, seen in sorted(arena.cluster.view().partitions.items()):
            if at.topic in releases:
                wanted = releases[at.topic]
                fit = sorted(each for each in seen.replicas if not wanted or installed[each] == wanted)
                if not fit:
                    raise UnresolvedTargetError(f"no replica of {at} is on a node of {wanted}")
                leader = fit[at.partition % len(fit)]
                # When it crashes, the next one in the order takes over: a node of the other release, if there is one.
                order[at] = (leader, *sorted(set(seen.replicas) - {leader}, key=lambda each: (each in fit, each)))
        return order

    def _placed(self, arena: Arena, admin: Client, order: Order) -> str | None:
        view = arena.cluster.view()
        if late := {at: replicas for at, replicas in order.items() if view.partitions[at].leader != replicas[0]}:
            # A replica that was out of sync for a moment was not elected; an election that was not needed does nothing.
            with suppress(InjectionError):
                elect(admin, late)
            return None
        # On a busy machine a coordinator was named 7 s before it had read its log. No transaction ends meanwhile.
        if arena.cluster.loading_coordinators(view):
            return None
        installed, named = arena.cluster.installed(), []
        for role, release, broker in self._roles(arena):
            if broker is None or (release and installed[broker] != release):
                return None
            named.append(f"{role} on broker {broker} ({installed[broker]})")
        return (
            f"{', '.join(named)}; all of {transaction_log.TOPIC} led by {_side(self.coordinators)}, "
            f"all of {self.topic} and {GROUPS_TOPIC} by {_side(self.leaders)}"
        )

    def _roles(self, arena: Arena) -> Iterator[tuple[str, str, BrokerId | None]]:
        """Each role that the proof names, the release that it shall be on, and the broker that has it."""
        cluster, at = arena.cluster, arena.partition(self.topic, 0)
        coordinator = cluster.transaction_coordinator(arena.transactional_id(self.producer))
        yield f"coordinator of producer {self.producer}", self.coordinators, coordinator
        yield f"leader of {self.topic}-0", self.leaders, cluster.view().partitions[at].leader
        if arena.group is not None:
            yield "coordinator of the copiers", self.leaders, cluster.group_coordinator(arena.group)


def _side(release: str) -> str:
    return f"nodes of {release}" if release else "all nodes"


def reassign(admin: Client, order: Order) -> None:
    """Give partitions this order of replicas. Raises InjectionError without an answer, or with a refusal."""
    partitions = {at: {"PartitionIndex": at.partition, "Replicas": list(order[at])} for at in order}
    body = {"TimeoutMs": PLACED_WITHIN_MS, "Topics": _by_topic("Name", partitions)}
    answer = _answer(admin, "AlterPartitionReassignments", body, version=_REASSIGNMENT_VERSION)
    refused = [each for topic in answer["Responses"] for each in topic["Partitions"] if each["ErrorCode"]]
    for each in (answer, *refused):
        if each["ErrorCode"]:
            raise InjectionError(
                f"the reassignment was refused: {code_name(each['ErrorCode'])}: {each['ErrorMessage']}"
            )


def elect(admin: Client, order: Iterable[TopicPartition]) -> None:
    """Elect the preferred replicas."""
    places = _by_topic("Topic", {at: at.partition for at in order})
    body = {"ElectionType": _PREFERRED, "TopicPartitions": places, "TimeoutMs": PLACED_WITHIN_MS}
    # answer dropped: an election that was not needed is an error, too; the leaders are the proof
    _answer(admin, "ElectLeaders", body)


def _answer(admin: Client, api: str, body: Body, *, version: int | None = None) -> Body:
    # What is asked for twice is done once: a controller that changes meanwhile does not answer.
    try:
        return admin.until(api, lambda attempt: admin.call(api, body, version, deadline=attempt))
    except WireError as error:
        raise InjectionError(f"no answer to {api}: {error}") from error


def _by_topic(name: str, items: Mapping[TopicPartition, Any]) -> list[Body]:
    topics = dict.fromkeys(at.topic for at in items)
    return [{name: topic, "Partitions": [item for at, item in items.items() if at.topic == topic]} for topic in topics]
