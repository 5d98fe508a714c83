"""Rest is waited for within a bound, and only who looked after the bound had run out may say that something stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from chaos.cluster import TopicPartition
from fixtures.recording import quiescence
from fixtures.recording.quiescence import LOOK_EVERY_S, Rest
from tests.planted_writes import clean
from verification.evidence.assumptions import check_topics
from verification.evidence.lso_samples import MARKERS_S
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import Topic
from verification.vocabulary.history import Settled
from verification.vocabulary.quiescent_state import PartitionEnd
from wire.values import Metadata, Partition
from wire.values import Topic as Described

HERE = TopicPartition(topic="t", partition=0)
TIMEOUT_S = 5.0
BOUND_S = TIMEOUT_S + MARKERS_S


class Looks(Rest):
    """Looks at one partition that take their time, on a clock of their own; (seconds, last stable offset) of each."""

    def __init__(self, *looks: tuple[float, int], open_s: float = 99) -> None:
        self.now, self.open_s, self.looks = 0.0, open_s, list(looks)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ends(self, partitions: Iterable[TopicPartition]) -> tuple[PartitionEnd, ...]:
        takes_s, stable = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        self.now += takes_s
        return tuple(
            PartitionEnd(topic=at.topic, partition=at.partition, start=0, high_watermark=7, last_stable_offset=stable)
            for at in partitions
        )

    def _open_transactions(self, transactional_ids: Iterable[str]) -> list[str]:
        return list(transactional_ids) if self.now < self.open_s else []


def settled(monkeypatch: pytest.MonkeyPatch, looks: Looks) -> Settled:
    """What is recorded of the partition."""
    monkeypatch.setattr(quiescence, "time", looks)
    (found,) = looks.settle((HERE,), transactional_ids=("id",), timeout_s=TIMEOUT_S, before_fencing=True)
    return found


def test_an_lso_that_does_not_move_stands_when_the_bound_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look is the first one that was begun after the bound."""
    found = settled(monkeypatch, Looks((0.1, 5)))
    assert found.last_stable_offset < found.high_watermark
    assert BOUND_S < found.waited_s < BOUND_S + 0.1 + LOOK_EVERY_S
    assert found.bound_s == BOUND_S


def test_a_look_that_was_begun_in_time_and_ended_late_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stood still in the middle of a look it is looked again."""
    found = settled(monkeypatch, Looks((BOUND_S + 10, 5), (0.1, 7)))
    assert found.last_stable_offset == found.high_watermark


def test_the_bound_is_shorter_once_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the answer of the coordinators on, markers are all that is waited for."""
    found = settled(monkeypatch, Looks((2.0, 5), open_s=1))
    assert found.bound_s == 2.0 + MARKERS_S
    assert found.last_stable_offset < found.high_watermark


class Topics:
    """A cluster that keeps the topics that it is told to create; it compacts them if nobody says otherwise."""

    def __init__(self) -> None:
        self.topics: dict[str, Described] = {}
        self.policies: dict[str, str] = {}

    def create_topics(
        self, partitions: Mapping[str, int], *, replication_factor: int, configs: Mapping[str, str]
    ) -> None:
        for name, count in partitions.items():
            self.topics[name] = described(count, len(self.topics) + 1)
            self.policies[name] = {"cleanup.policy": "compact", **configs}["cleanup.policy"]

    def metadata(self, names: Iterable[str]) -> Metadata:
        return Metadata(cluster_id=None, controller=1, brokers={}, topics={name: self.topics[name] for name in names})

    def list_offsets(self, *_: object, **__: object) -> dict[Any, int]:
        return {}

    describe_transactions = describe_producers = list_offsets


def described(partitions: int, number: int) -> Described:
    """A topic of so many partitions whose id is a number."""
    held = {
        each: Partition(error=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,)) for each in range(partitions)
    }
    return Described(id=UUID(int=number), error=0, partitions=held)


class Asking(Rest):
    """Asks a cluster that is none."""

    def __init__(self, client: Any) -> None:
        self._client, self._created = client, {}


@pytest.mark.parametrize(
    ("settings", "becomes", "said"),
    [
        ({}, described(2, 1), None),
        ({}, described(2, 9), "a was made anew during the run .*01 became .*09"),
        ({}, described(3, 1), "a has 3 partitions at the end and not 2"),
        ({"cleanup.policy": "compact,delete"}, described(2, 1), "a is compacted"),
    ],
)
def test_what_became_of_topics_is_asked(settings: dict[str, str], becomes: Described, said: str | None) -> None:
    """A topic that was made anew, grew or is compacted is seen in what the cluster says, and its run is not judged."""
    cluster = Topics()
    asking = Asking(cluster)
    planned = (Topic(name="a", partitions=2, replication=1, min_in_sync=1),)
    asking.create_topics(planned, settings)
    assert cluster.policies == {"a": settings.get("cleanup.policy", "delete")}
    cluster.topics["a"] = becomes
    captures = asking.pin((), transactional_ids=(), group=None)
    experiment = replace(clean("topics")[0].experiment, topics=planned)
    if said is None:
        check_topics(experiment, captures, Path("captures.json"))
        return
    with pytest.raises(UnfitEvidenceError, match=said):
        check_topics(experiment, captures, Path("captures.json"))
