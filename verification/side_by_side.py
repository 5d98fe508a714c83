"""Jobs of one Spark session side by side.

A small job is planned and compiled by one thread of the driver for longer than it runs on any core, and the next one, that
has nothing to do with it, would wait. Spark runs whatever jobs there are at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: As many as have ever something to do at once here.
THREADS = 3


@contextmanager
def side_by_side(spark: SparkSession) -> Iterator[ThreadPoolExecutor]:
    """Threads for jobs, all of which have ended afterwards; an interruption ends what runs in the session."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="spark-jobs") as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            spark.interruptAll()
            raise
