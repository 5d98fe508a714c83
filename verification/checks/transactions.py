"""Checks that a transaction is visible as a whole or not at all."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.operations import OPERATION
from verification.checks.violation import UNREAD, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told
from verification.vocabulary.violations import LSO

#: How many missing records a torn transaction names.
NAMED = 5


def torn_transaction(facts: EvidenceFacts) -> DataFrame:
    """At quiescence some but not all records of a transaction are visible. One violation per transaction.

    Transactions that were told committed or unknown are judged: an unknown outcome must turn out all or nothing. A record
    is visible when a copy with outcome commit is in the committed capture; without a log, when any copy is. When every
    missing record has a copy at or above its partition's LSO, the LSO that stands still explains it (`cause` is `lso`).
    """
    judged = f"told in ('{Told.COMMITTED}', '{Told.UNKNOWN}') and seen > 0 and seen < size"
    missing = "case when not visible then {} end"
    acked = "concat_ws(':', at_topic_index, at_partition, at_offset)"
    torn = (
        facts.records.where(judged)
        .groupBy(*OPERATION, "told", "seen", "waits", "size")
        .agg(
            F.expr(f"array_sort(collect_list({missing.format('index')}))").alias("missing"),
            # One entry per missing record, empty where its place is unknown: the count says whether all are known.
            F.expr(f"collect_list(case when not visible then {acked} end)").alias("places"),
        )
    )
    detail = (
        "concat('told ', told, '; ', seen, ' of ', size, ' records are visible; missing are records number ',"
        f" concat_ws(', ', slice(missing, 1, {NAMED})), case when size(missing) > {NAMED} then ' …' else '' end)"
    )
    cause = f"case when seen + waits = size then '{LSO}' end"
    harm = f"told = '{Told.COMMITTED}'"
    return violations(torn, Anomaly.TORN_TRANSACTION, detail=detail, cause=cause, places="places", harm=harm)


def hidden_committed(facts: EvidenceFacts) -> DataFrame:
    """A record in the log with outcome commit that no read_committed consumer receives. One per place.

    The missing records of a transaction of which others are visible are not reported again (torn-transaction). An LSO
    below the record that stands still explains it (`cause` is `lso`).
    """
    hidden = facts.places.where("in_log and genuine and outcome = 'commit' and committed = 0")
    seen = facts.records.where("told is not null and seen > 0").select(*OPERATION).distinct()
    return violations(
        hidden.join(seen, list(OPERATION), "left_anti"),
        Anomaly.HIDDEN_COMMITTED,
        detail="concat('committed in the log; the last stable offset is ', last_stable_offset)",
        cause=f"case when offset >= last_stable_offset then '{LSO}' end",
        harm=UNREAD,
    )
