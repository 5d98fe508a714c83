"""The Spark session: whatever the user says wins, and a Java that Spark refuses is one sentence."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from py4j import java_gateway
from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException

from tests.support.paths import ROOT
from verification.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _nobody_said_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_REMOTE", "MASTER", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_for_one_small_machine() -> None:
    """Left alone, the session is local with two cores, without a UI."""
    chosen = session.settings({})
    assert (chosen["spark.master"], chosen["spark.ui.enabled"]) == ("local[2]", "false")
    assert chosen["spark.sql.shuffle.partitions"] == "2"
    assert not [key for key in chosen if "memory" in key]


def test_options_win_over_defaults() -> None:
    """Settings of the user are taken unchanged, also those without a default of ours."""
    chosen = session.settings({"spark.master": "spark://host:7077", "spark.driver.memory": "8g"})
    assert (chosen["spark.master"], chosen["spark.driver.memory"]) == ("spark://host:7077", "8g")


@pytest.mark.parametrize(
    ("master", "loopback"),
    [
        ("local", True),
        ("local[4]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("k8s://https://localhost:6443", False),
    ],
)
def test_executors_of_other_machines_find_the_driver(master: str, *, loopback: bool) -> None:
    """Only executors on this machine get the loopback address of the driver; a user's own address is kept."""
    chosen = session.settings({"spark.master": master})
    assert [key for key in session.LOOPBACK if key in chosen] == (list(session.LOOPBACK) if loopback else [])
    assert session.settings({"spark.master": master, "spark.driver.host": "here"})["spark.driver.host"] == "here"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ("--master spark://host:7077 pyspark-shell", "spark.master"),
        ("--conf spark.sql.shuffle.partitions=64 pyspark-shell", "spark.sql.shuffle.partitions"),
        ("--conf=spark.ui.enabled=true pyspark-shell", "spark.ui.enabled"),
        ("--driver-java-options -Xss9m pyspark-shell", "spark.driver.extraJavaOptions"),
    ],
)
def test_submit_arguments_are_left_to_spark(arguments: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that PYSPARK_SUBMIT_ARGS sets is not set again over it."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert key in session.APPLICATION_DEFAULTS | session.SQL_DEFAULTS
    assert key not in session.settings({})


def test_a_defaults_file_is_left_to_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A key of the user's spark-defaults.conf is not set over it; comments are none."""
    text = "# spark.ui.enabled true\nspark.master   spark://host:7077\nspark.sql.adaptive.enabled=true\n"
    (tmp_path / "spark-defaults.conf").write_text(text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    chosen = session.settings({})
    assert "spark.master" not in chosen
    assert "spark.sql.adaptive.enabled" not in chosen
    assert chosen["spark.ui.enabled"] == "false"


def test_options_of_the_jvm_are_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ours, or theirs, are told where the log's settings lie; what a file of Spark's says is not replaced by that."""
    key, logs = "spark.driver.extraJavaOptions", "-Dlog4j2.configurationFile=file:"
    assert "-XX:+UseSerialGC" in session.settings({})[key]
    assert logs in session.settings({})[key]
    assert session.settings({key: "-Xss9m"})[key].startswith(f"-Xss9m {logs}")
    (tmp_path / "spark-defaults.conf").write_text(f"{key} -Xss9m\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert key not in session.settings({})
    assert logs in session.settings({key: "-Xss7m"})[key]


def test_master_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """MASTER is what Spark's own shells read; an option still wins over it."""
    monkeypatch.setenv("MASTER", "local[7]")
    assert session.settings({})["spark.master"] == "local[7]"
    assert session.settings({"spark.master": "local[3]"})["spark.master"] == "local[3]"


def test_a_remote_session_gets_engine_settings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark Connect server has its own master, memory and JVM: none of them is asked for."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert {key.split(".")[1] for key in session.settings({})} == {"sql"}


#: What a session on a Connect server has not; `session` itself starts and ends local JVMs.
LOCAL_ONLY = frozenset(
    {"rdd", "sparkContext", "SparkContext", "_sc", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_gateway"}
)


@pytest.mark.parametrize("room", ["verification", "wire"])
def test_nothing_is_asked_that_only_a_local_session_has(room: str) -> None:
    """The same code runs everywhere: no RDDs, no Spark context and no JVM, but where a local one is started and ended."""
    asked = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _named(node)
    }
    found = {file for file, name in asked if name in LOCAL_ONLY}
    assert found == ({"verification/spark/session.py"} if room == "verification" else set())


def _named(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return tuple(each.name for each in node.names) if isinstance(node, ast.Import | ast.ImportFrom) else ()


KILLED = """
import sys
from pathlib import Path
from fixtures.tools.java import find_java, spark_java_home
from verification.spark.session import ARROW_OPTIONS, kill, start

session = start(java_home=spark_java_home(find_java()), log=Path(sys.argv[1]))
assert session.range(3).count() == 3
machine = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
given = list(machine.getInputArguments())
assert "-XX:ReservedCodeCacheSize=256m" in given, "a long run would fill the code cache"
assert set(ARROW_OPTIONS.split()) <= set(given), "reading our own sources takes longer"
(scratch,) = [each.partition("=")[2] for each in given if each.startswith("-Djava.io.tmpdir=")]
assert list(Path(scratch).iterdir()), "Spark has its directories there"
kill(session)
try:
    session.range(3).count()
except Exception as error:
    print("told so:", type(error).__name__)
"""


@pytest.mark.spark
def test_whoever_waits_for_a_killed_session_is_told_so(tmp_path: Path) -> None:
    """A JVM that does not answer can be killed; its output stays, its temporary files go, and the next call raises."""
    log, temporary = tmp_path / "somewhere" / "spark.log", tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(log)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "told so:" in done.stdout, done.stderr
    assert log.is_file()
    assert list(temporary.iterdir()) == []


@pytest.mark.spark
def test_errors_of_another_jvm_are_left_as_they_are(spark: SparkSession) -> None:
    """An id of theirs may be that of anything in Spark's JVM. Errors of Spark itself are still translated."""
    taken = spark._jsparkSession._target_id  # type: ignore[attr-defined]
    with pytest.raises(Py4JJavaError) as raised:
        java_gateway.get_return_value(f"xr{taken}", MagicMock(), "o1", "get")
    assert raised.value.java_exception._target_id == taken
    with pytest.raises(ParseException):
        spark.sql("selec 1")
