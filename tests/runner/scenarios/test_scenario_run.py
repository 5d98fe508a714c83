"""A run that fails: every part is closed, and the first error is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.cluster import BrokerId
from chaos.errors import LinkError, NodeLostError
from chaos.operations.rolling import RollNext
from chaos.schedule import Step
from fixtures.clients.errors import DriverSilentError
from fixtures.clusters.errors import ClusterUnhealthyError
from fixtures.errors import EnvironmentProblemError
from fixtures.recording.recorder import Recorder
from runner.scenarios import phases, pipeline_surroundings
from runner.scenarios.mock_run import MockScenarioRun
from runner.scenarios.phases import run_scenario
from runner.scenarios.pipeline_drain import PipelineDrain
from runner.scenarios.pipeline_surroundings import PipelineSurroundings
from runner.scenarios.scenario_run import ScenarioRun
from tests.support.fake_cluster import arena
from verification.evidence import history_file
from verification.evidence.peer_file import PeerPartition
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.experiment import ExperimentTopic, TopicRole
from verification.vocabulary.history import FaultRecord, LostNode, Phase
from verification.vocabulary.quiescent_state import PartitionEnd
from wire.errors import DeadlineError


class Part:
    """A part of a run that is closed, and may fail then."""

    def __init__(self, name: str, done: list[str], error: Exception | None = None) -> None:
        self.name, self.done, self.error = name, done, error

    def close(self) -> None:
        self.done.append(self.name)
        if self.error is not None:
            raise self.error

    heal = stop = close


def run_of(directory: Path, done: list[str], **errors: Exception) -> MockScenarioRun:
    """A run whose parts are closed; those that are named fail then."""
    scenario_run = object.__new__(MockScenarioRun)
    scenario_run.directory = RunDirectory(directory / "run")
    scenario_run._recorder = Recorder(scenario_run.directory, run="a1b2c3d4e5f6")
    (directory / "cluster" / "brokers").mkdir(parents=True)
    (directory / "cluster" / "brokers" / "broker-1.log").write_text("said", encoding="utf-8")
    parts: dict[str, Any] = {
        name: Part(name, done, errors.get(name)) for name in ("sampler", "workload", "rest", "links", "mock")
    }
    scenario_run._sampler, scenario_run._workload, scenario_run._quiescence, scenario_run.mock = (
        parts[name] for name in ("sampler", "workload", "rest", "mock")
    )
    scenario_run.cluster = SimpleNamespace(links=parts["links"], directory=directory / "cluster")
    return scenario_run


@pytest.mark.parametrize(
    "errors",
    [
        {"workload": DriverSilentError("driver 3 does not answer")},
        {"links": LinkError("links are not healed after 30 s")},
        {"workload": DriverSilentError("driver 3 does not answer"), "links": LinkError("links are not healed")},
    ],
    ids=["a mute driver", "a link that stays cut", "both"],
)
def test_what_refuses_to_end_keeps_nothing_else_from_it(tmp_path: Path, errors: dict[str, Exception]) -> None:
    """Links are healed, brokers' logs kept, the history sealed and the mock ended; then the error is raised."""
    done: list[str] = []
    scenario_run = run_of(tmp_path, done, **errors)
    with pytest.raises(type(list(errors.values())[-1])):
        scenario_run.close()
    assert done == ["sampler", "workload", "rest", "links", "mock"]
    assert '"footer"' in scenario_run.directory.history.read_text(encoding="utf-8").splitlines()[-1]
    assert (scenario_run.directory.brokers / "broker-1.log").read_text(encoding="utf-8") == "said"


def lost_node(_: ScenarioRun) -> None:
    """The schedule ends with a lost node."""
    node = LostNode(node=2, before="4.1.2", release="4.3.1", at_ns=1, log="")
    raise NodeLostError("node 2 ended by itself with 4.3.1. The end of its log:\nfatal", node)


def test_a_lost_node_ends_the_schedule_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the node; the other nodes give all evidence, which is judged as that of any run."""
    done: list[str] = []
    scenario_run = run_of(tmp_path, done)
    for name in ("set_up", "start_workload"):
        monkeypatch.setattr(MockScenarioRun, name, lambda _: None)
    for name in ("recover", "input_ends"):
        monkeypatch.setattr(MockScenarioRun, name, lambda *_, name=name, **__: done.append(name))
    monkeypatch.setattr(MockScenarioRun, "tell", lambda _, text: done.append(text))
    monkeypatch.setattr(phases, "await_steady", lambda _: True)
    monkeypatch.setattr(MockScenarioRun, "await_turn", lambda _: None)
    monkeypatch.setattr(phases, "inject_faults", lost_node)
    monkeypatch.setattr(phases, "take_evidence", lambda _: done.append("evidence"))
    assert run_scenario(scenario_run) is scenario_run.directory
    assert done[:2] == ["ends early: node 2 ended by itself with 4.3.1. The end of its log:", "evidence"]

    def too_few(_: ScenarioRun) -> None:
        raise DriverSilentError("driver 3 does not answer")

    monkeypatch.setattr(phases, "take_evidence", too_few)
    with pytest.raises(NodeLostError, match="node 2 ended by itself") as broken:
        run_scenario(run_of(tmp_path / "again", []))
    assert broken.value.__notes__ == ["the other nodes could not end the run: driver 3 does not answer"]


@pytest.mark.parametrize(("log", "said"), [("no license", "its log ends: no license"), ("", "its log is empty")])
def test_a_pipeline_that_never_becomes_ready_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, said: str
) -> None:
    """Clients work, and the pipeline commits nothing within its bound: an error of the environment, never a verdict."""
    scenario_run = run_of(tmp_path, [])
    floors = (SimpleNamespace(name="copied_before", need=10), SimpleNamespace(name="ok_before", need=3))
    scenario_run.scenario = SimpleNamespace(floors=floors, observe_s=0)  # type: ignore[assignment]
    answered = SimpleNamespace(ok=7)
    scenario_run.workload = SimpleNamespace(
        problems=(), given_up=(), progress=lambda: answered, pipeline_log=lambda: log
    )  # type: ignore[assignment]
    monkeypatch.setattr(MockScenarioRun, "copied", lambda _: 0)
    workload: Any = SimpleNamespace(pipeline=SimpleNamespace(ready_within_s=0.3))
    scenario_run.surroundings = PipelineSurroundings(workload=workload)
    with pytest.raises(EnvironmentProblemError, match=rf"10 offsets of outputs from the pipeline.* 0 offsets; {said}"):
        phases.await_steady(scenario_run)
    scenario_run.close()


@pytest.mark.parametrize("given_up", [(), ("producer-0 gets no further successor: it ended",)])
def test_a_run_that_does_not_become_steady_is_judged_if_another_client_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_up: tuple[str, ...]
) -> None:
    """Nothing strikes it. A slot without successors ends the wait of a pipeline at once, and another client is tried."""
    done: list[str] = []
    scenario_run = run_of(tmp_path, done)
    floors = tuple(
        SimpleNamespace(name=name, need=3) for name in ("ok_before", *(["copied_before"] if given_up else []))
    )
    scenario_run.scenario = SimpleNamespace(floors=floors, observe_s=0, workload=None)  # type: ignore[assignment]
    progress = SimpleNamespace(ok=2)
    workload: Any = SimpleNamespace(problems=(), given_up=given_up, progress=lambda: progress, ended_instances=tuple)
    workload.stop = lambda **_: done.append("stop")
    scenario_run.workload = workload
    for name in ("set_up", "start_workload", "settle", "fence", "drain"):
        monkeypatch.setattr(MockScenarioRun, name, lambda *_, **__: None)
    for name in ("experiment", "close"):
        monkeypatch.setattr(MockScenarioRun, name, lambda _: SimpleNamespace(pipeline=None))
    monkeypatch.setattr(MockScenarioRun, "copied", lambda _: 0)
    monkeypatch.setattr(MockScenarioRun, "try_another_client", lambda _, problem: done.append(str(problem)))
    monkeypatch.setattr(phases, "STEADY_WITHIN_S", 0.2)
    monkeypatch.setattr(phases, "inject_faults", lost_node)
    monkeypatch.setattr(phases, "take_evidence", phases.quiesce)
    run_scenario(scenario_run)
    problem, *rest = done
    assert problem == given_up[0] if given_up else problem.startswith("Timed out after 0 s waiting for 3 operations")
    assert rest == ["stop"]
    scenario_run.recorder.seal()


@pytest.mark.parametrize("error", [None, DeadlineError("no leader")])
def test_another_client_decides_whose_the_standstill_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """If it fails as well, the problem is the environment's; the history says which it was, and it is tried once."""
    said: list[str] = []

    def write_transaction(*_: object, **__: object) -> None:
        if error is not None:
            raise error

    scenario_run = run_of(tmp_path, [])
    scenario_run.named, scenario_run.phase_name = "a1b2c3d4e5f6", "await steady"
    scenario_run._quiescence = SimpleNamespace(client=None)  # type: ignore[assignment]
    scenario_run.scenario = SimpleNamespace(replication=3)  # type: ignore[assignment]
    monkeypatch.setattr("runner.scenarios.scenario_run.write_transaction", write_transaction)
    monkeypatch.setattr(MockScenarioRun, "ends", lambda _: ())
    monkeypatch.setattr(MockScenarioRun, "tell", lambda _, text: said.append(text))
    problem = EnvironmentProblemError("Timed out.")
    if error is None:
        ScenarioRun.try_another_client(scenario_run, problem)
        ScenarioRun.try_another_client(scenario_run, problem)
    else:
        with pytest.raises(EnvironmentProblemError) as raised:
            ScenarioRun.try_another_client(scenario_run, problem)
        assert raised.value is problem
        assert problem.__notes__ == ["another client cannot work either: no leader"]
        assert scenario_run.phase_name == "await steady"
    assert len(said) == (error is None)
    scenario_run.recorder.seal()
    (phase,) = history_file.read(scenario_run.directory.history).of(Phase)
    assert (phase.name, bool(phase.note)) == ("try another client", error is not None)


@pytest.mark.parametrize("upgrade", [None, "4.1.2 to 4.3.1"])
def test_a_node_that_ended_by_itself_is_named_by_the_history_of_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upgrade: str | None
) -> None:
    """Without an upgrade no release is to blame, and the cluster only gets no better."""
    scenario_run = run_of(tmp_path, [])
    scenario_run.arena, scenario_run.phase_name = arena(), "roll 2 of 3"
    scenario_run.workload = SimpleNamespace(eased=nullcontext)  # type: ignore[assignment]
    scenario_run.lane = SimpleNamespace(config=SimpleNamespace(upgrade=upgrade))  # type: ignore[assignment]
    roll = Step(fault=RollNext("4.3.1"), stage="roll 2 of 3")
    scenario_run.scenario = SimpleNamespace(schedule=(roll, roll))  # type: ignore[assignment]
    scenario_run.arena.cluster.crash(BrokerId(2))

    def await_healthy(*_: object, require: Callable[[], None], **__: object) -> None:
        require()
        raise ClusterUnhealthyError("node 2 is not running")

    monkeypatch.setattr("runner.scenarios.scenario_run.await_healthy", await_healthy)
    with pytest.raises(ClusterUnhealthyError if upgrade is None else NodeLostError):
        ScenarioRun.recover(scenario_run, timeout_s=1)
    scenario_run.recorder.seal()
    named = history_file.read(scenario_run.directory.history).of(FaultRecord)
    assert [(each.step, each.target, each.stage, bool(each.lost)) for each in named] == (
        [] if upgrade is None else [(2, "node 2, 4.1.2", "roll 2 of 3", True)]
    )


def test_the_first_error_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while closing does not replace the one before it: it is a note on it."""
    scenario_run = run_of(tmp_path, [], links=LinkError("links are not healed after 30 s"))

    def set_up(_: ScenarioRun) -> None:
        raise DriverSilentError("driver 3 does not answer")

    monkeypatch.setattr(MockScenarioRun, "set_up", set_up)
    with pytest.raises(DriverSilentError, match="driver 3") as broken:
        run_scenario(scenario_run)
    assert broken.value.__notes__ == ["closing: links are not healed after 30 s"]


class Draining:
    """A group that reads a topic of its own, in which so much is left at each look."""

    def __init__(self, *left: int, own: tuple[str, ...] = ("group-by-key-repartition",)) -> None:
        self.left, self.own, self.asked = list(left), own, []  # type: ignore[var-annotated]
        self.position = "group"

    def own_topics(self, group: str, given: Iterable[str]) -> tuple[str, ...]:
        assert (group, [*given]) == ("group", ["out", "in"])
        return self.own

    def unread(self, group: str, topics: Iterable[str]) -> int:
        self.asked.append((group, *topics))
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def places(self, topics: Iterable[str]) -> tuple[str, ...]:
        return tuple(topics)

    def ends(self, places: Iterable[str]) -> tuple[PartitionEnd, ...]:
        common = {"partition": 0, "start": 0, "high_watermark": 7, "last_stable_offset": 7}
        return tuple(PartitionEnd(topic=each, **common) for each in places)  # type: ignore[arg-type]


def drained(
    quiescence: Draining, *, timeout_s: float = 60.0, pending: list[int] | None = None
) -> tuple[bool, list[str]]:
    """Whether the copies of a pipeline can be judged, and what was done."""
    done: list[str] = []
    scenario_run: Any = ScenarioRun.__new__(ScenarioRun)
    scenario_run._quiescence, scenario_run.named, scenario_run._undrained = quiescence, "run", False
    scenario_run.scenario = SimpleNamespace(workload=SimpleNamespace(group=lambda _: "group"))
    outputs = ExperimentTopic(name="out", partitions=1, replication=1, min_in_sync=1)
    scenario_run.topics = lambda: (outputs, replace(outputs, name="in", role=TopicRole.INPUT))
    scenario_run.workload = SimpleNamespace(stop_feeding=lambda _: done.append("fed"))
    scenario_run.tell = done.append
    pipeline = SimpleNamespace(pending="select", deliveries="select", drained_within_s=timeout_s)
    database = None
    if pending is not None:
        database = SimpleNamespace(pipeline=pipeline, pending=lambda: pending.pop(0), deliveries=lambda: 12)
    workload: Any = SimpleNamespace(pipeline=pipeline, position="group")
    scenario_run.surroundings = PipelineSurroundings(workload=workload, database=database)  # type: ignore[arg-type]
    scenario_run._recorder = SimpleNamespace(record=lambda each: done.append(f"{each.topic} {each.high_watermark}"))
    scenario_run.drain_pipeline(feeder_within_s=1.0)
    return not scenario_run._undrained, done


def test_a_pipeline_empties_its_own_topics_once_nothing_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is at the end of its input and of its own topic before it is stopped."""
    monkeypatch.setattr("runner.scenarios.pipeline_drain.LOOK_EVERY_S", 0.0)
    quiescence = Draining(30, 4, 0)
    assert drained(quiescence) == (True, ["fed", "group-by-key-repartition 7"])
    assert quiescence.asked == [("group", "group-by-key-repartition", "in")] * 3


def test_a_pipeline_that_reads_its_input_alone_is_not_waited_for() -> None:
    """Its offsets and its outputs agree whenever it is stopped."""
    assert drained(Draining(9, own=())) == (True, [])


def test_a_share_group_is_waited_for_until_it_has_acknowledged_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members acknowledge out of order, so its position may be behind its outputs."""
    monkeypatch.setattr("runner.scenarios.pipeline_drain.LOOK_EVERY_S", 0.0)
    group = Draining(9, 2, 0, own=())
    group.position = "share"
    assert drained(group) == (True, ["fed"])
    assert len(group.asked) == 3


def test_a_pipeline_empties_its_database_between_its_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of topics and database each is empty at one look in the order of the work, else the first may have more by now."""
    monkeypatch.setattr("runner.scenarios.pipeline_drain.LOOK_EVERY_S", 0.0)
    pending = [3, 0, 0]
    quiescence = Draining(5, 0, 0, 2, 0, 0, own=())
    # The count of its deliveries is asked for at the end.
    assert drained(quiescence, pending=pending) == (True, ["fed", "group-deliveries 12"])
    assert pending == []
    assert len(quiescence.asked) == 6


def test_a_pipeline_across_two_clusters_empties_the_first_before_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The positions of its connectors are asked anew for the second one, which gets what the first had."""
    home, positions, looks = SimpleNamespace(), [{"in": 5}, {"in": 9}, {"copies": 2}, {"in": 9}, {"copies": 7}], []
    peer: Any = SimpleNamespace(inputs=("in",), client=SimpleNamespace(), copies=lambda: ("copies",))
    quiescence: Any = SimpleNamespace(
        client=home,
        own_topics=lambda *_: (),
        places=tuple,
        connector_positions=lambda _: positions.pop(0),
    )

    def left(client: object, places: tuple[str, ...], at: dict[str, int]) -> int:
        looks.append((client is home, *places))
        return {"in": 9, "copies": 7}[places[0]] - at[places[0]]

    monkeypatch.setattr("runner.scenarios.pipeline_drain.LOOK_EVERY_S", 0.0)
    monkeypatch.setattr("runner.scenarios.pipeline_drain.records_left", left)
    drain = PipelineDrain(quiescence, None, peer, group="group", topics=())
    assert drain.needed
    assert drain.complete(timeout_s=60.0) == ""
    assert looks == [(True, "in"), (True, "in"), (False, "copies"), (True, "in"), (False, "copies")]


def test_a_pipeline_that_is_not_empty_in_time_is_not_judged_by_its_copies() -> None:
    """What it had not yet worked on would look lost."""
    judged, done = drained(Draining(9), timeout_s=0.0)
    assert not judged
    assert "9 offsets left" in done[-1]


def test_a_second_cluster_that_cannot_be_read_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is not judged: the run says that it is not kept, and leaves no half of it, which would be refused."""

    def log(*_: object, **__: object) -> Iterator[PeerPartition]:
        yield PeerPartition(topic="home.orders", partition=0, high_watermark=0, last_stable_offset=0, rows=())
        raise DeadlineError("waited 15 s for home.orders-1")

    monkeypatch.setattr(pipeline_surroundings, "input_numbers", lambda *_: {})
    monkeypatch.setattr(pipeline_surroundings, "peer_log", log)
    workload: Any = SimpleNamespace(transaction_timeout_s=10.0)
    peer: Any = SimpleNamespace(inputs=("orders",), quiescence=None)
    said: list[str] = []
    scenario_run: Any = object.__new__(ScenarioRun)
    scenario_run.directory = RunDirectory(tmp_path)
    scenario_run._quiescence = SimpleNamespace(client=None, places=lambda _: ())
    scenario_run.run, scenario_run.tell = "a1b2c3d4e5f6", said.append
    scenario_run.surroundings = PipelineSurroundings(workload=workload, peer=peer)
    scenario_run.keep_peer_log()
    assert said == ["the log of the second cluster is not kept: waited 15 s for home.orders-1"]
    assert not scenario_run.directory.peer.exists()
