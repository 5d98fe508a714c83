"""Rest is waited for within a bound, and only who looked after the bound had run out may say that something stands."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chaos.cluster import TopicPartition
from fixtures import quiescence
from fixtures.quiescence import LOOK_EVERY_S, Rest
from verification.captures import PartitionEnd
from verification.history import Settled
from verification.samples import MARKERS_S

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
