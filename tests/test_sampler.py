"""The sampler goes on whoever dies, tells a leader that is silent from none at all, and hides no end of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.cluster import NO_LEADER, UNSEEN, BrokerId, ClusterView, PartitionView, Position, TopicPartition
from chaos.routes import Endpoint
from fixtures.clusters.errors import ObservationError
from fixtures.clusters.observing.partition_ends import Ends
from fixtures.errors import SamplingError
from fixtures.recording import sampler
from fixtures.recording.recorder import Recorder
from fixtures.recording.sampler import Sampler
from runner.scenarios.scenario_run import Trial
from tests.wire_definitions import definitions
from verification.evidence.history_file import read
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary import history
from verification.vocabulary.history import Sample
from wire.errors import WireError

HERE = TopicPartition(topic="t", partition=0)
LED = Position(leader=1, high_watermark=7, last_stable_offset=5)


@dataclass
class Leaders:
    """Answers one look after the other as it is told to; says when all are done."""

    looks: list[Callable[[], Position]]
    done: threading.Event = field(default_factory=threading.Event)

    def positions(self, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, Position]:
        if len(self.looks) == 1:
            self.done.set()
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return dict.fromkeys(partitions, look())


def nobody() -> Position:
    raise ObservationError("No broker answered Metadata: none is running.")


def torn() -> Position:
    raise WireError("the connection ended")


def broken() -> Position:
    raise ZeroDivisionError("not the cluster's fault")


def sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *looks: Callable[[], Position]) -> list[Sample]:
    """What is in the history after these looks; raises what stopping raises."""
    monkeypatch.setattr(sampler, "EVERY_S", 0.001)
    leaders, recorder = Leaders(list(looks)), Recorder(RunDirectory(tmp_path / "run"), run="r")
    one = Sampler(leaders, (HERE,), recorder)  # type: ignore[arg-type]
    one.start()
    assert leaders.done.wait(10)
    try:
        one.stop()
    finally:
        recorder.seal()
    return list(read(tmp_path / "run" / "history.jsonl").of(Sample))


def test_sampling_outlives_every_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments at which nobody answers are samples of nobody, and what comes after them is sampled as before."""
    later = Position(leader=2, high_watermark=9, last_stable_offset=9)
    samples = sampled(tmp_path, monkeypatch, lambda: LED, nobody, torn, lambda: later)
    assert [(each.leader, each.high_watermark) for each in samples] == [(1, 7), (UNSEEN, -1), (2, 9)]


def test_what_is_not_at_rest_is_sampled_at_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That records wait, or that nobody leads, is known only of moments at which somebody looked; rest is told once."""
    rest = Position(leader=1, high_watermark=7, last_stable_offset=7)
    silent, none = (Position(leader=leader, high_watermark=-1, last_stable_offset=-1) for leader in (1, NO_LEADER))
    seen = (LED, LED, LED, rest, rest, silent, silent, none, none)
    looks = [lambda each=each: each for each in seen]
    samples = sampled(tmp_path, monkeypatch, *looks, nobody, nobody, lambda: rest)
    assert [each.leader for each in samples] == [1, 1, 1, 1, 1, NO_LEADER, NO_LEADER, UNSEEN, 1]
    assert [each.last_stable_offset for each in samples] == [5, 5, 5, 7, -1, -1, -1, -1, 7]


def test_a_sampler_that_broke_says_so_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence that ends in mid-run must not be taken for a partition that stands still."""
    with pytest.raises(SamplingError, match="ZeroDivisionError: not the cluster's fault"):
        sampled(tmp_path, monkeypatch, broken)


def test_a_run_whose_sampling_broke_is_no_evidence() -> None:
    """The environment is at fault and says so, once clients have ended; who did not read to the end is named."""
    told: list[str] = []
    ended: list[bool] = []

    def stop() -> None:
        raise SamplingError("The sampler of ends broke.")

    trial: Any = Trial.__new__(Trial)
    trial.ends, trial.tell = tuple, told.append
    trial._sampler, trial._unsampled = SimpleNamespace(stop=stop), None
    trial.workload = SimpleNamespace(
        drain_observers=lambda *_, **__: {"committed": {"t-0": 3}},
        close=lambda: ended.append(True),
        problems=(),
    )
    with pytest.raises(SamplingError):
        trial.drain(timeout_s=1)
    assert ended
    assert "committed at {'t-0': 3}" in told[0]


def test_a_silent_leader_is_a_leader() -> None:
    """Only what the metadata says makes a partition leaderless; who does not answer has no ends, and still leads."""
    ends = Ends({BrokerId(1): Endpoint(host="127.0.0.1", port=1)}, definitions())
    places = [TopicPartition(topic="t", partition=number) for number in range(3)]
    seen = [PartitionView(leader=leader, leader_epoch=0, replicas=(), in_sync=()) for leader in (BrokerId(1), None)]
    view = ClusterView(
        taken_ns=0,
        alive=frozenset(),
        controller=None,
        controller_epoch=0,
        partitions=dict(zip(places, seen, strict=False)),
    )
    found = ends.positions(view, places, responsive=())
    assert [found[at].leader for at in places] == [1, NO_LEADER, UNSEEN]
    assert {found[at].high_watermark for at in places} == {-1}


def test_evidence_and_chaos_mean_the_same_by_no_leader() -> None:
    """The numbers in the history are those that leaders are sampled with."""
    assert (NO_LEADER, UNSEEN) == (history.NO_LEADER, history.UNSEEN)
