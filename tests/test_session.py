"""The Spark session: whatever the user says wins, and a Java that Spark refuses is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verification import session
from verification.errors import JavaUnfitError

ROOT = Path(__file__).resolve().parent.parent


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
    """What the user gives is taken as it is, also what we have no default for."""
    chosen = session.settings({"spark.master": "spark://host:7077", "spark.driver.memory": "8g"})
    assert (chosen["spark.master"], chosen["spark.driver.memory"]) == ("spark://host:7077", "8g")


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


def test_master_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """MASTER is what Spark's own shells read; an option still wins over it."""
    monkeypatch.setenv("MASTER", "local[7]")
    assert session.settings({})["spark.master"] == "local[7]"
    assert session.settings({"spark.master": "local[3]"})["spark.master"] == "local[3]"


def test_a_remote_session_gets_engine_settings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark Connect server has its own master, memory and JVM: none of them is asked for."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert {key.split(".")[1] for key in session.settings({})} == {"sql"}


def _java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)
    return home


def test_the_java_that_is_passed_in_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is that of the given home, before that of JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "env", 'openjdk version "21.0.1"')))
    assert session.java_major(_java(tmp_path / "given", 'openjdk version "17.0.15"')) == 17
    assert session.java_major(None) == 21


@pytest.mark.parametrize("version", ['java version "1.8.0_402"', 'openjdk version "11.0.2"', "nothing of the kind"])
def test_an_old_java_is_refused_with_one_sentence(version: str, tmp_path: Path) -> None:
    """A Java that Spark cannot run on is named, with what to do."""
    with pytest.raises(JavaUnfitError, match="Spark needs Java 17 or later: set JAVA_HOME to one") as refused:
        session.java_major(_java(tmp_path, version))
    assert "\n" not in str(refused.value)


def test_no_java_is_refused_with_one_sentence(tmp_path: Path) -> None:
    """A home without a java is named, with what to do."""
    with pytest.raises(JavaUnfitError, match=r"cannot be run .* named by JAVA_HOME or on PATH"):
        session.java_major(tmp_path)


def test_judging_without_java_is_an_environment_error(tmp_path: Path) -> None:
    """`python -m verification` on a machine without Java says so in one line and exits with 5."""
    (tmp_path / "scenario.json").write_text("{}")
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere"), "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "verification", str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "Spark needs Java 17 or later" in ended.stderr
    assert ended.stderr.count("\n") == 1


KILLED = """
import sys
from pathlib import Path
from fixtures.java import find_java, spark_java_home
from verification.session import kill, start

session = start(java_home=spark_java_home(find_java()), log=Path(sys.argv[1]))
assert session.range(3).count() == 3
machine = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
assert "-XX:ReservedCodeCacheSize=256m" in list(machine.getInputArguments()), "a long run would fill the code cache"
kill(session)
try:
    session.range(3).count()
except Exception as error:
    print("told so:", type(error).__name__)
"""


@pytest.mark.spark
def test_whoever_waits_for_a_killed_session_is_told_so(tmp_path: Path) -> None:
    """A JVM that answers nobody can be ended, what it printed stays, and the next question is an error."""
    log = tmp_path / "somewhere" / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(log)], cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    assert "told so:" in done.stdout, done.stderr
    assert log.is_file()
