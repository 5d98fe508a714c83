"""`--pipeline` keeps the pipelines of a name, and puts their right ways on another version of the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.pipelines.manifest import Pipeline
from fixtures.workloads.pipeline import PipelineWorkload
from runner.scenarios.pipeline_choice import on_version
from tests.support.paths import ROOT
from tests.support.whole_commands import WITHIN_S


def listed(asked: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "suites/pipelines", "--list", "--pipeline", asked]
    return subprocess.run(
        [*command, "--run-dir", str(directory / "run")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            "orders",
            "--pipeline orders: no pipeline has this name; there are calls-forwarder-keyed-caller, go-franz, kafka-connect-",
        ),
        ("python@2", "--pipeline python@2: python has no versions here; leave 2 out"),
        ("kafka-streams@4.3.0", "--pipeline kafka-streams@4.3.0: Kafka Streams 4.3.0 has no lock file. Choose one of"),
    ],
)
def test_a_wrong_name_or_version_is_one_sentence(asked: str, sentence: str, tmp_path: Path) -> None:
    """It names what there is, and nothing starts."""
    done = listed(asked, tmp_path)
    assert sentence in done.stdout + done.stderr
    assert done.returncode == 4


def test_a_version_keeps_the_right_ways_of_the_library(tmp_path: Path) -> None:
    """A known mistake is one of its own version; without a version the mistakes are there."""
    names = {
        asked: [line.split()[0] for line in listed(asked, tmp_path).stdout.splitlines() if " ≈ " in line]
        for asked in ("spring-kafka", "spring-kafka@4.0.5")
    }
    assert {each.split("-")[1] for each in names["spring-kafka"]} == {"spring"}
    assert len(names["spring-kafka@4.0.5"]) == 2
    assert len(names["spring-kafka"]) == 4


def test_the_version_is_in_the_command_and_in_the_name() -> None:
    """The program stays; a pipeline without a library, and one of which no version is asked for, stay as they are."""
    command, name = ("{kafka-streams 4.3.1 OrderCount}", "--fast"), "kafka-streams-4.3.1-count"
    workload = PipelineWorkload(pipeline=Pipeline(name=name, command=command, directory=Path()))
    found = on_version({"workload": workload}, "kafka-streams@4.2.1")["workload"].pipeline
    assert found.command == ("{kafka-streams 4.2.1 OrderCount}", "--fast")
    assert found.name == "kafka-streams-4.2.1-count"
    assert on_version({"workload": workload}, "kafka-streams")["workload"] == workload
    own = PipelineWorkload(pipeline=Pipeline(name="go", command=("{go}",), directory=Path()))
    assert on_version({"workload": own}, "go@1")["workload"] == own
