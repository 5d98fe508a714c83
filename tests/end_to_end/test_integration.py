"""A small real run: a cluster, a fault, a control, verdicts, one report.

The tests of this module share one conformance run with the smoke profile for each runtime. Where the machine has network
namespaces, the run with local processes has its network cut: downloads are made before, as `tox -e fetch` makes them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from fixtures.clusters.locks.releases import default_release
from tests.support.cut_off import CUT, can_cut
from tests.support.engines import answering, standing_of_run
from tests.support.paths import ROOT
from verification.alerts.firing import fired
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import UP, Metric

pytestmark = pytest.mark.cluster

#: The smoke profile takes about a minute on two quiet cores; a loaded machine takes several times that.
SMOKE_WITHIN_S = 600.0


def start(directory: Path, *options: str, through: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A conformance run in a process group of its own; `through` is a command that starts it."""
    command = [sys.executable, "-m", "pytest", "suites", "--profile", "smoke", "--run-dir", str(directory), *options]
    return subprocess.Popen(
        [*through, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def processes_of(directory: Path) -> list[str]:
    """Command lines of living processes that name the run's directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(directory) in command:
                found.append(command)
    return found


def cut_off(counted: Path) -> tuple[str, ...]:
    """The command prefix that cuts the network, once the cache is filled; empty without network namespaces."""
    if not can_cut():
        return ()
    fetch = [sys.executable, "-m", "fixtures.fetch", "--kafka", default_release().version]
    subprocess.run(fetch, cwd=ROOT, timeout=SMOKE_WITHIN_S, check=True)
    return (*CUT, sys.executable, "-m", "tests.support.cut_off", str(counted))


class Smoke(NamedTuple):
    """A run that has ended; `left` are the containers and networks that outlived it.

    `astray` counts the attempts to leave the machine while the network was cut; None where it was not cut.
    """

    directory: Path
    code: int
    output: str
    runtime: str
    left: frozenset[str]
    astray: int | None


@pytest.fixture(scope="module", params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def smoke(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    """A whole run of the smoke profile, as processes and in containers."""
    runtime: str = request.param
    directory = tmp_path_factory.mktemp("smoke") / "run"
    counted = directory.with_name("astray")
    through = cut_off(counted) if runtime == "local" else ()
    with closing(answering()) if runtime == "docker" else nullcontext() as engine:
        process = start(directory, "--runtime", runtime, "--seed", "1", through=through)
        try:
            output, _ = process.communicate(timeout=SMOKE_WITHIN_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        left = frozenset(standing_of_run(engine, process.pid) if engine else ())
    return Smoke(
        directory=directory,
        code=process.returncode,
        output=output,
        runtime=runtime,
        left=left,
        astray=int(counted.read_text(encoding="ascii")) if through else None,
    )


def test_the_smoke_profile_ends_go(smoke: Smoke) -> None:
    """On a healthy release the subject passes, the control is detected, and the decision is GO."""
    directory, code, output, runtime, *_ = smoke
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"], output
    assert [each["convicted"] for each in results["controls"]] == [True], output
    assert results["decision"] == "GO"
    assert results["subject"]["runtime"] == runtime
    assert code == 0


@pytest.mark.parametrize("smoke", ["local"], indirect=True)
def test_a_run_makes_no_connection_outside_of_this_machine(smoke: Smoke) -> None:
    """With a filled cache a whole run ends GO while the network is cut, and no process tried to leave the machine."""
    if smoke.astray is None:
        pytest.skip("no network namespaces here: the network was not cut")
    assert smoke.code == 0, smoke.output
    assert smoke.astray == 0, smoke.output


def test_the_coordinators_log_is_judged(smoke: Smoke) -> None:
    """The coordinators' log of a run is captured, read, and follows the state machine."""
    directory, output = smoke.directory, smoke.output
    for path in directory.glob("runs/*/verdicts.json"):
        verdict = json.loads(path.read_text(encoding="utf-8"))
        if not verdict["control"]:
            assert {each["id"]: each["verdict"] for each in verdict["requirements"]}["COORD-01"] == "PASS", output
            assert dict(verdict["counts"])["transaction log"] > 0


@pytest.mark.parametrize("smoke", ["local"], indirect=True)
def test_the_metrics_of_every_broker_are_in_the_history(smoke: Smoke) -> None:
    """Each broker states metrics, of the partitions of this run alone; in a healthy run no alert fires about a violation."""
    (directory,) = smoke.directory.glob("runs/smoke-*")
    history = read_run(RunDirectory(directory)).history
    stated = history.of(Metric)
    assert {each.source for each in stated if each.name == UP} == {"broker 1", "broker 2", "broker 3"}
    assert {each.of.partition("-")[0] for each in stated if each.name == "LastStableOffsetLag"} == {history.run}
    assert not [each.alert.name for each in fired(history) if Anomaly.STUCK_LSO in each.alert.shows]


def test_the_report_is_written_in_every_format(smoke: Smoke) -> None:
    """A run leaves report.html, results.json, junit.xml and summary.md, and says where."""
    directory, output = smoke.directory, smoke.output
    for name in ("report.html", "results.json", "junit.xml", "summary.md"):
        assert (directory / name).stat().st_size > 0
    assert str(directory / "report.html") in output


def test_the_harness_has_its_log(smoke: Smoke) -> None:
    """`run.log` has each phase of each scenario, the processes that were started, and the verdicts."""
    log = (smoke.directory / "run.log").read_text(encoding="utf-8")
    for directory in smoke.directory.glob("runs/*"):
        assert f"{directory.name}: nemesis begins\n" in log
        assert re.search(rf"{directory.name}: capture ended after [\d.]+ s\n", log)
    for line in (
        "clients.driver: started the client process-0-",
        "readiness: the cluster in ",
        "resources: Spark started",
    ):
        assert line in log
    assert re.search(r"runner\.console: PASS +smoke-transactions-without-faults", log)
    assert "Traceback" not in log


def test_a_run_leaves_nothing_behind(smoke: Smoke) -> None:
    """When a run has ended none of its processes lives, brokers' data is gone, and so are containers and networks."""
    assert processes_of(smoke.directory) == []
    assert smoke.left == frozenset()
    assert not list((smoke.directory / "clusters").glob("*/data"))


@pytest.mark.parametrize("smoke", ["local"], indirect=True)
def test_saved_evidence_is_judged_the_same_again(smoke: Smoke) -> None:
    """`python -m verification` needs no cluster and comes to the same verdicts."""
    (directory,) = smoke.directory.glob("runs/smoke-*")
    before = json.loads((directory / "verdicts.json").read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-m", "verification", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SMOKE_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    again = json.loads((directory / "verdicts.json").read_text(encoding="utf-8"))
    assert {**again, "judged_s": 0} == {**before, "judged_s": 0}


@pytest.mark.parametrize("smoke", ["local"], indirect=True)
def test_the_report_is_rendered_the_same_again(smoke: Smoke, tmp_path: Path) -> None:
    """`python -m reports` needs neither Spark nor a cluster and gives the same bytes twice."""
    directory = smoke.directory
    pages = []
    for number in range(2):
        out = tmp_path / str(number)
        subprocess.run(
            [sys.executable, "-m", "reports", str(directory), "--out", str(out)],
            cwd=ROOT,
            capture_output=True,
            timeout=SMOKE_WITHIN_S,
            check=False,
        )
        pages.append((out / "results.json").read_bytes())
    assert pages[0] == pages[1]
