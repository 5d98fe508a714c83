"""The judge agrees with what generated evidence says was planted; bench-verify asks the same of every other party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suites.bench_verify.evidence import make
from suites.bench_verify.found import agree, of_judgement
from suites.bench_verify.parties import PRODUCT
from suites.bench_verify.plan import Plan
from verification.evidence import read_run
from verification.judge import judge
from verification.layout import RunDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_judge_finds_exactly_what_is_planted(spark: SparkSession, tmp_path: Path) -> None:
    """Of 10^4 records with every kind of plant the judge names each violation, and no other."""
    directory = RunDirectory(tmp_path / "run")
    made = make(directory, Plan(records=10_000, seed=3, rounds=2, per_transaction=20, block_records=4_000))
    (verdict,) = judge(spark, [directory])
    assert verdict.crashed == ()
    agree(PRODUCT.name, of_judgement(directory, read_run(directory).experiment), made.planted)
