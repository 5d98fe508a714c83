"""Checks for committed writes of an instance that was already superseded."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.operations import OPERATION
from verification.checks.violation import GIVEN, WHERE, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told


def zombie_write(facts: EvidenceFacts) -> DataFrame:
    """Committed, although written by an instance or epoch that was already superseded. One violation per operation.

    (a) A transaction with outcome commit that was decided after a later instance of its transactional id had completed
    its initialisation; without a log, one that was told committed and delivered. (b) A committed record whose producer
    epoch is lower than one that stands at a lower offset of the same partition and producer id. The place is the first
    such record of the operation.
    """
    late = f"superseded_ns is not null and (has_log or told = '{Told.COMMITTED}')"
    stale = "has_log and producer_epoch < epoch_before"
    found = facts.places.where(f"genuine and outcome = 'commit' and (({late}) or ({stale}))")
    first = [each for each in WHERE if each not in OPERATION and each != "index"]
    columns = (*first, "index", "producer_epoch", "epoch_before", "superseded_ns", "decided_ns")
    by_operation = (
        found.groupBy(*OPERATION)
        .agg(F.min(F.struct(*columns)).alias("first"), F.expr(f"max({GIVEN}) as given"))
        .select(*OPERATION, "first.*", "given")
    )
    detail = """case
        when superseded_ns is not null
        then concat('decided ', (decided_ns - superseded_ns) div 1000, ' µs after its successor was initialised')
        else concat('epoch ', producer_epoch, ' after epoch ', epoch_before, ' in the same partition')
    end"""
    return violations(by_operation, Anomaly.ZOMBIE_WRITE, detail=detail, harm="given")
