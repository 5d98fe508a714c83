"""The Spark checks: every planted history at once, in one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.judging import judged
from tests.support.planted.busy import Found
from tests.support.planted.cases import CASES, planted_all
from tests.verification.judge.test_reference import as_found
from verification.vocabulary.anomalies import Anomaly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RUN_OF = {name: f"case-{number:02d}" for number, name in enumerate(CASES)}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, set[Found]]:
    """The violations that the checks find in each planted history."""
    plants = {run: plant for run, (plant, _) in planted_all().items()}
    violations = judged(spark, plants.values())
    return {run: {as_found(each) for each in violations.get(run, [])} for run in plants}


@pytest.mark.parametrize("name", CASES)
def test_checks_find_exactly_what_was_planted(name: str, found: dict[str, set[Found]]) -> None:
    """The checks find the whole expected set of a planted history, and nothing else, among all others."""
    _, expected = CASES[name](RUN_OF[name])
    assert found[RUN_OF[name]] == expected


def test_every_anomaly_is_planted() -> None:
    """There is a planted history for every anomaly that has a name."""
    planted = {violation[0] for _, expected in planted_all().values() for violation in expected}
    assert planted == {str(anomaly) for anomaly in Anomaly}
