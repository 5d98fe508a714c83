"""What all tests share: the Spark session of the judge, and the options of the commands that tests run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.paths import WITHOUT_HYPOTHESIS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure() -> None:
    """A run of the suites inside a test has no use for the plugin of hypothesis, whose import takes 1.7 of its 6 s.

    Tests with an empty cache and no network need a Java runtime. A machine without one lends them that of the usual cache.
    """
    from fixtures.tools.java import find_java, installed_java, spark_java_home

    os.environ["PYTEST_ADDOPTS"] = WITHOUT_HYPOTHESIS
    if installed_java() is None:
        os.environ["JAVA_HOME"] = str(spark_java_home(find_java()))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session per test run: starting one takes longer than most tests that use it."""
    from fixtures.tools.java import find_java, spark_java_home
    from verification.spark.session import start

    session = start(java_home=spark_java_home(find_java()))
    yield session
    session.stop()
