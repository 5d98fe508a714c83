"""A driver of the user's own is the client of a run: it writes, another library reads, and a missing role is named."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.deep]

#: Two scenarios, one of which does not apply, with the start of Spark: at a load of 30 it took three minutes.
WITHIN_S = 600.0
COMMAND = shlex.join([sys.executable, "-m", "tests.fixtures.clients.producer_only"])
SILENT = shlex.join([sys.executable, "-m", "tests.fixtures.clients.silent_driver"])


def test_a_client_that_loses_every_second_answer_makes_no_progress(tmp_path: Path) -> None:
    """The run never becomes steady, is captured and judged, and is repeated once: no known bug explains the finding."""
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "pytest", "suites", "--only", "scenarios", "-k", "leader_crash_while_sending"]
    command += ["--client-driver", SILENT, "--client-name", "silent", "--runtime", "local", "--run-dir", str(directory)]
    ended = subprocess.run(
        [*command, "--repeat", "1"], cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert ended.returncode == 1, ended.stdout
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    (found,) = results["scenarios"]
    assert (found["verdict"], [each["anomaly"] for each in found["findings"]]) == ("FAIL", ["no-progress"])
    assert [each["id"] for each in found["requirements"] if each["verdict"] == "FAIL"] == ["EXP-12"]
    assert found["reason"].endswith("repeated alone: seen in 2 of 2 runs")
    (again,) = directory.glob("repeats/1/runs/*/verdicts.json")
    assert json.loads(again.read_text(encoding="utf-8"))["verdict"] == "FAIL"


def test_an_own_driver_is_the_client_of_a_run(tmp_path: Path) -> None:
    """Its name and library are in the results; the protocol, which it does not show, is read from the log."""
    directory = tmp_path / "run"
    command = [sys.executable, "-m", "pytest", "suites", "--only", "scenarios", "-k", "no_fault or mid_transaction"]
    command += ["--client-driver", COMMAND, "--client-name", "mine", "--runtime", "local", "--run-dir", str(directory)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    found = {each["scenario"]: each for each in results["scenarios"]}
    assert {name: each["verdict"] for name, each in found.items()} == {
        "smoke/transactions-without-faults": "PASS",
        "offsets/copier-killed-in-mid-transaction": "NOT_APPLICABLE",
    }, ended.stdout
    reason = found["offsets/copier-killed-in-mid-transaction"]["reason"]
    assert reason == "not run with mine: my-library 2.1 has no role copier"
    assert f": {reason}" in ended.stdout
    assert {each["name"]: each["library"] for each in results["subject"]["clients"]}["mine"] == "my-library 2.1"
    (written,) = (directory / "runs").glob("smoke-transactions-without-faults-mine-*/scenario.json")
    versions = json.loads(written.read_text(encoding="utf-8"))["versions"]
    assert (versions["mine"], versions["mine protocol"]) == ("my-library 2.1", "TV1")
    assert versions["confluent"].startswith("confluent-kafka")
    assert (
        f"--client-driver {shlex.quote(COMMAND)} --client-name mine"
        in found["smoke/transactions-without-faults"]["replay"]
    )
    assert "my-library 2.1" in (directory / "report.html").read_text(encoding="utf-8")
