"""Checks for lost writes, duplicates, and records that no client wrote."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.records import RECORD
from verification.checks.violation import GIVEN, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told
from verification.vocabulary.identity import NO_SOURCE


def lost_write(facts: EvidenceFacts) -> DataFrame:
    """A record that was promised and has no copy with outcome commit in the log. One violation per record.

    Promised: every record of a transaction that was told committed, and every plain record that was acknowledged.
    Other anomalies cover records of a transaction of which another record is visible (torn-transaction), and records of a
    transaction that is open in the log (hung-transaction, stuck-lso). Without a log, delivered records are taken
    instead. The place is the acknowledged one.
    """
    promised = f"(told = '{Told.COMMITTED}' and expected and not (seen > 0 or any_open))"
    lost = facts.records.where(f"copies = 0 and ({promised} or (plain and acked))")
    why = (
        f"case when told = '{Told.COMMITTED}' then 'its transaction was told committed' else 'it was acknowledged' end"
    )
    return violations(
        lost,
        Anomaly.LOST_WRITE,
        detail=f"concat({why}, '; no committed copy is there')",
        topic_index="at_topic_index",
        partition="at_partition",
        offset="at_offset",
    )


def duplicate(facts: EvidenceFacts) -> DataFrame:
    """One identity (run, process, operation, index) at two or more places with outcome commit. One per identity.

    The place is that of the second copy, in the order (topic, partition, offset). Copies of a copier have another
    identity (`checks.copies.duplicate_copy`); records of operations that the history does not have are phantoms.
    """
    placed = facts.places.where(f"genuine and outcome = 'commit' and source_offset = {NO_SOURCE}")
    twice = facts.records.where("copies > 1").select(*RECORD, "copies")
    order = Window.partitionBy(*RECORD).orderBy("topic_index", "partition", "offset")
    # Hardly any record is there twice, so only those are ordered.
    second = (
        placed.join(F.broadcast(twice), list(RECORD))
        .withColumns({"copy": F.row_number().over(order), "first": F.lag("offset").over(order)})
        .where("copy = 2")
    )
    return violations(second, Anomaly.DUPLICATE, detail="concat(copies, ' copies; the first is at offset ', first)")


def phantom_record(facts: EvidenceFacts) -> DataFrame:
    """A data record in the log that no client wrote there with this content. One violation per place.

    Foreign or with a wrong checksum; of another run; of an operation that the history does not have;
    with an index beyond its operation's records; or in another topic or partition than the one it was written to.
    """
    why = """case
        when process is null then 'its value is foreign, or changed on its way'
        when not genuine then 'it is of another run'
        when known is null then 'the history has no such operation'
        when index >= (case when size > 0 then size else count end) then 'its index is beyond its operation'
        when topic_index != intended_topic_index or partition != intended_partition
            then 'it stands in another partition than its identity names'
    end"""
    found = facts.places.where("in_log and control is null").withColumn("why", F.expr(why)).where("why is not null")
    return violations(found, Anomaly.PHANTOM_RECORD, detail="why", harm=GIVEN)
