"""Changes of a cluster become entries of the history: by looks that a test gives, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from chaos.cluster import BrokerId, ClusterView, PartitionView
from fixtures.clusters.errors import ObservationError
from runner.given.cluster_watcher import ClusterLook, ClusterMemory, ClusterWatcher
from verification.vocabulary.history import FaultRecord
from wire.values import TopicPartition

AT = TopicPartition(topic="onceproof-0123456789ab-billing-events", partition=1)
SECOND = 1_000_000_000
#: A look comes twice a second.
WITHIN_S = 30.0


def look(
    at_s: int,
    *,
    alive: Iterable[int] = (1, 2, 3),
    leader: int | None = 1,
    controller: int = 1,
    level: int = 1,
    releases: Mapping[int, str] | None = None,
) -> ClusterLook:
    seen = PartitionView(leader=None if leader is None else BrokerId(leader), leader_epoch=0, replicas=(), in_sync=())
    view = ClusterView(
        taken_ns=at_s * SECOND,
        alive=frozenset(map(BrokerId, alive)),
        controller=BrokerId(controller),
        controller_epoch=0,
        partitions={AT: seen},
    )
    of_brokers = {BrokerId(broker): release for broker, release in (releases or {}).items()}
    return ClusterLook(view=view, levels={"metadata.version": level}, releases=of_brokers)


def watched(*looks: ClusterLook | None, memory: ClusterMemory | None = None) -> tuple[list[FaultRecord], list[str]]:
    """The entries and sentences of these looks; None is one at which no broker answers."""
    records: list[FaultRecord] = []
    said: list[str] = []
    left, over = list(looks), threading.Event()

    def next_look() -> ClusterLook:
        if not left:
            over.set()
            raise ObservationError("No look is left.")
        found = left.pop(0)
        if found is None:
            raise ObservationError("No broker answers.")
        return found

    names = {AT.topic: "billing-events"}
    with ClusterWatcher(
        next_look, records.append, said.append, first_step=1, names=names, memory=memory or ClusterMemory()
    ):
        assert over.wait(WITHIN_S)
    return records, said


def test_a_broker_that_comes_back_is_one_entry_from_the_one_to_the_other() -> None:
    """Also when for a moment no broker answers."""
    records, said = watched(look(10), look(11, alive=(1, 3)), None, look(15))
    (gone,) = records
    assert (gone.step, gone.fault, gone.began_ns, gone.healed_ns) == (1, "BrokerGone", 11 * SECOND, 15 * SECOND)
    assert said == ["broker 2 left the cluster", "broker 2 is back after 4.0 s"]


def test_a_broker_that_stays_away_is_an_entry_without_an_end() -> None:
    """It is written when the window ends."""
    (gone,) = watched(look(10), look(11, alive=(1, 3)))[0]
    assert (gone.began_ns, gone.healed_ns) == (11 * SECOND, None)


def test_moves_and_levels_are_entries_of_a_moment() -> None:
    """In the names of the scenario, in the order in which they were seen."""
    records, _ = watched(
        look(10),
        look(11, leader=None),
        look(12, leader=2),
        look(13, leader=2, controller=3),
        look(14, leader=2, controller=3, level=2),
    )
    assert [(each.step, each.description) for each in records] == [
        (1, "leader of billing-events-1 moved 1 → none"),
        (2, "leader of billing-events-1 moved none → 2"),
        (3, "active controller moved 1 → 3"),
        (4, "metadata.version changed from 1 to 2"),
    ]
    assert all(each.began_ns == each.healed_ns for each in records)
    assert records[-1].levels == {"metadata.version": 2}


def test_a_cluster_that_stays_as_it_is_leaves_nothing() -> None:
    """Not even its first look."""
    assert watched(look(10), look(11), look(12)) == ([], [])


def test_a_broker_that_comes_back_with_another_release_is_an_entry() -> None:
    """A broker that does not answer has the release that it had; the releases at first are no entry."""
    records, said = watched(
        look(10, releases={1: "Kafka 4.2", 2: "Kafka 4.2"}),
        look(11, alive=(1, 3), releases={1: "Kafka 4.2"}),
        look(15, releases={1: "Kafka 4.2", 2: "Kafka 4.3"}),
    )
    texts = {each.fault: each.description for each in records}
    assert texts["ReleaseChanged"] == "broker 2 changed from Kafka 4.2 to Kafka 4.3"
    assert len(records) == 2
    assert said[-1] == "broker 2 changed from Kafka 4.2 to Kafka 4.3"


def test_a_broker_that_left_in_the_window_before_comes_back_in_this_one() -> None:
    """With another release; the entry of its absence begins with the window."""
    memory = ClusterMemory()
    watched(look(10, releases={1: "Kafka 4.2", 2: "Kafka 4.2"}), look(11, alive=(1, 3)), memory=memory)
    later = (look(20, alive=(1, 3), releases={1: "Kafka 4.2"}), look(25, releases={1: "Kafka 4.2", 2: "Kafka 4.3"}))
    records, _ = watched(*later, memory=memory)
    assert [(each.fault, each.began_ns // SECOND) for each in records] == [
        ("BrokerGone", 20),
        ("ReleaseChanged", 25),
    ]


def test_the_live_line_shows_releases_leaders_and_brokers_that_are_gone() -> None:
    """As the last look had them; a partition without a leader is one of `none`."""
    over = threading.Event()
    looks = [look(10, releases={1: "Kafka 4.2", 2: "Kafka 4.3"}), look(11, alive=(1, 3), leader=None)]

    def next_look() -> ClusterLook:
        if not looks:
            over.set()
            raise ObservationError("No look is left.")
        return looks.pop(0)

    names = {AT.topic: "billing-events"}
    with ClusterWatcher(
        next_look, lambda _: None, lambda _: None, first_step=1, names=names, memory=ClusterMemory()
    ) as watcher:
        assert over.wait(WITHIN_S)
        assert watcher.summary == "Kafka 4.2: 1 │ gone: 2 │ leaders none: 1"
