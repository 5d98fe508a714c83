"""Builds of your own, whole: a class that was replaced is detected, the report names the build, and bad requests end early.

The defective build is Kafka 4.3.1 with one class of the broker compiled anew: it recognises no repeated batch.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fixtures.clusters.locks.own_build import read_build
from fixtures.clusters.locks.releases import Release, fetch_release
from fixtures.downloads.cache import cache_dir
from fixtures.pipelines.java_compiler import compiled
from fixtures.tools.java import find_java
from tests.fixtures.clusters.test_own_build import CLIENTS, build
from tests.support.whole_commands import Command, Ended, python

RELEASE = "4.3.1"
CASE = "idempotence-the-last-five-batches-are-recognised"
#: A run of one case takes half a minute on two quiet cores, and a machine that is busy with clusters several times that.
CASE_WITHIN_S = 600.0
BISECTED_WITHIN_S = 1_800.0
#: A broker that recognises no repeated batch: it takes every one for a batch that begins at sequence -1.
FORGETFUL = """package org.apache.kafka.storage.internals.log;

public record BatchMetadata(int lastSeq, long lastOffset, int offsetDelta, long timestamp) {
    public int firstSeq() {
        return -1;
    }

    public long firstOffset() {
        return lastOffset - offsetDelta;
    }
}
"""
FORGETFUL_CLASS = "org/apache/kafka/storage/internals/log/BatchMetadata.class"


def copied(release: str, directory: Path) -> Path:
    """A directory with copies of a release's jars."""
    directory.mkdir(parents=True)
    for jar in fetch_release(Release.parse(release)).jars:
        shutil.copy2(jar, directory)
    return directory


def with_class(build: Path, name: str, source: str) -> Path:
    """Replace a class of a build by one that is compiled from `source`; the build."""
    written = build.parent / f"source-of-{build.name}" / f"{Path(name).stem}.java"
    written.parent.mkdir()
    written.write_text(source, encoding="utf-8")
    with zipfile.ZipFile(compiled(written, (), find_java())) as classes:
        body = classes.read(name)
    (jar,) = (each for each in build.glob("*.jar") if name in zipfile.ZipFile(each).namelist())
    parts = {}
    with zipfile.ZipFile(jar) as opened:
        parts = {each: opened.read(each) for each in opened.namelist()}
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as changed:
        for each, content in (parts | {name: body}).items():
            changed.writestr(each, content)
    return build


def run(place: Path, *arguments: str, within_s: float = CASE_WITHIN_S, **variables: str) -> Ended:
    """A whole command to its end."""
    place.mkdir(parents=True, exist_ok=True)
    command = Command(place, python(*arguments), {"XDG_CACHE_HOME": str(cache_dir().parent), **variables})
    try:
        return command.end(within_s=within_s)
    finally:
        command.close()


def protocol(place: Path, directory: Path, *options: str) -> Ended:
    """The protocol case on a build; the run is `run` below the place."""
    chosen = ("--kafka-libs", str(directory), "-k", "last_five", "--run-dir", str(place / "run"))
    return run(place, "pytest", "suites/protocol", "-p", "no:hypothesispytest", *chosen, *options)


def results(place: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((place / "run" / "results.json").read_text(encoding="utf-8"))
    return body


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unchanged copy of a release."""
    return copied(RELEASE, tmp_path_factory.mktemp("builds") / "clean")


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with one class replaced."""
    return with_class(copied(RELEASE, tmp_path_factory.mktemp("builds") / "forgetful"), FORGETFUL_CLASS, FORGETFUL)


@pytest.mark.cluster
def test_a_build_with_one_class_replaced_is_detected_by_name(tmp_path: Path, forgetful: Path) -> None:
    """The case fails without the name of a known bug, so the run is NO-GO; every face of the report names the build."""
    name = str(read_build(forgetful).release)
    ended = protocol(tmp_path, forgetful)
    assert ended.code == 1, ended.output
    body = results(tmp_path)
    (case,) = body["cases"]
    assert (case["id"], case["verdict"], body["decision"]) == (CASE, "FAIL", "NO-GO")
    assert not [each for each in case["known"] if each["named"]]
    assert body["subject"]["release"] == name
    commit = body["subject"]["own_build"]["commit"]
    assert (body["subject"]["own_build"]["version"], len(commit)) == (RELEASE, 16)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (record["release"], record["versions"]["kafka commit"]) == (name, commit)
    assert f"--kafka-libs {forgetful}" in record["command"]
    for face in ("report.html", "summary.md"):
        text = (tmp_path / "run" / face).read_text(encoding="utf-8").replace("\\", "").replace("`", "")
        assert f"Kafka {name} is a build of your own and no release" in text, face
        assert commit in text
    assert f"Kafka {name} is a build of your own and no release (version {RELEASE}, commit {commit})" in ended.output


@pytest.mark.cluster
@pytest.mark.deep
def test_an_unchanged_copy_passes(tmp_path: Path, clean: Path) -> None:
    """The same case passes, also without a class archive; the copy still has a name of its own."""
    ended = protocol(tmp_path, clean, "--no-class-archive")
    body = results(tmp_path)
    assert [(each["id"], each["verdict"]) for each in body["cases"]] == [(CASE, "PASS")], ended.output
    assert body["subject"]["release"].startswith(f"{RELEASE}+own.")


@pytest.mark.cluster
@pytest.mark.parametrize("options", [(), pytest.param(("--no-class-archive",), marks=pytest.mark.deep)])
def test_a_build_that_does_not_start_is_one_sentence_with_its_log(
    tmp_path: Path, clean: Path, options: tuple[str, ...]
) -> None:
    """Nothing is tried on it: the sentence names the build, the log tail the class that is missing."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for jar in clean.glob("*.jar"):
        if not jar.name.startswith("kafka-metadata-"):
            (broken / jar.name).symlink_to(jar)
    ended = protocol(tmp_path, broken, *options)
    sentence = r"Nothing was started .*Kafka 4\.3\.1\+own\.[0-9a-f]{8}, a build of your own, does not start\. "
    ended.refused(sentence, code=5)
    assert "org/apache/kafka/metadata" in ended.output
    assert results(tmp_path)["decision"] == "UNDECIDED"


@pytest.mark.cluster
@pytest.mark.deep
def test_a_bisection_over_releases_and_builds_finds_the_first_bad_one(
    tmp_path: Path, clean: Path, forgetful: Path
) -> None:
    """Two releases and two builds; the second call makes no run, because the ledger has them all."""
    bad = str(read_build(forgetful).release)
    ends = ("--good", "4.2.1", "--bad", str(forgetful), "--builds", RELEASE, str(clean))
    request = ("runner.bisect", *ends, "--case", CASE, "--confidence", "0.6", "--out", str(tmp_path / "out"))
    ended = run(tmp_path / "first", *request, within_s=BISECTED_WITHIN_S)
    assert ended.code == 0, ended.output
    assert f"The first bad build is {bad}. Ledger: " in ended.output
    ledger = json.loads((tmp_path / "out" / "bisect.json").read_text(encoding="utf-8"))
    found = [(each["verdict"], each["repeats"], each["failures"]) for each in ledger["builds"]]
    assert found == [("good", 1, 0), ("good", 1, 0), ("good", 1, 0), ("bad", 3, 3)]
    assert f"| {bad} ({forgetful}, commit " in (tmp_path / "out" / "bisect.md").read_text(encoding="utf-8")
    again = run(tmp_path / "again", *request)
    assert again.code == 0
    assert ": run " not in again.output
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 6


def missing(place: Path) -> tuple[Path, tuple[str, ...]]:
    return place / "none", ()


def without_clients(place: Path) -> tuple[Path, tuple[str, ...]]:
    directory = build(place / "build")
    (directory / "kafka-clients-4.5.0-SNAPSHOT.jar").unlink()
    return directory, ()


def twice(place: Path) -> tuple[Path, tuple[str, ...]]:
    with zipfile.ZipFile(build(place / "build") / "kafka-clients-4.4.0.jar", "w") as jar:
        jar.writestr(CLIENTS, "")
    return place / "build", ()


def damaged(place: Path) -> tuple[Path, tuple[str, ...]]:
    (build(place / "build") / "lz4.jar").write_bytes(b"PK, but not for long")
    return place / "build", ()


def and_a_release(place: Path) -> tuple[Path, tuple[str, ...]]:
    return build(place / "build"), ("--kafka", "4.3.1")


def in_containers(place: Path) -> tuple[Path, tuple[str, ...]]:
    return build(place / "build"), ("--runtime", "docker")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (missing, r"ERROR: .*/none is no directory\. Name a distribution"),
        (without_clients, r"ERROR: .*/build has no kafka-clients jar: none of its 1 jars"),
        (twice, r"ERROR: .*/build has the kafka-clients jar 2 times: kafka-clients-4\.4\.0\.jar and "),
        (damaged, r"ERROR: .*/lz4\.jar is no jar: it cannot be read as a zip file"),
        (and_a_release, r"ERROR: --kafka-libs and --kafka both name the release under test"),
        (in_containers, r"ERROR: --kafka-libs needs --runtime local"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_build_that_cannot_be_tried_is_refused_before_anything_starts(  # type: ignore[no-untyped-def]
    make, sentence: str, tmp_path: Path
) -> None:
    """One sentence each, exit code 4, and no run directory."""
    directory, options = make(tmp_path)
    ended = protocol(tmp_path, directory, *options)
    ended.refused(sentence, code=4)
    assert not (tmp_path / "run").exists()


def test_a_build_is_the_target_of_an_upgrade(tmp_path: Path) -> None:
    """Its plan rolls every node to the build; `--to` in addition is refused."""
    directory = build(tmp_path / "build")
    name = str(read_build(directory).release)
    request = ("pytest", "suites/upgrades", "--from", "4.3.1", "--kafka-libs", str(directory), "--plan")
    planned = run(tmp_path / "plan", *request)
    assert planned.code == 0, planned.output
    assert f"upgrade of Kafka 4.3.1 → {name}, runtime local" in planned.output
    assert f"roll of the next node to {name}" in planned.output
    refused = run(tmp_path / "twice", *request, "--to", "4.4.0")
    refused.refused(r"ERROR: --kafka-libs and --to both name the release under test", code=4)
