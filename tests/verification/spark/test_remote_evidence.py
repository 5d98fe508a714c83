"""Evidence that only Spark can reach is judged as the same evidence in a directory of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from reports.__main__ import main as report
from tests.support.paths import ROOT
from tests.support.planted.cases import CASES, MIXED, anomalies, mixed
from tests.support.planted.files import write
from tests.support.servers.hdfs_server import hdfs
from verification.__main__ import main
from verification.evidence.run_directory import RunDirectory, scenario_directories
from verification.spark import remote_evidence
from verification.spark.remote_evidence import is_uri, local_path, without_scheme
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.verdict import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.vocabulary.verdict import ScenarioVerdict

#: A session and one judgement take half a minute; the rest is for a machine that is busy with clusters.
WITHIN_S = 300.0
#: With acknowledgements, with observers, and without a log.
THREE = ("lost_append", "skipped", "without_log")


def kept(run: Path) -> dict[str, bytes]:
    """The files of findings of a run."""
    return {str(path.relative_to(run)): path.read_bytes() for path in (run / "findings").rglob("*") if path.is_file()}


def mounted(spark: SparkSession, place: Path, name: str) -> str:
    """A URI under which only Spark finds a directory: a mount of Hadoop's viewfs."""
    # Hadoop caches mounts by name, so no name is used twice.
    name = f"{name}-{uuid.uuid4().hex}"
    spark.conf.set(f"fs.viewfs.mounttable.{name}.link./evidence", place.as_uri())
    return f"viewfs://{name}/evidence"


def judged(spark: SparkSession, uri: str, into: Path) -> list[ScenarioVerdict]:
    from verification.judge.judge import judge
    from verification.spark.remote_evidence import copy_small_files

    copy = copy_small_files(spark, uri, into)
    runs = [RunDirectory(each.root, copy.source_of(each.root)) for each in scenario_directories(copy.root)]
    return judge(spark, runs)


@pytest.mark.spark
@pytest.mark.deep
def test_a_whole_run_is_judged_where_only_spark_sees_it(spark: SparkSession, tmp_path: Path) -> None:
    """The same verdicts and bytes of findings; nothing is written next to the evidence, no capture is copied."""
    from dataclasses import replace

    from verification.judge.judge import judge

    here = [write(CASES[name](name[:12])[0], tmp_path / "night" / "runs" / name) for name in THREE]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "night").rglob("*")}
    found = judged(spark, mounted(spark, tmp_path, "whole") + "/night/", tmp_path / "into")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "night").rglob("*")}
    there = tmp_path / "into" / "night" / "runs"
    assert {path.name for path in there.iterdir()} == set(THREE)
    assert not list(there.rglob("*.parquet"))
    expected = judge(spark, sorted(here, key=lambda run: run.root.name))
    assert [replace(each, judged_s=0.0) for each in found] == [replace(each, judged_s=0.0) for each in expected]
    for run in here:
        assert kept(there / run.root.name) == kept(run.root), run.root.name
        assert (there / run.root.name / "verdicts.json").is_file()


@pytest.mark.spark
@pytest.mark.parametrize("large", [remote_evidence.LARGE_BYTES, 0])
def test_what_is_asked_of_captures_has_one_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """Counts, ends, columns and producers, from the files and from Spark; whether a file counts as large or not."""
    from verification.evidence.capture_reader import LocalCaptureReader
    from verification.evidence.rows import all_rows
    from verification.evidence.run_evidence import read_run
    from verification.spark.remote_evidence import RemoteCaptures

    monkeypatch.setattr(remote_evidence, "LARGE_BYTES", large)
    for name in ("clean", "without_log"):
        run = write(CASES[name](name)[0], tmp_path / name)
        here, there = LocalCaptureReader(run), RemoteCaptures(spark, f"{mounted(spark, tmp_path, 'asked')}/{name}")
        for folder in ("log", "uncommitted", "committed"):
            assert here.present(folder) == there.present(folder) == (name == "clean" or folder == "committed")
            if here.present(folder):
                assert here.count(folder) == there.count(folder) == sum(here.topic_rows(folder).values()) > 0
                assert here.topic_rows(folder) == there.topic_rows(folder)
                assert here.last_offsets(folder) == there.last_offsets(folder)
                assert [each for _, each in here.schemas(folder)] == [each for _, each in there.schemas(folder)]
        if name == "clean":
            asked = next(row for row in all_rows(read_run(run))["log"] if row["process"] is not None)
            key = asked["process"], asked["operation"]
            assert len(here.producer_rows(*key)) > 1
            assert here.producer_rows(*key) == there.producer_rows(*key) == there.producer_rows(*key)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a[b]*", pytest.param("{open\\c?", marks=pytest.mark.deep)])
def test_no_name_is_a_pattern(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """A run lies in the directory that is named, whatever else a pattern of that name would match."""
    from verification.judge.judge import judge

    for other in ("abc", "ab"):
        write(CASES["clean"]("clean")[0], tmp_path / "evidence" / other / "run")
    run = write(CASES["lost_append"]("lost")[0], tmp_path / "evidence" / name / "run")
    (here,) = judge(spark, [run])
    (there,) = judged(spark, f"{mounted(spark, tmp_path / 'evidence', 'named')}/{name}/run", tmp_path / "into")
    assert {each.anomaly for each in here.findings} == {each.anomaly for each in there.findings} == {"lost-write"}


def cut_parquet(run: RunDirectory) -> None:
    (part,) = run.committed.glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-5])


def foreign_parquet(run: RunDirectory) -> None:
    (part,) = run.committed.glob("*.parquet")
    part.write_bytes(b"PAR1")


def no_marker(run: RunDirectory) -> None:
    (run.log / "_SUCCESS").unlink()


def half_copied(run: RunDirectory) -> None:
    """A copy of the directory that began with the marker and stopped before the last file."""
    (part,) = run.log.glob("*.parquet")
    table = pq.read_table(part)
    pq.write_table(table.slice(0, table.num_rows // 2), part)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut_parquet, "not readable Parquet"),
        (foreign_parquet, "not readable Parquet"),
        (no_marker, "never completed"),
        (half_copied, "rows and not the"),
        (lambda run: next(run.log.glob("*.parquet")).unlink(), "holds no Parquet file"),
    ],
)
def test_damage_elsewhere_is_an_error_and_no_verdict(
    spark: SparkSession, tmp_path: Path, harm: object, said: str
) -> None:
    """A capture that is cut, foreign or incomplete is refused by its name, as it is here."""
    run = write(CASES["clean"]("clean")[0], tmp_path / "run")
    assert callable(harm)
    harm(run)
    (verdict,) = judged(spark, f"{mounted(spark, tmp_path, 'damage')}/run", tmp_path / "into")
    assert verdict.verdict.name == "ERROR"
    assert said in verdict.reason


@pytest.mark.spark
@pytest.mark.parametrize("harm", [cut_parquet, foreign_parquet])
def test_damage_of_large_files_is_told_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[RunDirectory], None]
) -> None:
    """Where Spark reads the footers."""
    monkeypatch.setattr(remote_evidence, "LARGE_BYTES", 0)
    run = write(CASES["clean"]("clean")[0], tmp_path / "run")
    harm(run)
    captured = remote_evidence.RemoteCaptures(spark, f"{mounted(spark, tmp_path, 'large')}/run")
    with pytest.raises(UnfitEvidenceError, match=r"part-\S*parquet is not readable Parquet"):
        captured.count("committed")


@pytest.mark.spark
def test_half_a_copy_has_no_name(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that ends before its last file leaves nothing behind, so that it can be made again into the same directory."""
    run = write(CASES["clean"]("clean")[0], tmp_path / "run")
    uri = mounted(spark, tmp_path, "half") + "/run"
    whole = remote_evidence._contents
    monkeypatch.setattr(remote_evidence, "_contents", lambda *asked: islice(whole(*asked), 2))
    with pytest.raises(UnfitEvidenceError, match="was listed but did not arrive"):
        remote_evidence.copy_small_files(spark, uri, tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []
    monkeypatch.undo()
    copy = remote_evidence.copy_small_files(spark, uri, tmp_path / "into")
    assert copy.root == tmp_path / "into" / "run"
    assert (copy.root / "history.jsonl").read_bytes() == run.history.read_bytes()
    (tmp_path / "taken").touch()
    with pytest.raises(UnfitEvidenceError, match="cannot be written"):
        remote_evidence.copy_small_files(spark, uri, tmp_path / "taken")


@pytest.mark.spark
def test_what_cannot_be_read_is_said_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """Missing files, an unknown file system, no answer, and a target directory with files in it."""
    from verification.spark.remote_evidence import copy_small_files

    (tmp_path / "empty").mkdir()
    (tmp_path / "into" / "run").mkdir(parents=True)
    for uri, said in (
        ((tmp_path / "nothing").as_uri(), "Path does not exist"),
        ((tmp_path / "empty").as_uri(), "holds nothing of a run"),
        ("s3x://bucket/run2", 'No FileSystem for scheme "s3x"'),
        ("file:///elsewhere/run", "exists already"),
    ):
        with pytest.raises(UnfitEvidenceError, match=said) as raised:
            copy_small_files(spark, uri, tmp_path / "into")
        assert "\n" not in str(raised.value)


def test_places_have_names() -> None:
    """Paths, URIs of local files in every spelling, and URIs of others."""
    assert [text for text in ("runs/latest", "/a:b/c", "C:/runs", "file:/a", "s3a://b/c") if is_uri(text)] == [
        "file:/a",
        "s3a://b/c",
    ]
    assert local_path("runs/a b") == Path("runs/a b")
    assert local_path("file:///runs/a%20b") == Path("/runs/a b") == local_path("file:/runs/a%20b")
    assert local_path("hdfs:///runs") is None
    assert without_scheme("file:///a") == without_scheme("file:/a") == without_scheme("/a") == "/a"
    assert without_scheme("hdfs://n/a") == "hdfs://n/a"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hdfs://n/run",), "name a local directory for its verdicts with --output DIR"),
        (("hdfs://n/run", "--reference"), "leave out --reference"),
        (("hdfs://n/run", "--output", "x", "--reference"), "leave out --output"),
        (("a/run", "s3a://b/run", "--output", "x"), "two of these are called run"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark is started."""
    assert main(words) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_a_uri_of_a_local_file_is_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--output` it is judged like the path."""
    run = write(CASES["clean"]("clean")[0], tmp_path / "a run")
    assert main([run.root.as_uri(), "--reference"]) == ExitCode.CONFORMANT
    assert "nothing" in capsys.readouterr().out


@pytest.mark.deep
@pytest.mark.cluster
def test_a_run_in_hdfs_is_judged_from_there(tmp_path: Path) -> None:
    """As a user does it, from servers that have the only copy; and the report shows what was found."""
    night = tmp_path / "night"
    mixed(night / "runs")
    with hdfs(tmp_path) as store:
        uri = store.put(night)
        shutil.rmtree(night)
        command = [sys.executable, "-m", "verification", uri, "--output", str(tmp_path / "into")]
        done = subprocess.run(
            command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    assert done.returncode == ExitCode.VIOLATION, done.stdout + done.stderr
    for name in MIXED:
        findings = tmp_path / "into" / "night" / "runs" / name / "findings"
        assert {path.parent.name for path in findings.rglob("violations.jsonl")} == anomalies(name), name
    report([str(tmp_path / "into" / "night")])
    assert (tmp_path / "into" / "night" / "report.html").is_file()
