"""The quick pass: the checks find nothing in a run that passes, and every other run is judged as without it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.judging import frames
from tests.support.planted import coordinating, stability
from tests.support.planted.busy import A0, busy
from tests.support.planted.cases import planted_all
from tests.support.planted.files import write
from tests.support.planted.histories import Plant
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.fingerprints.in_memory import told_of
from verification.fingerprints.inputs import files
from verification.fingerprints.strategy import Strategy
from verification.judge import judge as judging
from verification.judge.judge import judge
from verification.judge.quick_pass import in_order
from verification.vocabulary.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.evidence.run_evidence import RunEvidence
    from verification.vocabulary.verdict import ScenarioVerdict

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def planted() -> list[Plant]:
    """Every planted history."""
    return [plant for plant, _ in planted_all().values()]


def test_the_facts_of_nothing_have_the_columns_of_facts(spark: SparkSession, planted: list[Plant]) -> None:
    """Name by name and type by type, so that every check can run on them."""
    from verification.checks.facts import derive, without_records

    evidence = frames(spark, planted[:1])
    whole, nothing = derive(evidence), without_records(evidence)
    for name in ("places", "records", "ordered", "sequenced", "copied"):
        columns = [[(field.name, field.dataType) for field in getattr(each, name).schema] for each in (whole, nothing)]
        assert columns[0] == columns[1], name


def test_only_the_named_checks_find_anything_without_records(spark: SparkSession, planted: list[Plant]) -> None:
    """Each of them finds its planted history; all others find nothing without places."""
    from verification.checks import CHECKS
    from verification.checks.facts import without_records
    from verification.judge.run_checks import collect

    facts = without_records(frames(spark, planted))
    assert collect(facts, [check for check in CHECKS if not check.without_records]) == {}
    for check in (check for check in CHECKS if check.without_records):
        assert {each.anomaly for found in collect(facts, [check]).values() for each in found} == {check.anomaly}


def test_who_was_superseded_is_told_as_the_checks_tell_it(spark: SparkSession, planted: list[Plant]) -> None:
    """Operation by operation, of all planted histories."""
    from verification.checks.operations import operations

    kept = ("run", "process", "operation", "told", "plain", "size", "superseded_ns")
    checks = operations(frames(spark, planted)).select(*kept).toArrow().to_pylist()
    mine = [row for plant in planted for row in told_of(plant.rows["operations"]).to_pylist()]
    assert sorted(map(repr, mine)) == sorted(map(repr, checks))
    assert any(row["superseded_ns"] for row in mine)


def _directories(place: Path) -> dict[str, RunDirectory]:
    """A clean run of each sort, and runs with violations that need records, or that do not."""
    hidden = busy("hidden").finish()
    hidden.drop("committed", *A0, 0)
    stuck = busy("stuck").finish()
    stuck.rows["ends"][0]["last_stable_offset"] -= 1
    plants = {
        "innocent": busy("innocent").finish(),
        "unobserved": busy("unobserved", observers=()).finish(),
        "without-log": busy("without-log", has_log=False).finish(),
        "hidden": hidden,
        "stuck": stuck,
        "by-leader": stability.hung_by_leader("by-leader")[0],
        "stranded": stability.stranded("stranded")[0],
        "twice": coordinating.decided_twice("twice")[0],
    }
    return {name: write(plant, place / name) for name, plant in plants.items()}


def _said(verdicts: Sequence[ScenarioVerdict], directories: dict[str, RunDirectory]) -> dict[str, Any]:
    assert len(verdicts) == len(directories)
    found = {}
    for name, directory in directories.items():
        files = sorted(directory.findings.rglob("*.jsonl"))
        shown = {str(path.relative_to(directory.root)): path.read_text() for path in files}
        found[name] = ({**json.loads(directory.verdicts.read_text()), "judged_s": None}, shown)
    return found


def test_the_verdicts_are_the_same_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Byte by byte except for the seconds; the records of clean runs are not read."""
    asked: list[str] = []
    check = judging.check

    def noting(session: SparkSession, runs: Sequence[RunEvidence], *, fingerprints: bool) -> judging.Checked:
        asked.extend(run.run for run in runs)
        return check(session, runs, fingerprints=fingerprints)

    said = {}
    for strategy in (Strategy.EVERY_RECORD, Strategy.BY_SIZE):
        asked.clear()
        monkeypatch.setattr(judging, "check", noting)
        directories = _directories(tmp_path / strategy)
        with caplog.at_level(logging.DEBUG, logger="verification.fingerprints.in_memory"):
            said[strategy] = _said(judge(spark, directories.values(), strategy=strategy), directories)
    assert said[Strategy.EVERY_RECORD] == said[Strategy.BY_SIZE]
    assert set(directories) - set(asked) == {"innocent", "unobserved"}
    assert [record.getMessage() for record in caplog.records] == [
        "hidden is checked record by record because of 1 operations"
    ]


def test_when_asking_breaks_every_record_is_looked_at(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the quick pass fails, no run passes by it, and the failure is logged."""

    def broken(*_: object) -> frozenset[str]:
        raise RuntimeError("no worker came up")

    monkeypatch.setattr("verification.fingerprints.in_memory.agreeing", broken)
    asked: list[str] = []
    check = judging.check
    monkeypatch.setattr(
        judging, "check", lambda *given, **how: asked.extend(run.run for run in given[1]) or check(*given, **how)
    )
    directory = write(busy("broken").finish(), tmp_path / "broken")
    (verdict,) = judge(spark, [directory])
    assert (verdict.verdict, asked) == (Verdict.PASS, ["broken"])
    assert "checking every record" in caplog.text


def test_what_cannot_be_held_is_said_and_looked_at(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A run whose files a worker cannot read is judged as usual; the other run passes."""
    found = "verification.fingerprints.inputs.files"

    def astray(runs: Sequence[RunEvidence]) -> dict[str, tuple[str, ...]]:
        (run,) = runs
        return {**files(runs), "log": ("/nowhere/part-0.parquet",)} if run.run == "astray" else files(runs)

    monkeypatch.setattr(found, astray)
    asked: list[str] = []
    check = judging.check
    monkeypatch.setattr(
        judging, "check", lambda *given, **how: asked.extend(run.run for run in given[1]) or check(*given, **how)
    )
    directories = [write(busy(name).finish(), tmp_path / name) for name in ("astray", "other")]
    assert [each.verdict for each in judge(spark, directories)] == [Verdict.PASS, Verdict.PASS]
    assert asked == ["astray"]
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.getMessage().startswith("astray could not be held in memory (FileNotFoundError")


def test_what_only_spark_can_read_is_not_held_in_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a capture is in no file of this machine, no worker holds it, and every record is checked."""
    monkeypatch.setattr("verification.fingerprints.inputs.files", lambda _: {})
    monkeypatch.setattr("verification.fingerprints.in_memory.agreeing", lambda *_: pytest.fail("a worker was asked"))
    run = read_run(write(busy("elsewhere").finish(), tmp_path / "elsewhere"))
    assert in_order(spark, [run]) == frozenset()


def test_nothing_found_is_written_like_anything_found(spark: SparkSession, tmp_path: Path) -> None:
    """Findings of an earlier judgement are removed when the run passes."""
    directory = write(busy("again").finish(), tmp_path / "again")
    directory.findings.mkdir()
    (directory.findings / "lost-write.jsonl").write_text("{}\n")
    judge(spark, [directory])
    assert not list(directory.findings.rglob("*.jsonl"))
