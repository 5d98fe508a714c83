"""Settings of a session that are changed for a few plans are what they were before, whatever happened meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verification.spark.codegen import ROWS_MAX, interpreted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WHOLE_STAGE = "spark.sql.codegen.wholeStage"


def test_small_plans_are_interpreted_and_large_ones_compiled(spark: SparkSession) -> None:
    """Whether rows are many or were not counted says which; the answer is the same."""
    stages = {}
    for rows in (None, ROWS_MAX, ROWS_MAX + 1):
        with interpreted(spark, rows):
            frame = spark.range(10).selectExpr("sum(id * 2) as total")
            plan = frame._jdf.queryExecution().executedPlan().toString()
            stages[rows] = "*(" in plan
            assert frame.toArrow().to_pylist() == [{"total": 90}]
    assert stages == {None: True, ROWS_MAX: False, ROWS_MAX + 1: True}


def test_settings_come_back(spark: SparkSession) -> None:
    """Those of the user too, and after an error."""
    before = spark.conf.get(WHOLE_STAGE)
    for own in ("false", "true"):
        spark.conf.set(WHOLE_STAGE, own)
        with pytest.raises(ZeroDivisionError), interpreted(spark, 1):
            raise ZeroDivisionError
        assert spark.conf.get(WHOLE_STAGE) == own
    spark.conf.set(WHOLE_STAGE, before or "true")
