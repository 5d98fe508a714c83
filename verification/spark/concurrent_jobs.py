"""Runs jobs of one Spark session concurrently.

One thread of the driver plans and compiles a small job for longer than the job runs on any core. Without threads the next
job would wait, although it is independent. Spark runs all submitted jobs at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: As many jobs as are ever independent here.
THREADS = 3
#: The interval of repeated interrupts: Spark does not find a job before it is planned.
INTERRUPT_EVERY_S = 0.3


@contextmanager
def side_by_side(spark: SparkSession) -> Iterator[ThreadPoolExecutor]:
    """Threads for jobs. All jobs have ended afterwards; an interruption ends all jobs of the session."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="spark-jobs") as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            with _stopping(spark.interruptAll):
                pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _stopping(interrupt: Callable[[], object]) -> Iterator[None]:
    """Interrupt jobs meanwhile, in another thread: the connection of this thread to the JVM broke within an answer."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(INTERRUPT_EVERY_S):
            with suppress(Exception):
                interrupt()

    threading.Thread(target=tell, name="spark-interrupt", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
