"""The class archive of the judge's JVM: made once, found by every session, and never a reason for a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.errors import CacheNotWritableError
from fixtures.tools.java import find_java, spark_java_home
from fixtures.tools.spark_class_archive import keep_classes
from runner.resources import RunResources
from verification.spark import class_archive, session

STARTED = """
import sys
from pathlib import Path
from verification.spark.session import end, settings, start

key = "spark.driver.extraJavaOptions"
options = f"{settings({})[key]} -Xlog:class+load:file={sys.argv[2]}"
spark = start(java_home=Path(sys.argv[1]), options={key: options})
assert spark.range(3).count() == 3
end(spark)
"""


def test_a_session_uses_the_archive_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unless the user sets JVM options, which are left as they are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    key = "spark.driver.extraJavaOptions"
    assert class_archive.sharing_options() == ()
    file = class_archive.options_file()
    file.parent.mkdir(parents=True)
    file.write_text("-XX:SharedArchiveFile=/a.jsa\n-Xlog:cds=off\n", encoding="utf-8")
    assert "-XX:SharedArchiveFile=/a.jsa -Xlog:cds=off" in session.settings({})[key]
    assert "SharedArchiveFile" not in session.settings({key: "-Xss4m"})[key]
    file.write_bytes(b"\xff")
    assert class_archive.sharing_options() == ()


def test_a_run_does_the_training_run_at_its_end_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where jars are unpacked for one run, nor with a judge that did not answer; a failure is one sentence."""
    made: list[object] = []

    def keep(java: object, *, say: object) -> None:
        del say
        made.append(java)
        if len(made) > 1:
            raise CacheNotWritableError("The disk is full.")

    monkeypatch.setattr("fixtures.tools.spark_class_archive.keep_classes", keep)
    resources = object.__new__(RunResources)
    said: list[str] = []
    resources.console = SimpleNamespace(say=said.append)  # type: ignore[assignment]
    resources.environment = SimpleNamespace(java="a Java")  # type: ignore[assignment]
    for ci, abandoned in (("true", False), ("", True)):
        monkeypatch.setenv("CI", ci)
        resources._abandoned = abandoned
        resources.keep_classes()
    assert not made
    monkeypatch.setenv("CI", "")
    resources._abandoned = False
    for _ in range(2):
        resources.keep_classes()
    assert made == ["a Java"] * 2
    expected = "Could not build Spark's class archive; the next start will be slower"
    assert [each.partition(":")[0] for each in said] == [expected]


@pytest.mark.deep
@pytest.mark.spark
def test_a_training_run_spares_the_next_session_the_loading_of_classes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Most classes of a session come from the archive that was made once, and not from jars."""
    java = find_java()
    home = spark_java_home(java)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said: list[str] = []
    for _ in range(2):
        keep_classes(java, say=said.append)
    assert [each.partition(" of ")[0] for each in said] == ["Making the class archive"], "made once"
    assert class_archive.sharing_options(), "this JVM can make one, and sessions find it"
    log = tmp_path / "classes.log"
    command = [sys.executable, "-c", STARTED, str(home), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    sources = [line.rpartition("source: ")[2] for line in log.read_text(encoding="utf-8").splitlines()]
    spark = sum(each.startswith("shared objects file (top)") for each in sources)
    assert spark > len(sources) / 3, f"{spark} of {len(sources)} classes were mapped"
