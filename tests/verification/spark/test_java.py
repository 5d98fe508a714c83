"""Which Java Spark is started with, and what is said where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from verification.spark.java import java_major, spark_java
from verification.vocabulary.errors import JavaUnfitError


def _java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    program.chmod(0o755)
    return home


def test_the_java_that_is_passed_in_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A given home is used before that of JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "env", 'openjdk version "21.0.1"')))
    given = _java(tmp_path / "given", 'openjdk version "17.0.15"')
    assert spark_java(given) == given
    assert spark_java() == tmp_path / "env"


def test_the_java_that_a_run_fetched_judges_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where JAVA_HOME is too old and PATH has none, the home that a run left in the cache is used."""
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "env", 'java version "1.8.0_402"')))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = _java(tmp_path / "onceproof" / "spark-java-home" / "21-a", 'openjdk version "21.0.1"')
    assert spark_java() == kept


def test_without_a_fit_java_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is said of the Java that the user named, not of the places that were looked at after it."""
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "env", 'java version "1.8.0_402"')))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(JavaUnfitError, match=r"env/bin/java is java version .1\.8"):
        spark_java()


def test_a_java_on_the_path_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAVA_HOME the launcher finds it by itself."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    home = _java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/bin:/usr/bin")
    assert spark_java() is None


@pytest.mark.parametrize("version", ['java version "1.8.0_402"', 'openjdk version "11.0.2"', "nothing of the kind"])
def test_an_old_java_is_refused_with_one_sentence(version: str, tmp_path: Path) -> None:
    """A Java that Spark cannot run on is named, with what to do."""
    with pytest.raises(JavaUnfitError, match="Spark needs Java 17 or later: set JAVA_HOME to one") as refused:
        java_major(_java(tmp_path, version))
    assert "\n" not in str(refused.value)


def test_no_java_is_refused_with_one_sentence(tmp_path: Path) -> None:
    """A home without a java is named, with what to do."""
    with pytest.raises(JavaUnfitError, match=r"cannot be run .* named by JAVA_HOME or on PATH"):
        java_major(tmp_path)


def test_judging_without_java_is_an_environment_error(tmp_path: Path) -> None:
    """`python -m verification` on a machine without Java says so in one line and exits with 5."""
    (tmp_path / "scenario.json").write_text("{}")
    nowhere = {name: str(tmp_path / "nowhere") for name in ("JAVA_HOME", "PATH", "XDG_CACHE_HOME")}
    environment = {**os.environ, **nowhere, "PYTHONPATH": str(ROOT)}
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
