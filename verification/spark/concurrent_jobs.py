"""Jobs of one Spark session side by side.

A small job is planned and compiled by one thread of the driver for longer than it runs on any core, and the next one, that
has nothing to do with it, would wait. Spark runs whatever jobs there are at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: As many as have ever something to do at once here.
THREADS = 3
#: How often those who were told to stop are told again: a job is not to be found before it is planned.
AGAIN_S = 0.3


@contextmanager
def side_by_side(spark: SparkSession) -> Iterator[ThreadPoolExecutor]:
    """Threads for jobs, all of which have ended afterwards; an interruption ends what runs in the session."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="spark-jobs") as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            with _stopping(spark.interruptAll):
                pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _stopping(interrupt: Callable[[], object]) -> Iterator[None]:
    """Meanwhile jobs are interrupted, by another thread: this one's connection to the JVM broke off within an answer."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(AGAIN_S):
            with suppress(Exception):
                interrupt()

    threading.Thread(target=tell, name="spark-interrupt", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
