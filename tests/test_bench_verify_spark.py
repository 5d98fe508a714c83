"""The judge agrees with what generated evidence says was planted; bench-verify asks the same of every other party."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suites.bench_verify.evidence import make
from suites.bench_verify.found import agree, of_judgement
from suites.bench_verify.parties import PRODUCT, TEXTBOOK
from suites.bench_verify.plan import Plan
from suites.bench_verify.textbook import find
from verification.evidence import read_run
from verification.judge import judge
from verification.layout import RunDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_judge_finds_exactly_what_is_planted(spark: SparkSession, tmp_path: Path) -> None:
    """Of 10^4 records with every kind of plant the judge names each violation, and no other; so does the textbook.

    Feeders' numbers go round: after 2147483647 comes 0.
    """
    directory = RunDirectory(tmp_path / "run")
    plan = Plan(records=10_000, seed=3, rounds=2, per_transaction=20, block_records=4_000, numbers_from=(1 << 31) - 30)
    made = make(directory, plan)
    (verdict,) = judge(spark, [directory])
    assert verdict.crashed == ()
    agree(PRODUCT.name, of_judgement(directory, read_run(directory).experiment), made.planted)
    agree(TEXTBOOK.name, find(spark, directory), made.planted)
