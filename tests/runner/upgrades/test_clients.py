"""The stage in which clients are replaced: its steps and its floor."""

from __future__ import annotations

import pytest

from chaos.operations.clients import ReplaceNext
from fixtures.clusters.locks.releases import Release
from fixtures.workloads import UpgradeWorkload
from runner.upgrades.clients import floors, replaced
from runner.upgrades.path import UpgradePath
from verification.vocabulary.experiment import Floor

WORKLOAD = UpgradeWorkload(partitions=4)


def path(source: str, target: str) -> UpgradePath:
    return UpgradePath(source=Release.parse(source), target=Release.parse(target))


def test_every_client_of_kafka_clients_is_replaced() -> None:
    """A step for orders, plain records and two copiers, in one stage."""
    steps = list(replaced(WORKLOAD, path("3.9.2", "4.3.1")))
    assert [each.fault for each in steps] == [ReplaceNext("3.9.2", "4.3.1")] * 4
    assert {each.stage for each in steps} == {"clients"}


@pytest.mark.parametrize(
    ("source", "target", "needed"), [("3.9.2", "4.3.1", 3), ("4.3.1", "4.3.1", 3), ("3.8.1", "3.9.2", 0)]
)
def test_the_second_version_must_have_been_spoken_where_there_is_one(source: str, target: str, needed: int) -> None:
    """By the producer of orders and both copiers of kafka-clients."""
    spoken = [each for each in floors(WORKLOAD, path(source, target)) if each.name == "tv2_producers"]
    assert spoken == ([Floor(name="tv2_producers", need=needed)] if needed else [])


@pytest.mark.parametrize(
    ("source", "target", "needed"), [("3.9.2", "4.3.1", 1), ("3.8.1", "3.9.2", 1), ("4.3.1", "4.3.1", 0)]
)
def test_the_group_must_have_had_both_releases_at_once(source: str, target: str, needed: int) -> None:
    """A control has one release, so its group has no other."""
    shared = [each.need for each in floors(WORKLOAD, path(source, target)) if each.name == "copied_together"]
    assert shared == [needed] * bool(needed)
