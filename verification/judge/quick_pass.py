"""Small runs that are acquitted without a look at their records: everything agrees, and nothing else shows anything.

Two jobs go side by side. One holds each run in a worker, which says whether everything in it agrees
(`fingerprints.in_memory`). The other asks the checks that find something where no record is in question: of ends, leaders,
coordinators and operations. A run that any of them says anything about is judged as if this had not been, so that every
finding comes from the same place, with its surroundings.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from verification.checks import transaction_log
from verification.evidence import transaction_log_rows
from verification.evidence.rows import small_rows
from verification.fingerprints.strategy import is_small
from verification.judge.assemble import CAPTURES
from verification.judge.run_checks import collect
from verification.spark.concurrent_jobs import side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.evidence.run_evidence import RunEvidence

LOG = logging.getLogger(__name__)


def _found_beside(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    """The runs of which something is found although no record is in question."""
    from verification.checks import CHECKS
    from verification.checks.facts import beside
    from verification.spark.dataframes import load

    checks = [each for each in CHECKS if each.beside and any(each.applies(run.experiment) for run in runs)]
    return frozenset(collect(beside(load(spark, runs, bulk=())), checks)) if checks else frozenset()


def _asked(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    from verification.fingerprints.in_memory import agreeing, small_run
    from verification.fingerprints.inputs import files
    from verification.fingerprints.warm_up import prepare

    captures = {run.run: files([run]) for run in runs}
    # Where only Spark can read them, nobody can hold them.
    held = [run for run in runs if len(captures[run.run]) == len(CAPTURES)]
    if not held:
        return frozenset()
    with side_by_side(spark) as others:
        preparing = others.submit(prepare, spark)
        beside = others.submit(_found_beside, spark, held)
        cases = [small_run(run, small_rows(run), captures[run.run]) for run in held]
        preparing.result()
        return agreeing(spark, cases) - beside.result()


def in_order(spark: SparkSession, runs: Sequence[RunEvidence]) -> frozenset[str]:
    """Those of some runs that are acquitted; none when finding out breaks, which is said in the log."""
    try:
        held = [run for run in runs if is_small(run)]
        return _asked(
            spark, [run for run in held if not any(transaction_log.illegal_transitions(transaction_log_rows.rows(run)))]
        )
    except Exception:
        LOG.exception("whether everything agrees could not be told; looking at every record")
        return frozenset()
