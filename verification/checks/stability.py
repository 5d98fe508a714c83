"""Checks that each transaction is decided in its turn, and that the last stable offset moves on."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.places import PARTITION
from verification.checks.violation import CONTRADICTED, UNREAD, violations
from verification.vocabulary.anomalies import Anomaly

#: Coordinator states in which a transaction may rightly be open on its partitions (KIP-664 names).
RUNNING = ("Ongoing", "PrepareCommit", "PrepareAbort")


def _with_log(facts: EvidenceFacts, frame: DataFrame) -> DataFrame:
    """Rows of runs that have a log; for others only delivered and told are compared."""
    return frame.join(F.broadcast(facts.frames.runs.where("has_log").select("run")), "run", "left_semi")


def _hung(facts: EvidenceFacts) -> DataFrame:
    """Open on a partition, not open at the coordinator: one row per (partition, producer id), with the first record."""
    keys = (*PARTITION, "producer_id")
    mine = (*keys, "offset", "process", "operation", "index")
    by_log = facts.places.where("outcome = 'open'").selectExpr(*mine, f"cast({UNREAD} as int) as harm")
    by_leader = _with_log(facts, facts.frames.open_producers).select(*keys, "offset")
    running = facts.frames.coordinator_states.where(F.col("state").isin(*RUNNING)).select("run", "producer_id")
    first = F.expr("min(case when process is not null then struct(offset as at, process, operation, index) end)")
    return (
        by_log.unionByName(by_leader, allowMissingColumns=True)
        .groupBy(*keys)
        .agg(F.min("offset").alias("offset"), first.alias("first"), F.expr("coalesce(max(harm), 0) as harm"))
        .select(*keys, "offset", "first.process", "first.operation", "first.index", "harm")
        .join(running, ["run", "producer_id"], "left_anti")
    )


def hung_transaction(facts: EvidenceFacts) -> DataFrame:
    """Open on a partition, by the log or by its leader, but not open at the coordinator.

    By the log: data without a control record of its producer after it. By the leader: DescribeProducers names an
    open transaction (KIP-664). Not hung while a coordinator state of the producer id is Ongoing or Prepare*. One
    violation per (topic, partition, producer id); the place is where it begins, the record the first one in the log.
    """
    detail = "concat('producer ', producer_id, '; open at no coordinator')"
    return violations(_hung(facts), Anomaly.HUNG_TRANSACTION, detail=detail, harm="harm")


def decided_late(facts: EvidenceFacts) -> DataFrame:
    """Data followed by data of the producer id's next transaction without a control record in between, decided since.

    A coordinator begins the next transaction only when the last one is over on every partition, so the marker was never
    written. A later marker that released the partition by chance does not excuse it. One violation per transaction and
    partition, unless it is still open (`hung_transaction`); the place is its last record there.
    """
    # Next to a record of an unknown operation nothing was adopted: that record is the violation.
    operations = facts.frames.operations.selectExpr("run", "process as next_process", "operation as next_operation")
    adopted = facts.places.where("adopted and genuine and known and outcome != 'open'").join(
        operations, ["run", "next_process", "next_operation"], "left_semi"
    )
    detail = (
        "concat('producer ', producer_id, '; its own marker was never written; the marker of its next transaction decided"
        " it: ', outcome, coalesce(concat(', told: ', told), ''))"
    )
    harm = f"cast({UNREAD} as int) + cast(({CONTRADICTED}) as int)"
    return violations(adopted, Anomaly.DECIDED_LATE, detail=detail, harm=harm)


def stuck_lso(facts: EvidenceFacts) -> DataFrame:
    """LSO below the high watermark at quiescence or when the bound ran out, while no transaction hangs there.

    Also when only fencing the producers released it, because users have no harness that fences. And when it moved by
    itself, but after an abandoned transaction may be open (`verification.evidence.lso_samples`). One violation per (topic,
    partition); the offset is the LSO.
    """
    columns = (*PARTITION, "last_stable_offset", "high_watermark")
    behind = "last_stable_offset < high_watermark"
    waited = facts.frames.settled.where(f"before_fencing and {behind}").select(*columns)
    ended = facts.frames.ends.where(behind).select(*columns)
    stuck = (
        _with_log(facts, waited.unionByName(ended))
        .groupBy(*PARTITION)
        .agg(F.min("last_stable_offset").alias("offset"), F.max("high_watermark").alias("high_watermark"))
        .join(_hung(facts).select(*PARTITION), list(PARTITION), "left_anti")
    )
    detail = "concat('the high watermark is ', high_watermark, '; nothing hangs there')"
    return violations(stuck, Anomaly.STUCK_LSO, detail=detail)
