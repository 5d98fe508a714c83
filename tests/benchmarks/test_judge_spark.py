"""The judge finds the plants of generated evidence; bench-verify checks the same for every other contender."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.judge import log_context
from benchmarks.judge.contenders import DUCKDB, PRODUCT, TEXTBOOK, Setting
from benchmarks.judge.findings import agree, of_judgement
from benchmarks.judge.generator.evidence import Made, make
from benchmarks.judge.generator.plan import EvidencePlan
from benchmarks.judge.textbook import find
from runner.config import ROOT
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.judge.judge import judge
from verification.vocabulary.anomalies import Anomaly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Made]:
    """10^4 records with every kind of plant, judged. Feeders' numbers pass 2147483647 and continue with 0."""
    directory = RunDirectory(tmp_path_factory.mktemp("generated") / "run")
    plan = EvidencePlan(
        records=10_000, seed=3, rounds=2, per_transaction=20, block_records=4_000, numbers_from=(1 << 31) - 30
    )
    made = make(directory, plan)
    (verdict,) = judge(spark, [directory])
    assert verdict.crashed == ()
    return directory, made


def test_the_judge_finds_exactly_what_is_planted(judged: tuple[RunDirectory, Made]) -> None:
    """The judge names each violation, and no other."""
    directory, made = judged
    agree(PRODUCT.name, of_judgement(directory, read_run(directory).experiment), made.planted)


def test_the_textbook_finds_exactly_what_is_planted(spark: SparkSession, judged: tuple[RunDirectory, Made]) -> None:
    """So does one query per anomaly."""
    directory, made = judged
    agree(TEXTBOOK.name, find(spark, directory), made.planted)


def test_duckdb_shows_what_the_judge_shows(judged: tuple[RunDirectory, Made], tmp_path: Path) -> None:
    """Around the examples of every finding the yardstick has the same rows; otherwise it would do less work."""
    pytest.importorskip("duckdb", reason="requirements-bench.txt is not installed")
    directory, _ = judged
    found = tmp_path / "found.csv"
    command = DUCKDB.command(Setting(directory=directory, records=10_000, threads=2), found)
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    ours = log_context.of_judgement(directory)
    log_context.agree(DUCKDB.name, log_context.of_contender(log_context.context_file(found)), ours)
    assert {dict(row)["anomaly"] for row in ours} >= {Anomaly.BROKEN_SEQUENCE, Anomaly.DUPLICATE, Anomaly.ZOMBIE_WRITE}
