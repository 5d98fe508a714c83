"""Checks that an idempotent producer's sequence numbers in the log have no gap and no repeat."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from verification.checks.facts import EvidenceFacts
from verification.checks.numbering import NUMBER_MAX
from verification.checks.places import PARTITION
from verification.checks.violation import violations
from verification.vocabulary.anomalies import Anomaly

#: Numbers wrap: less than half of all numbers ahead is a gap, more is a step back.
_HALF = 1 << 30


def broken_sequence(facts: EvidenceFacts) -> DataFrame:
    """A record whose sequence does not follow that of its producer's record before it in the partition. One per record.

    `checks.numbering` defines the number that was due, and the cases in which leaders accept any. Not judged are records
    without a number (evidence of other sources, producers without idempotence) and the first record of a producer. Nor
    are runs that lasted so long that brokers may have forgotten producers (`Experiment.producer_expiration_s`): after a
    producer's state expired, a leader accepts any number, by design (IDEMP-24).
    """
    starts = F.broadcast(facts.frames.ends.select(*PARTITION, "start"))
    remembering = F.broadcast(facts.frames.runs.where("not coalesce(forgetful, false)").select("run"))
    broken = (
        facts.sequenced.where("in_log and sequence_due is not null")
        .join(starts, list(PARTITION), "left")
        .where("sequence_known or start = 0")
        .join(remembering, "run", "left_semi")
        .withColumn("ahead", F.expr(f"(cast(sequence as bigint) - sequence_due) & {NUMBER_MAX}"))
    )
    detail = f"""concat(
        case when ahead < {_HALF}
        then concat('sequence ', sequence, ' where ', sequence_due, ' was due: ', ahead, ' missing before it')
        else concat('sequence ', sequence, ' again where ', sequence_due, ' was due') end,
        '; producer ', producer_id, ', epoch ', producer_epoch)"""
    return violations(broken, Anomaly.BROKEN_SEQUENCE, detail=detail)
