"""Quick pass: passes small runs in which everything agrees, without reading their records one by one.

Two jobs run at the same time. One holds each run in a worker and decides whether everything in it agrees
(`fingerprints.in_memory`). The other runs the checks that need no records: those of ends, leaders, coordinators and
operations. If either finds anything, the run is judged as if there were no quick pass. So every finding comes from the
same code, with the records around it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from verification.checks.walks import WALKS
from verification.evidence.rows import small_rows, walked_rows
from verification.fingerprints.strategy import is_small
from verification.judge.assemble import CAPTURES
from verification.judge.run_checks import collect
from verification.spark.concurrent_jobs import side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.evidence.run_evidence import RunEvidence

LOG = logging.getLogger(__name__)


def _found_without_records(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    """The runs in which the checks that need no records find something."""
    from verification.checks import CHECKS
    from verification.checks.facts import without_records
    from verification.spark.dataframes import load

    checks = [each for each in CHECKS if each.without_records and any(each.applies(run.experiment) for run in runs)]
    return frozenset(collect(without_records(load(spark, runs, bulk=())), checks)) if checks else frozenset()


def _asked(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    from verification.fingerprints.in_memory import agreeing, small_run
    from verification.fingerprints.inputs import files
    from verification.fingerprints.warm_up import prepare

    captures = {run.run: files([run]) for run in runs}
    # A worker cannot hold a run whose files only Spark can read.
    held = [run for run in runs if len(captures[run.run]) == len(CAPTURES)]
    if not held:
        return frozenset()
    with side_by_side(spark) as others:
        preparing = others.submit(prepare, spark)
        found = others.submit(_found_without_records, spark, held)
        small_runs = [small_run(run, small_rows(run), captures[run.run]) for run in held]
        preparing.result()
        return agreeing(spark, small_runs) - found.result()


def _walked(run: RunEvidence) -> bool:
    """Whether a check without dataframes finds anything."""
    rows = walked_rows(run)
    return any(walk.over(rows) for walk in WALKS.values())


def in_order(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    """The runs that pass; none when this fails, which is logged."""
    try:
        held = [run for run in runs if is_small(run)]
        return _asked(spark, [run for run in held if not _walked(run)])
    except Exception:
        LOG.exception("the quick pass failed; checking every record")
        return frozenset()
