"""Faults in two parts: a leader accepts writes alone, then it is killed, and these writes are lost.

Controls need subjects that are known to lose data. With both faults a leader accepts writes that no other broker has,
and then goes down. That is harmless only for a subject that does not acknowledge such writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from chaos.arena import Arena
from chaos.cluster import BrokerId
from chaos.faults.fault import Injection, names
from chaos.faults.network import crossing
from chaos.targets import LeaderOf, leader_and_followers, leads_alone
from wire.values import TopicPartition

#: A broker that was just started needs a JVM start and a session, some seconds; a minute is a machine in distress.
ELECTION_WITHIN_S = 60.0
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class IsolateThenCrashLeader:
    """Cut a leader from its peers, let clients write to it, and kill it when the fault ends; then restart it.

    With `acks=1` the isolated leader acknowledges alone until it learns of the new one.
    """

    topic: str
    partition: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"leader of {self.topic}-{self.partition} cut from its peers, written to, then killed"

    def futility(self) -> str | None:
        """It shows as soon as another leader is elected."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Isolate now; crash, restore and restart when healing."""
        target = LeaderOf(self.topic, self.partition)
        inside = target.resolve(arena)
        links = crossing(arena.cluster.links, inside)
        arena.cluster.links.cut(*links)

        def heal() -> None:
            for broker in inside:
                if arena.cluster.is_running(broker) and not arena.cluster.links.is_healed():
                    arena.cluster.crash(broker)
            arena.cluster.links.restore(*links)
            for broker in inside:
                if not arena.cluster.is_running(broker):
                    arena.cluster.start(broker)

        return Injection(target=names(inside), confirm=lambda: target.left(arena, inside), heal=heal)


@dataclass(frozen=True, slots=True)
class ElectUncleanly:
    """Kill the followers of a partition, let the leader write alone, then kill it and bring the followers back.

    With `unclean.leader.election.enable` a follower that misses acknowledged records becomes leader (KAFKA-20716).
    """

    topic: str
    partition: int

    def describe(self) -> str:
        """The fault and its target in words."""
        return f"followers of {self.topic}-{self.partition} killed, then its leader, followers back first"

    def futility(self) -> str | None:
        """It shows as soon as the in-sync set shrinks."""
        return None

    def inject(self, arena: Arena) -> Injection:
        """Kill the followers now; the leader falls when healing."""
        at = arena.partition(self.topic, self.partition)
        leader, followers = leader_and_followers(arena, self.topic, self.partition)
        arena.cluster.crash(*followers)
        done: list[bool] = []

        def confirm() -> str | None:
            if not leads_alone(arena, at, leader):
                return None
            return f"{names((leader,))} is the only in-sync replica of {self.topic}-{self.partition}"

        def heal() -> None:
            if not done and arena.cluster.is_running(leader):
                done.append(True)
                arena.cluster.crash(leader)
            for broker in followers:
                if not arena.cluster.is_running(broker):
                    arena.cluster.start(broker)
            if not arena.cluster.is_running(leader):
                await_other_leader(arena, at, leader)
                arena.cluster.start(leader)

        return Injection(target=names((leader,)), confirm=confirm, heal=heal)


def await_other_leader(arena: Arena, at: TopicPartition, fallen: BrokerId) -> None:
    """Wait until another broker leads. After `ELECTION_WITHIN_S` the old one may return; the control then shows it."""
    began = time.monotonic()
    while time.monotonic() - began < ELECTION_WITHIN_S:
        if arena.cluster.view().partitions[at].leader not in (None, fallen):
            return
        time.sleep(LOOK_EVERY_S)
