"""Claims about workloads whose drivers fail: what is known of the operation, who succeeds, and what is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.clients import SyncPoint
from fixtures.clients.errors import WorkloadStartError
from fixtures.clients.registry import CLIENTS, ClientKind
from fixtures.workloads import OrderFanOut, roster
from tests.workload_bench import APP, PATIENCE_S, Bench, Start, operations, until
from verification.vocabulary.history import Outcome, ProcessRecord, Told


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts workloads of drivers that misbehave as `script` says, and ends them."""
    benches: list[Bench] = []
    command = (sys.executable, "-m", "tests.scripted_driver")
    kind = ClientKind(name="scripted", speaks="TV1", command=lambda _: command, versions=dict)
    monkeypatch.setitem(CLIENTS, "scripted", kind)

    def start_one(**script: str) -> Bench:
        settings = {number.removeprefix("process_").replace("every", "*"): what for number, what in script.items()}
        settings["when"] = str(tmp_path / "when")
        plan = OrderFanOut(
            partitions=2,
            records_per_transaction=6,
            producers=1,
            plain_ratio=0.0,
            abort_ratio=0.0,
            rate=200,
            settings=settings,
        )
        benches.append(Bench(tmp_path, plan, lambda _: "nowhere", client="scripted"))
        return benches[-1]

    yield start_one
    for bench in benches:
        bench.workload.close()
        bench.recorder.seal()


def test_an_unknown_commit_retires_the_process_for_a_successor(scripted: Start) -> None:
    """The outcome stays unknown, the answer is kept, and another instance takes over the transactional id."""
    bench = scripted(process_2="unknown")
    old = bench.first()
    bench.provoke()
    until(lambda: bool(bench.workload.answers(old)), "an answer")
    until(lambda: bench.workload.progress().ok > 3, "the successor's transactions")
    history = bench.end()
    last = operations(history, 2)[-1]
    assert (last.outcome, last.told, last.stage, last.error_name) == (
        Outcome.INFO,
        Told.UNKNOWN,
        "commit",
        "_TIMED_OUT",
    )
    records = {process.process: process for process in history.of(ProcessRecord)}
    assert records[2].end == "retired"
    assert "_TIMED_OUT" in records[2].reason
    assert records[3].transactional_id == records[2].transactional_id
    assert bench.workload.answers(old)[0].code == -185
    assert bench.workload.problems == ()


def test_an_instance_that_has_a_successor_gets_no_second_one(scripted: Start) -> None:
    """When a zombie is retired nobody takes over from its heir."""
    bench = scripted(process_2="unknown")
    zombie = bench.first()
    bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(zombie,), timeout_s=PATIENCE_S)
    bench.workload.pause(zombie)
    heir = bench.workload.succeed(zombie, site=APP, timeout_s=PATIENCE_S).successor
    bench.provoke()
    bench.workload.resume(zombie)
    bench.workload.release((zombie,))
    until(lambda: zombie not in bench.workload.alive(), "the zombie's end")
    done = bench.workload.progress().ok
    until(lambda: bench.workload.progress().ok > done + 3, "the heir")
    assert bench.workload.alive("producer") == (heir,)


@pytest.mark.parametrize(
    ("behaviour", "said"), [("die", "out of order"), ("garbage", "not an event")], ids=["dies", "speaks garbage"]
)
def test_a_driver_that_fails_by_itself_is_a_problem(scripted: Start, behaviour: str, said: str) -> None:
    """The run says so with the last lines, the operation stays unknown, and load goes on with a successor."""
    bench = scripted(process_2=behaviour)
    bench.provoke()
    until(lambda: bool(bench.workload.problems), "a problem")
    assert said in bench.workload.problems[0]
    done = bench.workload.progress().ok
    until(lambda: bench.workload.progress().ok > done + 3, "the successor")
    history = bench.end()
    assert operations(history, 2)[-1].told is Told.UNKNOWN
    assert {process.process: process.end for process in history.of(ProcessRecord)}[2] == "died"


def test_an_operation_that_does_not_end_is_unknown_when_the_workload_stops(scripted: Start) -> None:
    """Stopping is bounded; who did not end is killed, named and recorded."""
    bench = scripted(process_2="hang")
    bench.workload.hold(SyncPoint.BEFORE_COMMIT, processes=(bench.first(),), timeout_s=PATIENCE_S)
    attempted = bench.workload.progress().attempted
    bench.provoke()
    bench.workload.release((bench.first(),))
    until(lambda: bench.workload.progress().attempted > attempted, "the transaction that hangs")
    assert [process.process for process in bench.workload.stop(2.0)] == [2]
    history = bench.end()
    assert operations(history, 2)[-1].told is Told.UNKNOWN
    record = next(process for process in history.of(ProcessRecord) if process.process == 2)
    assert (record.end, "did not end" in record.reason) == ("killed", True)


def test_a_driver_that_cannot_start_ends_the_start(scripted: Start) -> None:
    """The error quotes the driver, and nothing keeps running."""
    with pytest.raises(WorkloadStartError, match=r"producer-0.*(?s:.*)no such library"):
        scripted(process_2="stillborn")


def test_successors_are_bounded(scripted: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place whose processes always fail comes to an end and says so."""
    monkeypatch.setattr(roster, "_SUCCESSORS_MAX", 2)
    bench = scripted(every="unknown")
    bench.provoke()
    until(lambda: bool(bench.workload.problems), "a problem")
    assert "not succeeded any more" in bench.workload.problems[0]
    assert len([each for each in bench.end().of(ProcessRecord) if each.role == "producer"]) == 3
