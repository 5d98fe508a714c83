"""Evidence in an object store is judged as the same evidence in a directory, and what cannot be read is said in a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.planted.cases import MIXED, anomalies, mixed
from tests.support.servers.s3_server import s3
from tests.verification.spark.test_remote_evidence import kept
from verification.vocabulary.verdict import ExitCode

#: A session and its judgements take half a minute; the rest is for a machine that is busy with clusters.
WITHIN_S = 300.0
#: Judges as a user does; then, in the session that this has started, judges the same in a directory, and asks for what
#: cannot be read.
PROGRAM = """import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from verification.__main__ import main
from verification.spark.remote_evidence import copy_small_files
from verification.vocabulary.errors import UnfitEvidenceError
from verification.judge.judge import judge
from verification.evidence.run_directory import scenario_directories
here, words, refused = json.loads(sys.argv[1])
said = {"code": main(words), "refused": []}
spark = SparkSession.builder.getOrCreate()
judge(spark, scenario_directories(Path(here)))
for uri in refused:
    try:
        copy_small_files(spark, uri, Path(here) / "nowhere")
    except UnfitEvidenceError as error:
        said["refused"].append(str(error))
print(json.dumps(said))"""
CLOSED = "spark.hadoop.fs.s3a.bucket.closed.secret.key=another"


@pytest.mark.deep
@pytest.mark.spark
def test_a_run_in_s3_is_judged_from_there(tmp_path: Path) -> None:
    """The same bytes of findings; a missing bucket and wrong credentials give an error of one line."""
    here = {run.root.name: run for run in mixed(tmp_path / "night" / "runs")}
    with s3(tmp_path) as store:
        there = store.put(tmp_path / "night", "evidence")
        settings = [f"{key}={value}" for key, value in store.settings().items()]
        words = [there, "--output", str(tmp_path / "into"), *(f"--spark={each}" for each in (*settings, CLOSED))]
        refused = [f"{there}er", "s3a://nowhere/run", "s3a://closed/run"]
        asked = json.dumps([str(tmp_path / "night"), words, refused])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, asked],
            cwd=ROOT,
            env={key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["code"] == ExitCode.VIOLATION, done.stdout + done.stderr
    for name in MIXED:
        copied = tmp_path / "into" / "night" / "runs" / name
        assert {path.parent.name for path in copied.rglob("violations.jsonl")} == anomalies(name), name
        assert kept(copied) == kept(here[name].root), name
    reasons = ("Path does not exist", "The specified bucket does not exist", "status 403")
    for uri, reason, line in zip(refused, reasons, said["refused"], strict=True):
        assert line.startswith(f"{uri} cannot be read: ")
        assert reason in line
        assert "\n" not in line
