"""One offset holds one content, for every reader and at all times."""

from __future__ import annotations

from pyspark.sql import DataFrame

from verification.checks.facts import EvidenceFacts
from verification.checks.violation import GIVEN, violations
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import GONE


def inconsistent_offset(facts: EvidenceFacts) -> DataFrame:
    """Two contents at one (topic, partition, offset) among log, captures and observations. One violation per place.

    Contents are compared by digest of the whole value, those of observations by digest of the identity. A control
    record that was delivered as data counts too. So does a record from a place where the log holds nothing: it is gone.
    The violation names the record that is *not* in the log, because a reader received it and it is gone.
    """
    return violations(
        facts.places.where("has_log and inconsistent"),
        Anomaly.INCONSISTENT_OFFSET,
        detail="case when not in_log then 'something was delivered where the log holds nothing'"
        " when control is null then 'two contents were seen at this offset'"
        " else 'a control record of the log was delivered as data' end",
        cause=f"case when not in_log then '{GONE}' end",
        process="gone_process",
        operation="gone_operation",
        index="gone_index",
        harm=GIVEN,
    )
