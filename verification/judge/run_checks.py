"""Runs checks in one Spark job and returns their violations as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from verification.spark.codegen import interpreted
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from verification.checks import Check
    from verification.checks.facts import EvidenceFacts


def collect(facts: EvidenceFacts, checks: Sequence[Check]) -> dict[str, list[RawViolation]]:
    """All violations that these checks find, by run; one job."""
    from verification.checks import united
    from verification.vocabulary.anomalies import Anomaly

    found: dict[str, list[RawViolation]] = {}
    with interpreted(facts.places.sparkSession, facts.rows):
        rows = united(facts, checks).toArrow().to_pylist()
    for row in rows:
        run = row.pop("run")
        row |= {"anomaly": Anomaly(row["anomaly"]), "places": tuple(row["places"] or ())}
        found.setdefault(run, []).append(RawViolation(**row))
    return found
