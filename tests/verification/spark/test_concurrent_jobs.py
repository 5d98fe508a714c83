"""Concurrent jobs in one session, and their end after an interruption."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from verification.spark.concurrent_jobs import THREADS, side_by_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
#: Rows that two cores count for minutes.
ENDLESS = 10**13


def _counted(spark: SparkSession, rows: int) -> int:
    return spark.range(rows).where("xxhash64(id) != 7").count()


def test_each_job_has_its_own_answer(spark: SparkSession) -> None:
    """Also of more jobs than there are threads."""
    with side_by_side(spark) as others:
        counting = [others.submit(_counted, spark, rows) for rows in range(2 * THREADS)]
        assert [each.result() for each in counting] == list(range(2 * THREADS))


def _interrupted(spark: SparkSession) -> list[Future[int]]:
    counting: list[Future[int]] = []
    begun = threading.Semaphore(0)

    def count() -> int:
        begun.release()
        return _counted(spark, ENDLESS)

    with suppress(KeyboardInterrupt), side_by_side(spark) as others:
        counting += [others.submit(count) for _ in range(THREADS + 1)]
        assert all(begun.acquire(timeout=30) for _ in range(THREADS)), "not all threads began"
        raise KeyboardInterrupt
    return counting


def test_an_interruption_ends_what_runs(spark: SparkSession) -> None:
    """The job would run for minutes. Jobs that have not begun never begin, and the session works afterwards."""
    *running, waiting = _interrupted(spark)
    assert all(each.exception() is not None for each in running)
    assert waiting.cancelled()
    assert _counted(spark, 5) == 5
    with pytest.raises(KeyboardInterrupt), side_by_side(spark):
        raise KeyboardInterrupt


def test_a_failure_is_its_own_and_leaves_the_others(spark: SparkSession) -> None:
    """The caller that takes the result gets the error."""
    with side_by_side(spark) as others:
        failing = others.submit(lambda: spark.sql("select raise_error('so it is')").collect())
        counting = others.submit(_counted, spark, 3)
        assert counting.result() == 3
        assert "so it is" in str(failing.exception())
