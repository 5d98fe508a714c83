"""Releases as subjects: names, lock files, and the jars that a broker consists of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import fetch
from fixtures.clusters.locks import __main__, lockfile, logging_backend, releases, resolve
from fixtures.clusters.locks.lockfile import LockedJar
from fixtures.clusters.locks.releases import (
    LAST_OF_3,
    Origin,
    Release,
    clients_jar,
    default_release,
    definition_jars,
    fetch_release,
    missing_bytes,
    parse_release,
    supported_releases,
)
from fixtures.downloads import download
from fixtures.downloads.progress import Downloads
from fixtures.errors import (
    DigestMismatchError,
    MalformedReleaseError,
    NetworkError,
    ReleaseTooOldError,
    ResolutionError,
    UnknownReleaseError,
)
from tests.local_server import LocalServer

KAFKA = "org/apache/kafka"
SUPPORTED = [str(release) for release in supported_releases()]


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """An empty Maven repository on 127.0.0.1 that everything is fetched from."""
    monkeypatch.setattr(download, "_BACKOFF_S", 0.001)
    site = LocalServer()
    monkeypatch.setenv("ONCEPROOF_MAVEN_REPOSITORY", f"{site.url}/maven2/")
    with site.running():
        yield site


def put(repository: LocalServer, locks: Path, version: str) -> Release:
    """Have the repository offer a release of two small jars, and lock it."""
    jars = []
    for artifact in ("kafka_2.13", "kafka-clients"):
        path, body = f"{KAFKA}/{artifact}/{version}/{artifact}-{version}.jar", artifact.encode() * 1000
        repository.put(f"/maven2/{path}", body)
        jars.append(LockedJar(path=path, sha256=hashlib.sha256(body).hexdigest(), size_bytes=len(body)))
    (locks / f"{version}.txt").write_text(lockfile.render(tuple(jars), remarks=("two jars",)))
    return Release.parse(version)


@pytest.fixture
def locked(repository: LocalServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Release:
    """The only supported release, of two small jars, which the repository has."""
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(releases, "LOCKS", locks)
    return put(repository, locks, "7.0.1")


def test_releases_are_ordered_as_versions() -> None:
    """3.10.0 is newer than 3.9.2, and a release reads back as it is written."""
    texts = ["3.9.2", "3.10.0", "4.0.0", "10.0.0"]
    assert [str(release) for release in sorted(Release.parse(text) for text in reversed(texts))] == texts


def test_supported_are_the_last_patches_from_3_9_on() -> None:
    """One release per line is supported, 3.9 is the oldest line, and the newest is the default."""
    lines = [(release.major, release.minor) for release in supported_releases()]
    assert len(set(lines)) == len(lines)
    assert lines[0] == (3, 9)
    assert default_release() == max(supported_releases())
    assert {"3.9.2", "4.2.1", "4.3.1"} <= set(SUPPORTED)
    assert all(release.supported for release in supported_releases())
    assert not Release.parse("3.3.0").supported


def test_transaction_version_2_begins_with_4() -> None:
    """KIP-890's second transaction protocol is offered from 4.0 on."""
    assert Release.parse("4.0.0").has_tv2
    assert not Release.parse("3.9.2").has_tv2


@pytest.mark.parametrize("text", ["", "4.3", "4.3.1.2", "v4.3.1", "latest", "4.3.1-rc0", "٤.٣.١"])
def test_malformed_release_is_one_sentence(text: str) -> None:
    """What is not three numbers is refused with an example."""
    with pytest.raises(MalformedReleaseError, match=r"for example 4\.3\.1\.$"):
        parse_release(text)


@pytest.mark.parametrize("text", ["2.8.1", "3.2.3"])
def test_older_release_is_refused(text: str) -> None:
    """Releases before 3.3.0 are refused with the reason and what to choose instead."""
    with pytest.raises(ReleaseTooOldError, match=rf"^Kafka {text} is older than 3\.3\.0, .*3\.9\.2"):
        parse_release(text)
    assert parse_release("3.3.0") == releases.OLDEST


def test_scripts_reach_further_back() -> None:
    """Scripted requests are for releases from 2.4.0 on; what is older still is refused in the same words."""
    assert parse_release("2.8.2", oldest=releases.OLDEST_SCRIPTED).version == "2.8.2"
    with pytest.raises(ReleaseTooOldError, match=r"^Kafka 2\.3\.1 is older than 2\.4\.0"):
        parse_release("2.3.1", oldest=releases.OLDEST_SCRIPTED)


@pytest.mark.parametrize("version", SUPPORTED)
def test_lock_file_is_a_whole_broker(version: str) -> None:
    """Every lock file holds broker, clients, storage, compression codecs, and one logging backend that fits."""
    jars = lockfile.read(releases.LOCKS / f"{version}.txt")
    names = {jar.name for jar in jars}
    kafka = {f"{part}-{version}.jar" for part in ("kafka_2.13", "kafka-clients", "kafka-metadata", "kafka-storage")}
    assert kafka <= names
    for library in ("zstd-jni-", "snappy-java-", "lz4-java-", "scala-library-2.13."):
        assert any(name.startswith(library) for name in names), library
    bridges = [name for name in names if name.startswith(("log4j-slf4j", "slf4j-reload4j"))]
    expected = "slf4j-reload4j-" if version.startswith("3.") else "log4j-slf4j-impl-"
    assert [name.startswith(expected) for name in bridges] == [True]
    assert any(name.startswith(("reload4j-", "log4j-core-")) for name in names)
    assert 40 < len(jars) < 70
    assert 35_000_000 < sum(jar.size_bytes for jar in jars) < 60_000_000


@pytest.mark.parametrize("version", SUPPORTED)
def test_lock_file_names_each_library_once(version: str) -> None:
    """No library is there in two versions, and all of Kafka's own jars are of the release."""
    jars = lockfile.read(releases.LOCKS / f"{version}.txt")
    artifacts = [jar.path.rsplit("/", 2)[0] for jar in jars]
    assert len(set(artifacts)) == len(artifacts)
    assert {jar.path.split("/")[-2] for jar in jars if jar.path.startswith(f"{KAFKA}/")} == {version}


def test_lock_file_reads_back() -> None:
    """What is rendered is parsed to the same jars, in the order of their paths."""
    jars = tuple(LockedJar(path=f"g/{name}/1/{name}-1.jar", sha256="a" * 64, size_bytes=7) for name in "cab")
    text = lockfile.render(jars, remarks=("a remark",))
    assert lockfile.parse(text, name="x") == tuple(sorted(jars, key=lambda jar: jar.path))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# nothing\n", "names no jar"),
        ("abc 7 g/a/1/a-1.jar\n", "line 1"),
        (f"{'a' * 64} 7 ../../a.jar\n", "line 1"),
        (f"{'a' * 64} 7 /etc/a.jar\n", "line 1"),
        (f"{'a' * 64} 7 g/a.jar\n" * 2, "twice"),
    ],
    ids=["empty", "short digest", "upwards", "absolute", "repeated"],
)
def test_malformed_lock_file_is_refused(text: str, complaint: str) -> None:
    """A lock file that is empty, damaged, or points outside the cache is refused by line."""
    with pytest.raises(ValueError, match=complaint):
        lockfile.parse(text, name="lock")


def test_jars_are_fetched_once(repository: LocalServer, locked: Release, tmp_path: Path) -> None:
    """A release is fetched whole and in class-path order; the second start asks for nothing."""
    cache = tmp_path / "cache"
    assert missing_bytes(locked, cache) == 23_000
    files = fetch_release(locked, cache, downloads=Downloads(quiet=True))
    assert files.origin is Origin.LOCKED
    assert [jar.name for jar in files.jars] == ["kafka-clients-7.0.1.jar", "kafka_2.13-7.0.1.jar"]
    assert files.classpath == ":".join(str(jar) for jar in files.jars)
    assert clients_jar(files).read_bytes() == b"kafka-clients" * 1000
    assert files.digests[clients_jar(files).name] == hashlib.sha256(b"kafka-clients" * 1000).hexdigest()
    assert missing_bytes(locked, cache) == 0
    asked = len(repository.asked)
    again = Downloads(quiet=True)
    assert fetch_release(locked, cache, downloads=again) == files
    assert (len(repository.asked), again.items) == (asked, [])


def test_definitions_of_other_releases_are_one_jar_each(
    repository: LocalServer, locked: Release, tmp_path: Path
) -> None:
    """To speak to a release, its own jars and two others' kafka-clients are enough; the newest one comes first."""
    newest, last = (put(repository, tmp_path / "locks", version) for version in ("8.0.0", str(LAST_OF_3)))
    cache, downloads = tmp_path / "cache", Downloads(quiet=True)
    found = definition_jars(fetch_release(locked, cache, downloads=downloads), cache, downloads=downloads)
    clients = [f"kafka-clients-{each}.jar" for each in (newest, last, locked)]
    assert [jar.name for jar in found] == [*clients, f"kafka_2.13-{locked}.jar"]
    assert all(jar.is_file() for jar in found)
    assert sorted(item.name for item in downloads.items) == sorted(jar.name for jar in found)


def test_damaged_jar_is_fetched_again(
    repository: LocalServer, locked: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A jar that changed in the cache is named and replaced, and nothing else is fetched."""
    jar = clients_jar(fetch_release(locked, tmp_path, downloads=Downloads(quiet=True)))
    jar.write_bytes(b"damaged")
    downloads = Downloads()
    fetch_release(locked, tmp_path, downloads=downloads)
    assert [item.name for item in downloads.items] == [jar.name]
    assert jar.read_bytes() == b"kafka-clients" * 1000
    assert f"{jar.name} in the cache is damaged and is fetched again" in capsys.readouterr().err


def test_jar_that_stays_wrong_is_refused(repository: LocalServer, locked: Release, tmp_path: Path) -> None:
    """When the repository's jar is not the locked one, file and both digests are named."""
    path = f"/maven2/{KAFKA}/kafka-clients/7.0.1/kafka-clients-7.0.1.jar"
    promised = hashlib.sha256(repository.pages[path].body).hexdigest()
    repository.pages[path].body = b"other"
    with pytest.raises(DigestMismatchError) as refused:
        fetch_release(locked, tmp_path, downloads=Downloads(quiet=True))
    for part in ("kafka-clients-7.0.1.jar", promised, hashlib.sha256(b"other").hexdigest()):
        assert part in str(refused.value)


def test_unknown_release_names_the_supported(
    repository: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that the repository does not have is one sentence that names the supported ones."""
    with pytest.raises(UnknownReleaseError, match=r"^Kafka 9\.9\.9 is not a release .*Supported are 3\.9\.2, "):
        fetch_release(Release.parse("9.9.9"), tmp_path, downloads=Downloads(quiet=True))


def test_no_network_and_nothing_cached_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the sentence says what could not be fetched, from where, and what to do."""
    monkeypatch.setattr(download, "_BACKOFF_S", 0.001)
    monkeypatch.setenv("ONCEPROOF_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven2")
    for release in (default_release(), Release.parse("3.7.0")):
        with pytest.raises(NetworkError, match=r"http://127\.0\.0\.1:9/maven2/.*refused.*tox -e fetch"):
            fetch_release(release, tmp_path, downloads=Downloads(quiet=True))


@pytest.mark.parametrize(
    ("version", "tree", "added"),
    [
        ("3.9.2", {"slf4j-api-1.7.36.jar"}, ["slf4j-reload4j-1.7.36.jar", "reload4j-1.2.26.jar"]),
        ("2.8.2", {"slf4j-api-1.7.30.jar"}, ["slf4j-reload4j-1.7.36.jar", "reload4j-1.2.26.jar"]),
        (
            "4.0.2",
            {"slf4j-api-1.7.36.jar"},
            ["log4j-slf4j-impl-2.25.4.jar", "log4j-api-2.25.4.jar", "log4j-core-2.25.4.jar"],
        ),
        ("4.1.0", {"slf4j-api-1.7.36.jar", "log4j-core-2.24.3.jar"}, ["log4j-slf4j-impl-2.24.3.jar"]),
        ("5.0.0", {"slf4j-api-2.0.17.jar", "log4j-core-3.0.0.jar"}, ["log4j-slf4j2-impl-3.0.0.jar"]),
    ],
)
def test_logging_backend_fits_the_tree(version: str, tree: set[str], added: list[str]) -> None:
    """The bridge follows the SLF4J interface and the Log4j core that a release ships."""
    assert [path.rpartition("/")[2] for path in logging_backend.missing_paths(tree, version=version)] == added


def test_tree_without_slf4j_has_no_backend() -> None:
    """A tree that logs through something else is refused, not left silent."""
    with pytest.raises(ResolutionError, match="no SLF4J"):
        logging_backend.missing_paths({"kafka_2.13-9.0.0.jar"}, version="9.0.0")


def _publish(repository: LocalServer, artifact: str, *, group: str, version: str, needs: str = "") -> None:
    """Put a POM and a small jar into the repository."""
    path = f"/maven2/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
    repository.put(f"{path}.jar", f"{artifact}-{version}".encode())
    repository.put(
        f"{path}.pom",
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><dependencies>{needs}</dependencies></project>".encode(),
    )


def _need(artifact: str, *, group: str, version: str, scope: str) -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<scope>{scope}</scope></dependency>"
    )


@pytest.fixture
def unlocked(repository: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release without a lock file: a small tree in the repository, one artifact of which was never published."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    group, version = "org.apache.kafka", "3.5.9"
    needs = _need("kafka-clients", group=group, version=version, scope="compile")
    needs += _need("slf4j-api", group="org.slf4j", version="1.7.36", scope="runtime")
    needs += _need("kafka-tools-api", group=group, version=version, scope="runtime")
    needs += _need("junit", group="junit", version="1", scope="test")
    _publish(repository, "kafka_2.13", group=group, version=version, needs=needs)
    _publish(repository, "kafka-clients", group=group, version=version)
    _publish(repository, "slf4j-api", group="org.slf4j", version="1.7.36")
    _publish(repository, "slf4j-reload4j", group="org.slf4j", version="1.7.36")
    _publish(repository, "reload4j", group="ch.qos.reload4j", version="1.2.26")
    return Release.parse(version)


@pytest.mark.spark
def test_other_release_is_resolved_once(repository: LocalServer, unlocked: Release, tmp_path: Path) -> None:
    """A release without a lock file is resolved by Ivy, gets a logging backend, and is remembered by digest."""
    assert missing_bytes(unlocked, tmp_path) is None
    downloads = Downloads(quiet=True)
    files = fetch_release(unlocked, tmp_path, downloads=downloads)
    names = ["reload4j-1.2.26", "kafka-clients-3.5.9", "kafka_2.13-3.5.9", "slf4j-api-1.7.36", "slf4j-reload4j-1.7.36"]
    assert [jar.name for jar in files.jars] == [f"{name}.jar" for name in names]
    assert [jar.read_text() for jar in files.jars] == names
    assert files.origin is Origin.RESOLVED
    assert sorted(item.name for item in downloads.items) == sorted(jar.name for jar in files.jars)
    remarks = (tmp_path / "resolved" / "3.5.9.txt").read_text().splitlines()
    assert "# without org.apache.kafka:kafka-tools-api:3.5.9, which the repository does not have" in remarks
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".scratch")] == []
    asked = len(repository.asked)
    assert fetch_release(unlocked, tmp_path, downloads=Downloads(quiet=True)) == files
    assert len(repository.asked) == asked


def test_what_two_releases_share_is_left_as_it_is(tmp_path: Path) -> None:
    """A jar that is in the cache keeps its file, because class archives depend on its time; a damaged one is replaced."""
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    for name, kept in (("shared.jar", "whole"), ("damaged.jar", "half"), ("new.jar", None)):
        for place, text in ((tree, "whole"), (cache, kept)):
            place.mkdir(exist_ok=True)
            if text is not None:
                (place / name).write_text(text)
                os.utime(place / name, (1_700_000_000, 1_700_000_000 if place is cache else 1_800_000_000))
    resolve._move(resolve._inventory(tree), tree, cache)
    assert {path.name: path.read_text() for path in cache.iterdir()} == dict.fromkeys(
        ("shared.jar", "damaged.jar", "new.jar"), "whole"
    )
    replaced = {path.name for path in cache.iterdir() if path.stat().st_mtime == 1_800_000_000}
    assert replaced == {"damaged.jar", "new.jar"}


@pytest.mark.spark
def test_altered_jar_is_not_resolved(
    repository: LocalServer, unlocked: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jar that differs from the repository's own digest fails the resolving, and nothing is remembered."""
    monkeypatch.setattr(resolve, "find_maven", lambda: None)
    repository.pages[f"/maven2/{KAFKA}/kafka-clients/3.5.9/kafka-clients-3.5.9.jar"].body = b"altered"
    with pytest.raises(ResolutionError, match=r"could not be determined from http://127.*Ivy failed.*Maven is not"):
        fetch_release(unlocked, tmp_path, downloads=Downloads(quiet=True))
    assert missing_bytes(unlocked, tmp_path) is None


@pytest.mark.spark
def test_lock_command_adds_a_release(
    repository: LocalServer, unlocked: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command writes the lock file that makes a release supported; an unknown release exits with usage."""
    monkeypatch.setattr(__main__, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(releases, "LOCKS", tmp_path / "locks")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert __main__.main(["3.5.9"]) == 0
    assert supported_releases() == (unlocked,)
    assert __main__.main(["3.5.8"]) == 4


def test_fetch_command_refuses_before_fetching(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m fixtures.fetch` ends with usage on a release that cannot be a subject."""
    assert fetch.main(["--kafka", "2.3.1"]) == 4
    assert capsys.readouterr().err.startswith(
        "Kafka 2.3.1 is older than 2.4.0, the oldest release that can be a subject."
    )
