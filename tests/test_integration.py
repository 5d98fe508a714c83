"""The main job in small, for real: a cluster, a fault, a control, verdicts, one report; and Ctrl-C in the middle of it.

One conformance run with the smoke profile is shared by the tests of this module.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.cluster

#: The smoke profile takes about a minute on two quiet cores; a loaded machine takes several times that.
SMOKE_WITHIN_S = 600.0
#: Healing, ending brokers and writing what there is.
INTERRUPT_WITHIN_S = 120.0


def start(directory: Path, *options: str) -> subprocess.Popen[str]:
    """A conformance run in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "suites", "--profile", "smoke", "--run-dir", str(directory), *options],
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


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """A whole run of the smoke profile: its directory, exit code and output."""
    directory = tmp_path_factory.mktemp("smoke") / "run"
    process = start(directory, "--runtime", "local", "--seed", "1")
    try:
        output, _ = process.communicate(timeout=SMOKE_WITHIN_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return directory, process.returncode, output


def test_the_smoke_profile_ends_go(smoke: tuple[Path, int, str]) -> None:
    """On a healthy release the subject passes, the control is convicted, and the decision is GO."""
    directory, code, output = smoke
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"], output
    assert [each["convicted"] for each in results["controls"]] == [True], output
    assert results["decision"] == "GO"
    assert code == 0


def test_every_face_of_the_report_is_written(smoke: tuple[Path, int, str]) -> None:
    """A run leaves report.html, results.json, junit.xml and summary.md, and says where."""
    directory, _, output = smoke
    for name in ("report.html", "results.json", "junit.xml", "summary.md"):
        assert (directory / name).stat().st_size > 0
    assert str(directory / "report.html") in output


def test_a_run_leaves_nothing_behind(smoke: tuple[Path, int, str]) -> None:
    """When a run has ended none of its processes lives, and brokers' data is gone."""
    directory, _, _ = smoke
    assert processes_of(directory) == []
    assert not list((directory / "clusters").glob("*/data"))


def test_saved_evidence_is_judged_the_same_again(smoke: tuple[Path, int, str]) -> None:
    """`python -m verification` needs no cluster and comes to the same verdicts."""
    directory, _, _ = smoke
    before = {path: json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("runs/*/verdicts.json")}
    assert before
    done = subprocess.run(
        [sys.executable, "-m", "verification", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SMOKE_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for path, verdict in before.items():
        again = json.loads(path.read_text(encoding="utf-8"))
        assert {**again, "judged_s": 0} == {**verdict, "judged_s": 0}


def test_the_report_is_rendered_the_same_again(smoke: tuple[Path, int, str], tmp_path: Path) -> None:
    """`python -m reports` needs neither Spark nor a cluster and gives the same bytes twice."""
    directory, _, _ = smoke
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


def test_ctrl_c_heals_keeps_evidence_and_leaves_nothing(tmp_path: Path) -> None:
    """Interrupted in the middle of a scenario: exit code 5, `interrupted` in results.json, nothing left running."""
    directory = tmp_path / "run"
    process = start(directory, "--runtime", "local", "--seed", "1")
    history = directory / "runs" / "smoke-transactions-without-faults-confluent-1" / "history.jsonl"
    deadline = time.monotonic() + SMOKE_WITHIN_S
    try:
        while not (history.is_file() and "transaction" in history.read_text(encoding="utf-8")):
            assert time.monotonic() < deadline, "no transaction was recorded"
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=INTERRUPT_WITHIN_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    assert results["interrupted"] is True
    assert results["decision"] == "UNDECIDED"
    assert process.returncode == 5, output
    assert "footer" in history.read_text(encoding="utf-8").splitlines()[-1]
    assert processes_of(directory) == []
