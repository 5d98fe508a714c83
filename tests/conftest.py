"""The Spark session that tests of the judge share; started when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session per test run: starting one takes longer than most tests that use it."""
    from fixtures.tools.java import find_java, spark_java_home
    from verification.spark.session import start

    session = start(java_home=spark_java_home(find_java()))
    yield session
    session.stop()
