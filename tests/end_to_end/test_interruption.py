"""Ctrl-C in every phase: SIGINT to the process group of a run while it fetches, boots, works or judges.

Each run ends by itself within its bound, `results.json` says `interrupted`, no process and no temporary file is left,
and the evidence so far is kept. A real tox is interrupted too: it interrupts its child once more, and must not kill it
before the child has healed and written its report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures.clusters.locks import lockfile
from fixtures.clusters.locks.releases import LOCKS, default_release
from tests.support.engines import answering, standing_of_run
from tests.support.planted import writes
from tests.support.planted.files import write
from tests.support.servers.local_server import LocalServer, Page
from tests.support.whole_commands import BARE, Command, Ended, conformance, python

Start = Callable[..., Command]
#: A scenario takes half a minute on two quiet cores; a loaded machine takes several times that.
PHASE_WITHIN_S = 600.0
#: For healing, ending brokers, finishing a judgement and writing the report; after this time tox kills the run.
END_WITHIN_S = 120.0
#: An aborted transfer and an empty report.
QUICK_END_WITHIN_S = 60.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands; ends the processes that they leave."""
    started: list[Command] = []

    def begin(*arguments: str, **variables: str) -> Command:
        place = tmp_path / f"command-{len(started)}"
        place.mkdir()
        started.append(Command(place, arguments, variables))
        return started[-1]

    yield begin
    for each in started:
        each.close()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files of a run so far."""

    run: Path

    @property
    def history(self) -> str:
        """The history of the only scenario, empty before it begins."""
        return "".join(path.read_text(encoding="utf-8") for path in self.run.glob("runs/*/history.jsonl"))

    def phase_ended(self, name: str) -> bool:
        """Whether a phase is in the history, which it is when it has ended."""
        lines = self.history.splitlines(keepends=True)
        return any(f'"{name}"' in line and '"phase"' in line for line in lines if line.endswith("\n"))

    def is_sealed(self) -> bool:
        """Whether the history has its footer."""
        return '"footer"' in (self.history.splitlines() or [""])[-1]

    def was_interrupted(self) -> None:
        """Check that the report says `interrupted` and decides nothing, and that no broker's data are left."""
        results = json.loads((self.run / "results.json").read_text(encoding="utf-8"))
        assert (results["interrupted"], results["decision"], results["exit_code"]) == (True, "UNDECIDED", 5)
        assert (self.run / "report.html").is_file()
        assert not list(self.run.glob("clusters/**/data"))
        assert not list(self.run.glob("clusters/**/tmp"))


def interrupted(
    command: Command,
    *,
    codes: tuple[int, ...] = (5,),
    within_s: float = END_WITHIN_S,
    by: signal.Signals = signal.SIGINT,
) -> Ended:
    """Interrupt a command; check that it ends by itself with one of the codes and leaves nothing."""
    command.interrupt(by)
    ended = command.end(within_s=within_s)
    assert ended.code in codes, ended.output
    assert "INTERNALERROR" not in ended.output
    ended.left_nothing()
    return ended


@pytest.fixture
def slow_repository() -> Iterator[LocalServer]:
    """Every jar of the default release, none of which arrives within a test."""
    repository = LocalServer()
    # All larger than the real ones: a small one would arrive whole, fail its digest, and be removed.
    page = Page(body=bytes(64 << 20), chunk_delay_s=0.5)
    for jar in lockfile.read(LOCKS / f"{default_release()}.txt"):
        repository.pages[f"/{jar.path}"] = page
    with repository.running():
        yield repository


def arriving(cache: Path) -> list[Path]:
    """Files that have arrived in part."""
    return [part for part in cache.rglob("*.part") if part.stat().st_size]


@pytest.mark.parametrize("what", ["a run", "the fetch command"])
def test_while_fetching(start: Start, slow_repository: LocalServer, tmp_path: Path, what: str) -> None:
    """The part that arrived is kept for the next start, and a run leaves an empty report."""
    cache, run = tmp_path / "cache", Evidence(tmp_path / "run")
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    says = f"java.home = {java.parent.parent}\njava.specification.version = 17"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    alone = BARE | {"ONCEPROOF_MAVEN_REPOSITORY": slow_repository.url, "XDG_CACHE_HOME": str(cache)}
    arguments = conformance(tmp_path, "--runtime", "local") if what == "a run" else python("fixtures.fetch")
    command = start(*arguments, **alone, JAVA_HOME=str(tmp_path / "jvm"))
    command.wait_for(lambda: bool(arriving(cache)), "the first bytes", within_s=PHASE_WITHIN_S)
    ended = interrupted(command, within_s=QUICK_END_WITHIN_S)
    assert arriving(cache)
    if what == "a run":
        run.was_interrupted()
    else:
        assert ended.output.splitlines()[-1].startswith(
            "python -m fixtures.fetch: interrupted; the received bytes are kept"
        )
        assert "Traceback" not in ended.output


#: Replacements that make a moment of a run last, and signal that it has come.
LONGER = """import pathlib, time
from {module} import {owner} as owner
real = owner.{name}
def longer(*given, **named):
    pathlib.Path({mark!r}).touch()
    time.sleep({seconds})
    return real(*given, **named)
owner.{name} = longer"""


def nothing_to_run_on(start: Start, place: Path, moment: str, *, seconds: float) -> Command:
    """A run without a Docker engine, which would end at once, held at one moment."""
    module, owner, name = moment.rsplit(".", 2)
    mark = place / "now"
    patch = LONGER.format(module=module, owner=owner, name=name, mark=str(mark), seconds=seconds)
    command = start(
        *conformance(place, "--runtime", "docker", patch=patch), DOCKER_HOST=f"unix://{place}/no-engine.sock"
    )
    command.wait_for(mark.exists, moment, within_s=PHASE_WITHIN_S)
    return command


def test_while_looking_at_the_machine(start: Start, tmp_path: Path) -> None:
    """Before anything is fetched or started there is a report already, of scenarios that were not begun."""
    command = nothing_to_run_on(start, tmp_path, "runner.environment.machine_report", seconds=60)
    ended = interrupted(command, within_s=QUICK_END_WITHIN_S)
    Evidence(tmp_path / "run").was_interrupted()
    assert "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("moment", "told"),
    [("runner.scenarios.experiments.ScenarioExperiments.close", True), ("runner.report_files.write_all", False)],
    ids=["closing", "writing"],
)
def test_while_a_run_is_ending(start: Start, tmp_path: Path, moment: str, told: bool) -> None:
    """The run is closed and the report is written first; it says `interrupted` when it was not begun before."""
    command = nothing_to_run_on(start, tmp_path, moment, seconds=1)
    ended = interrupted(command, within_s=QUICK_END_WITHIN_S)
    assert "Traceback" not in ended.output
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert (results["interrupted"], results["exit_code"]) == (told, 5)
    assert (tmp_path / "run" / "report.html").is_file()
    assert f"report: {tmp_path / 'run' / 'report.html'}" in ended.output


#: A Spark job that lasts.
WAITING = """import pathlib
from verification.judge import judge as owner
def waiting(spark, runs):
    pathlib.Path({mark!r}).touch()
    spark.sql("select java_method('java.lang.Thread', 'sleep', 60000L)").collect()
owner.in_order = waiting"""


@pytest.mark.spark
@pytest.mark.parametrize("moment", ["while Spark starts", "while a job runs"])
def test_while_judging_saved_evidence(start: Start, tmp_path: Path, moment: str) -> None:
    """`python -m verification` ends with one line and its JVM; evidence and earlier verdicts stay as they are."""
    directory = write(writes.clean("saved")[0], tmp_path / "run")
    directory.verdicts.write_text("earlier", encoding="utf-8")
    mark = tmp_path / "now"
    patch = WAITING.format(mark=str(mark)) if moment == "while a job runs" else ""
    command = start(*python("verification", str(directory.root), patch=patch))

    def has_come() -> bool:
        return mark.exists() if patch else any("SparkSubmit" in each for each in command.processes().values())

    command.wait_for(has_come, moment, within_s=PHASE_WITHIN_S)
    ended = interrupted(command)
    (said,) = ended.output.splitlines()
    assert said.startswith("python -m verification: interrupted; verdicts")
    assert directory.verdicts.read_text(encoding="utf-8") == "earlier"


@pytest.mark.cluster
@pytest.mark.deep
def test_while_the_cluster_boots(start: Start, tmp_path: Path) -> None:
    """Brokers that are half up are ended, and their logs stay."""
    run = Evidence(tmp_path / "run")
    command = start(*conformance(tmp_path, "--runtime", "local"))
    log = run.run / "clusters" / "lane-1" / "cluster-0" / "brokers" / "broker-1.log"
    command.wait_for(lambda: log.is_file() and log.stat().st_size > 0, "a broker's log", within_s=PHASE_WITHIN_S)
    interrupted(command)
    run.was_interrupted()
    assert run.is_sealed()
    assert log.stat().st_size > 0


@pytest.mark.cluster
@pytest.mark.parametrize("by", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)])
def test_while_clients_work(start: Start, tmp_path: Path, by: signal.Signals) -> None:
    """Clients and brokers are ended and the history is sealed."""
    run = Evidence(tmp_path / "run")
    command = start(*conformance(tmp_path, "--runtime", "local"))
    command.wait_for(lambda: '"transaction"' in run.history, "a transaction", within_s=PHASE_WITHIN_S)
    interrupted(command, by=by)
    run.was_interrupted()
    assert run.is_sealed()


@pytest.mark.cluster
@pytest.mark.deep
def test_all_lanes_while_clients_work(start: Start, tmp_path: Path) -> None:
    """One Ctrl-C ends two scenarios and a protocol case at a time: both histories are sealed, and nothing is left."""
    run = Evidence(tmp_path / "run")
    both = "leader_crash_while_sending or leader_crash_while_committing or a_coordinator_crash"
    options = ("--runtime", "local", "--seed", "1", "--lanes", "2", "-k", both, "--run-dir", str(run.run))
    command = start(*python("pytest", "suites", *options))

    def histories() -> list[str]:
        return [path.read_text(encoding="utf-8") for path in run.run.glob("runs/*/history.jsonl")]

    def both_work() -> bool:
        return len(histories()) == 2 and all('"ok"' in each for each in histories())

    command.wait_for(both_work, "two scenarios with operations", within_s=PHASE_WITHIN_S)
    ended = interrupted(command)
    run.was_interrupted()
    assert len(histories()) == 2
    assert all('"footer"' in each.splitlines()[-1] for each in histories())
    said = [line for line in ended.output.splitlines() if line.startswith("ERROR ")]
    assert len(said) == 2
    assert all(line.endswith("interrupted before it ended") for line in said)


@pytest.mark.docker
def test_containers_while_clients_work(start: Start, tmp_path: Path) -> None:
    """Brokers in containers end as processes do: the history is sealed, no container and no network is left."""
    run = Evidence(tmp_path / "run")
    with closing(answering()) as engine:
        command = start(*conformance(tmp_path, "--runtime", "docker"))
        command.wait_for(lambda: '"transaction"' in run.history, "a transaction", within_s=PHASE_WITHIN_S)
        assert standing_of_run(engine, command.pid)
        interrupted(command)
        assert standing_of_run(engine, command.pid) == set()
    run.was_interrupted()
    assert run.is_sealed()


@pytest.mark.cluster
@pytest.mark.deep
def test_while_capturing(start: Start, tmp_path: Path) -> None:
    """The history is whole; the scenario is not judged on half a capture."""
    run = Evidence(tmp_path / "run")
    command = start(*conformance(tmp_path, "--runtime", "local"))
    command.wait_for(lambda: run.phase_ended("drain"), "the capture", within_s=PHASE_WITHIN_S)
    interrupted(command)
    run.was_interrupted()
    assert run.is_sealed()
    assert not list(run.run.glob("runs/*/verdicts.json"))


@pytest.mark.cluster
@pytest.mark.deep
def test_while_judging(start: Start, tmp_path: Path) -> None:
    """The judgement in flight is finished and kept, and the run still counts as interrupted."""
    run = Evidence(tmp_path / "run")
    command = start(*conformance(tmp_path, "--runtime", "local"))
    command.wait_for(run.is_sealed, "the judgement", within_s=PHASE_WITHIN_S)
    assert not list(run.run.glob("runs/*/verdicts.json"))
    interrupted(command, by=signal.SIGTERM)
    run.was_interrupted()
    assert len(list(run.run.glob("runs/*/verdicts.json"))) == 1


@pytest.mark.cluster
def test_tox_during_a_fault(start: Start, tmp_path: Path) -> None:
    """A real tox gives its run the time to heal and to write its report."""
    run, work = Evidence(tmp_path / "run"), tmp_path / "tox"
    # A work directory of its own, whose environment installs nothing: `pytest` is found on PATH, and is that of the
    # environment that runs this test, which no tox but its own may touch.
    overrides = ("-x", "testenv:conformance.deps=", "-x", "testenv:conformance.allowlist_externals=pytest")
    options = ("--runtime", "local", "--seed", "1", "-k", "leader_crash_while_sending", "--run-dir", str(run.run))
    command = start(
        *python("tox", "run", "--workdir", str(work), "-e", "conformance", *overrides, "--", *options),
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    )
    command.wait_for(lambda: "    confirmed: " in command.output, "the fault", within_s=PHASE_WITHIN_S)
    # Interrupted as its child is, tox ends with 1; where it sees the child's end first, with the child's code.
    ended = interrupted(command, codes=(1, 5))
    assert (work / "shared" / ".tox-info.json").is_file()
    assert "send signal" not in ended.output, "tox did not wait for the run to end by itself"
    run.was_interrupted()
    assert run.is_sealed()
    assert "KeyboardInterrupt" in run.history, "the phase that was broken off says why"
