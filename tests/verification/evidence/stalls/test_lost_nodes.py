"""Lost nodes: when the release is to blame, and what the finding and its error say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import nodes
from tests.support.planted.busy import Case
from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from tests.support.planted.histories import MS, Plant
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.evidence.stalls.lost_nodes import LONG_S, OTHER_CAUSES, described, excuse, excused, rows
from verification.judge.assemble import conclude
from verification.judge.circumstances import circumstances
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Floor
from verification.vocabulary.history import FaultRecord, Phase
from verification.vocabulary.verdict import Verdict
from verification.vocabulary.violations import RawViolation

BLAMED: dict[str, Any] = {"waited_ms": LONG_S * 1_000, "pace": 0.4, "exit_status": None, "error": ""}


def evidence_of(plant: Plant, place: Path) -> RunEvidence:
    """A planted run, written and read."""
    return read_run(write(plant, place / "run"))


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.startswith("lost_") and hasattr(nodes, name)] + ["lost"]
)
def test_the_files_say_what_was_planted(name: str, tmp_path: Path) -> None:
    """Both judges decide from the same facts, which are all in the history."""
    plant, _ = CASES[name]("a1b2c3d4e5f6")
    (planted,) = plant.rows["lost_nodes"]
    (read,) = rows(evidence_of(plant, tmp_path))
    assert {**read, "pace": 0.0} == planted


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"exit_status": 1, "error": nodes.FATAL}, ""),
        ({"pace": 0.3}, "clients were too slow at that time: the machine may have been"),
        ({"pace": None}, "clients were too slow at that time: the machine may have been"),
        ({"pace": None, "waited_ms": LONG_S * 1_000 - 1}, ""),
        ({"release": nodes.OLD}, "it was started with its own release 4.1.2 again"),
        ({"release": nodes.OLD, "had_joined": True, "exit_status": 1, "error": nodes.FATAL, "waited_ms": 0}, ""),
        ({"had_joined": True, "exit_status": 1}, "its log has no line in which Kafka says why it ended"),
        ({"exit_status": -9, "error": nodes.FATAL}, "its process was ended by signal 9"),
        ({"exit_status": 1}, "its log has no line in which Kafka says why it ended"),
        ({"causes": ("memory was short",)}, "memory was short"),
    ],
)
def test_only_a_release_is_blamed(change: dict[str, Any], why: str) -> None:
    """Everything else that explains the loss is named, and the second judge blames in the same cases."""
    row = nodes.row_of(**{**BLAMED, **change})
    assert excuse(row) == why
    honest = CASES["clean"]("planted")[0].rows
    assert judge_rows({**honest, "lost_nodes": [row]}) == ([] if why else [RawViolation(anomaly=Anomaly.LOST_NODE)])


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("java.net.BindException: Address already in use", "its address was not free"),
        ("java.io.IOException: No space left on device", "it could not write to the disk"),
        ("java.net.SocketException: Too many open files", "a limit was reached"),
        ("java.lang.OutOfMemoryError: Java heap space", "memory was short"),
        ("OpenJDK 64-Bit Server VM warning: insufficient memory", "memory was short"),
        ("Error: Could not find or load main class kafka.Kafka", "a program file was missing"),
        ("java.lang.NoClassDefFoundError: com/yammer/metrics/core/Gauge", "a program file was missing"),
        ("java.lang.UnsupportedClassVersionError: kafka/Kafka", "its JVM could not run it"),
        ("org.apache.kafka.common.config.ConfigException: Unknown value", None),
        ("java.lang.ClassNotFoundException: kafka.security.authorizer.AclAuthorizer", None),
        ("org.apache.kafka.common.errors.CorruptRecordException: Record size is less than the minimum", None),
    ],
)
def test_causes_are_named_by_the_log(line: str, cause: str | None, tmp_path: Path) -> None:
    """A setting or a class that only the new release refuses is the upgrade's own; a port in use is not."""
    plant, _ = nodes._planted("a1b2c3d4e5f6", log=f"{nodes.FATAL}\n{line}")
    (row,) = rows(evidence_of(plant, tmp_path))
    assert row["causes"] == (() if cause is None else (cause,))
    assert bool(excuse(row)) is (cause is not None)
    assert cause in (None, *(words for _, words in OTHER_CAUSES))


def test_a_pace_is_that_of_clients_in_the_wait(tmp_path: Path) -> None:
    """Clients that did as much per second in the wait as before it show a machine that was fast enough."""
    plant, _ = nodes._planted("a1b2c3d4e5f6", lasts_s=LONG_S, exit_status=None)
    (step,) = (each for each in plant.entries if isinstance(each, FaultRecord))
    assert step.applied_ns is not None
    done = [each.completed_ns for each in plant.operations if each.completed_ns]
    usual = len(done) / (step.began_ns - min(done))
    first, every_ns = plant.operations[0], 20 * MS
    steady = [
        replace(first, operation=1_000 + number, invoked_ns=at_ns, completed_ns=at_ns + MS)
        for number, at_ns in enumerate(range(step.applied_ns, step.applied_ns + round(LONG_S * 1e9), every_ns))
    ]
    plant.operations += steady
    (row,) = rows(evidence_of(plant, tmp_path))
    assert row["pace"] == pytest.approx(len(steady) / (LONG_S * 1e9) / usual)


def test_a_lost_node_is_told_with_its_moment_and_its_log(tmp_path: Path) -> None:
    """The finding has releases, exit status, the reason and the end of the log; the stage is that of its moment."""
    plant, _ = nodes.lost("a1b2c3d4e5f6")
    (step,) = (each for each in plant.entries if isinstance(each, FaultRecord))
    assert step.lost is not None
    plant.entries.append(Phase(name="roll 1 of 3", began_ns=step.began_ns, ended_ns=step.lost.at_ns))
    evidence = evidence_of(plant, tmp_path)
    (row,) = rows(evidence)
    assert described(row) == (
        "node 2, 4.1.2 → 4.3.1, ended by itself with exit status 1 15.0 s after its start:\n"
        f"{nodes.ERROR}\nThe end of its log:\n{nodes.FATAL}"
    )
    around = circumstances(evidence, RawViolation(anomaly=Anomaly.LOST_NODE))
    assert around is not None
    assert (around.at_ns, around.stage) == (step.lost.at_ns, "roll 1 of 3")
    assert excused(evidence) == ()


def test_a_node_that_was_lost_later_has_one_release() -> None:
    """It was not started by a step, so no time since its start is given."""
    row = nodes.row_of(release=nodes.OLD, had_joined=True)
    assert described(row).startswith("node 2, 4.1.2, ended by itself with exit status 1 after it had joined:\n")


@pytest.mark.parametrize(
    ("case", "verdict", "reason"),
    [
        (nodes.lost, Verdict.FAIL, "found 1 lost-node"),
        (nodes.lost_by_a_signal, Verdict.ERROR, "That is no finding: its process was ended by signal 9"),
    ],
)
def test_floors_that_the_end_left_unmet_change_no_verdict(
    case: Case, verdict: Verdict, reason: str, tmp_path: Path
) -> None:
    """The stages after the loss have no activity; a proven violation stays proven, and an error an error."""
    plant, _ = case("a1b2c3d4e5f6")
    plant.experiment = replace(plant.experiment, floors=(Floor(name="ok_after", need=50),))
    judged = conclude(evidence_of(plant, tmp_path), attribute(judge_rows(plant.rows)), {}, ())
    assert [each.met for each in judged.coverage] == [False]
    assert judged.verdict is verdict
    assert judged.reason.endswith(reason)


def test_a_loss_that_something_else_explains_is_an_error_of_the_run(tmp_path: Path) -> None:
    """It ends with the reason, and nothing is found."""
    plant, _ = nodes.lost_by_a_signal("a1b2c3d4e5f6")
    evidence = evidence_of(plant, tmp_path)
    (error,) = excused(evidence)
    assert error.startswith("node 2, 4.1.2 → 4.3.1, ended by itself with exit status -9")
    assert error.endswith("That is no finding: its process was ended by signal 9")
