"""When one machine is not enough: the same verdicts, findings and rows from Spark's own cluster and from a Connect server.

Both run here, on loopback, but share nothing with the process that judges except the files of the evidence: no
directory, no path of Python modules, no session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.planted import files as planted_files
from tests.support.planted import log
from tests.support.planted.cases import MIXED, anomalies, mixed
from tests.support.servers.log_broker import LogBroker, log_broker
from tests.support.servers.spark_servers import connect_server, standalone, temporary
from tests.support.wire_definitions import definition_jars
from tests.verification.fingerprints.test_fingerprints import torn
from tests.verification.sources.test_reading import END, PARTS, TOPIC, options, whole
from verification.evidence import verdict_file
from verification.evidence.rows import all_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.fingerprints.strategy import Strategy, fits
from verification.judge.primary_findings import attribute
from verification.reference import judge_rows
from verification.spark.capture import definition_texts
from verification.vocabulary.verdict import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.deep]
#: A session and one judgement take half a minute; the rest is for a machine that is busy with clusters.
WITHIN_S = 300.0
#: Settings that our session has by default, for executors, which decide for themselves.
QUICK = ("--spark", "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m")
#: Judges as a user does, then reads as a run's capture does: the readers' code is sent, the source is registered, and the
#: workers read. One session for both, because starting it takes longer than either.
#: Between the two a run is judged as large ones are, by fingerprints, which workers take: of files that they read
#: themselves, or, where only Spark reads them, of batches that it hands them.
PROGRAM = """import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from verification.__main__ import main
from verification.spark.remote_evidence import copy_small_files
from verification.fingerprints.strategy import Strategy
from verification.judge.judge import judge
from verification.evidence.run_directory import RunDirectory
from verification.spark.worker_code import ship
where, url, asked, large, *words = sys.argv[1:]
code = main([*words, f"--spark-{where}", url])
spark = SparkSession.builder.config(f"spark.{where}", url).getOrCreate()
ship(spark)
directory = RunDirectory(Path(large))
if where == "remote":
    copy = copy_small_files(spark, directory.root.as_uri(), directory.root.parent / "copied")
    directory = RunDirectory(copy.root, source=copy.source)
(verdict,) = judge(spark, [directory], strategy=Strategy.FINGERPRINTS)
said = {"code": code, "large": {each.anomaly: each.count for each in verdict.findings}}
for source in ("segments", "wire"):
    read = spark.read.format("onceproof").option("source", source).options(**json.loads(asked)).load()
    rows = read.select("partition", "offset", "digest").toArrow().to_pylist()
    said[source] = sorted([row["partition"], row["offset"], row["digest"]] for row in rows)
print(json.dumps(said))"""


@pytest.fixture(scope="module", params=["standalone", "connect"])
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """How a user names a Spark that runs elsewhere, and its URL."""
    place = tmp_path_factory.mktemp("servers")
    if request.param == "standalone":
        with standalone(place) as url:
            yield "master", url
    else:
        with connect_server(place) as url:
            yield "remote", url


def by_the_reference(run: RunDirectory) -> dict[str, int]:
    """How many violations of each anomaly the judge in plain Python finds."""
    primary = attribute(judge_rows(all_rows(read_run(run)))).primary
    return {str(anomaly): len(violations) for anomaly, violations in primary.items()}


def by_spark(run: RunDirectory) -> dict[str, int]:
    """How many the verdict counts; the files of each anomaly hold these and their consequences."""
    findings = verdict_file.read(run.verdicts).findings
    files = {path.parent.name: path for path in run.findings.rglob("violations.jsonl")}
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files.items()}
    assert lines == {each.anomaly: each.count + each.consequences for each in findings}
    return {each.anomaly: each.count for each in findings}


@pytest.fixture(scope="module")
def broker() -> Iterator[LogBroker]:
    """The log that `wire` reads."""
    with log_broker({(TOPIC, 0): b"".join(PARTS)}) as serving:
        yield serving


def test_evidence_is_judged_and_logs_are_read_alike(
    elsewhere: tuple[str, str], broker: LogBroker, tmp_path: Path
) -> None:
    """As much is found of each anomaly as by the reference judge; workers read with what they were sent and no more."""
    directory = log.data_directory(tmp_path, 1)
    log.write_segments(directory / f"{TOPIC}-0", PARTS, each=20)
    texts = definition_texts(definition_jars())
    asked = json.dumps(
        options(broker.bootstrap, [whole()], directory=str(directory), split_offsets="100", definitions=texts)
    )
    runs = judged = mixed(tmp_path)
    places = [str(run.root) for run in runs]
    if elsewhere[0] == "remote":
        # A server has nothing of ours but Spark's own readers: this is also how evidence comes from anywhere (`distant`).
        judged = [RunDirectory(tmp_path / "into" / run.root.name) for run in runs]
        places = ["--output", str(tmp_path / "into"), *(run.root.as_uri() for run in runs)]
    large = planted_files.write(torn("large"), tmp_path / "large")
    assert fits(read_run(large), Strategy.FINGERPRINTS)
    arguments = [sys.executable, "-c", PROGRAM, *elsewhere, asked, str(large.root), *QUICK, *places]
    variables = {**os.environ, **temporary(tmp_path)}
    done = subprocess.run(
        arguments, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [by_spark(run) for run in judged] == [by_the_reference(run) for run in runs]
    assert [set(by_spark(run)) for run in judged] == [anomalies(name) for name in MIXED]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["code"] == ExitCode.VIOLATION
    assert said["large"] == by_the_reference(large) != {}
    # A failure in workers is logged as a crash, and every record is then read without them.
    assert "crashed" not in done.stderr
    assert [(partition, offset) for partition, offset, _ in said["wire"]] == [(0, offset) for offset in range(END)]
    assert any(digest is not None for *_, digest in said["wire"])
    assert said["segments"] == said["wire"]
