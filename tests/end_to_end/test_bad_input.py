"""Whole commands with a bad request, or on a machine that lacks something.

Each ends in the same way: one sentence names the problem and the remedy, and the exit code is 4 for usage and 5 for the
environment. There is no stack trace, nothing is left running, and the evidence so far is kept. The checks themselves
are tested elsewhere; these tests are about the output.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.routes import Endpoint
from fixtures.clusters.locks import lockfile
from fixtures.clusters.locks.releases import LOCKS, default_release, fetch_release
from fixtures.clusters.network import ports
from fixtures.downloads.cache import cache_dir
from fixtures.tools.java import find_java
from fixtures.tools.toxiproxy_build import fetch_toxiproxy
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run
from tests.support.servers.local_server import LocalServer
from tests.support.whole_commands import BARE, NOWHERE, WITHIN_S, Command, Ended, conformance, python

Run = Callable[..., Ended]
LOCAL = ("--runtime", "local")
#: A download from an address that refuses is tried four times; the pauses between the tries are tested elsewhere.
WITHOUT_PAUSES = "import fixtures.downloads.download\nfixtures.downloads.download._BACKOFF_S = 0.0"
#: Removes capabilities 1 and 2, with which the superuser reads and writes files of any mode.
UNPRIVILEGED = """import ctypes, os, sys
if os.geteuid() == 0:
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a command to its end, with an empty cache and no network unless `variables` say otherwise."""
    started: list[Command] = []

    def start(*arguments: str, **variables: str) -> Ended:
        place = tmp_path / f"command-{len(started)}"
        place.mkdir()
        bare = BARE | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        started.append(Command(place, arguments, bare | variables))
        return started[-1].end(within_s=WITHIN_S)

    yield start
    for each in started:
        each.close()


def kept(place: Path) -> dict[str, object]:
    """The report of a run that could not start: ERROR, UNDECIDED, exit code 5, not interrupted."""
    results: dict[str, object] = json.loads((place / "run" / "results.json").read_text(encoding="utf-8"))
    facts = [results[name] for name in ("verdict", "decision", "exit_code", "interrupted")]
    assert facts == ["ERROR", "UNDECIDED", 5, False]
    return results


# -- the request -------------------------------------------------------------------------------------------------------


def test_an_unknown_release_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    """A release that the repository does not have: the supported ones are named, and no directory is left."""
    with (repository := LocalServer()).running():
        ended = run(*conformance(tmp_path, "--kafka", "9.9.9", *LOCAL), ONCEPROOF_MAVEN_REPOSITORY=repository.url)
    ended.refused(r"ERROR: Kafka 9\.9\.9 is not a release that .* has\. Supported are 3\.9\.2, ", code=4)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("source", "target"), [("4.1.2", "9.9.9"), ("3.99.0", "4.3.1")])
def test_an_upgrade_with_an_unknown_release_is_a_usage_error(
    run: Run, tmp_path: Path, source: str, target: str
) -> None:
    """Whichever of both it is: nothing is fetched of the other one, and no directory is left."""
    options = ("--from", source, "--to", target, "--run-dir", str(tmp_path / "run"))
    with (repository := LocalServer()).running():
        ended = run(*python("pytest", "suites/upgrades", *options), ONCEPROOF_MAVEN_REPOSITORY=repository.url)
    ended.refused(r"ERROR: Kafka (9\.9\.9|3\.99\.0) is not a release that .* has\. Supported are 3\.9\.2, ", code=4)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["verification", "reports", "fixtures.fetch"])
def test_a_mistyped_option_is_a_usage_error(run: Run, command: str) -> None:
    """Argparse's own exit code is 2, which means inconclusive."""
    run(*python(command, "--nonsense", "x")).refused(rf"^python -m {command}: .*--nonsense", code=4)


@pytest.mark.parametrize("command", [("verification",), ("verification", "--reference"), ("reports",)])
def test_a_foreign_directory_is_a_usage_error(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A directory that is not ours is named, and nothing is written into it."""
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("Dear Sir", encoding="utf-8")
    ended = run(*python(*command, str(tmp_path / "foreign")))
    ended.refused(rf"{tmp_path}/foreign is (neither a run's directory|not a run directory)", code=4)
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("command", [("verification", "--reference"), ("reports",)])
def test_a_truncated_directory_is_an_environment_error(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A history that was cut is named in a line, and the violation that other evidence proves stays proven."""
    directory = make_run(tmp_path / "run", (SMOKE,))
    history = directory / "runs" / SMOKE.key / "history.jsonl"
    text = history.read_bytes()
    history.write_bytes(text[: len(text) // 2])
    ended = run(*python(*command, str(directory)))
    assert "history.jsonl" in ended.output
    assert "Traceback" not in ended.output
    assert ended.code == 5, ended.output
    ended.left_nothing()
    assert history.read_bytes() == text[: len(text) // 2]
    if command == ("reports",):
        proven = make_run(tmp_path / "proven", (SMOKE, FAILED))
        (proven / "runs" / SMOKE.key / "history.jsonl").write_bytes(text[: len(text) // 2])
        assert run(*python(*command, str(proven))).code == 1


@pytest.mark.spark
def test_spark_is_not_asked_to_judge_what_is_cut(run: Run, tmp_path: Path) -> None:
    """The judge's verdict on a truncated scenario is ERROR; it names the file, and the evidence stays as it is."""
    directory = make_run(tmp_path / "run", (SMOKE,))
    history = directory / "runs" / SMOKE.key / "history.jsonl"
    history.write_text("", encoding="utf-8")
    ended = run(*python("verification", str(directory)))
    ended.refused(r"^ERROR .*history\.jsonl", code=5)


# -- the network and the cache -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", [(), ("--kafka", "3.7.0")], ids=["locked", "resolved"])
def test_no_network_and_nothing_cached(run: Run, tmp_path: Path, release: tuple[str, ...]) -> None:
    """The missing file is named with the reason and two remedies, and the run leaves its report."""
    ended = run(*conformance(tmp_path, *release, *LOCAL, patch=WITHOUT_PAUSES))
    ended.refused(rf"Nothing was started .*{NOWHERE}/.* could not be fetched .*refused\. .*tox -e fetch", code=5)
    assert "Connection refused" in str(kept(tmp_path)["scenarios"])
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_closed_proxy_is_named_as_no_network(run: Run, tmp_path: Path) -> None:
    """With a proxy that does not answer the sentence names the proxy's settings."""
    ended = run(
        *python("fixtures.fetch", patch=WITHOUT_PAUSES),
        ONCEPROOF_MAVEN_REPOSITORY="http://repository.invalid",
        HTTP_PROXY=NOWHERE,
        http_proxy=NOWHERE,
        NO_PROXY="",
        no_proxy="",
    )
    ended.refused(r"could not be fetched in 4 attempts: .*refused\. .*HTTPS_PROXY", code=5)


def corrupt(cache: Path) -> str:
    """Put a damaged jar of the default release into a cache; its path below the repository."""
    jar = lockfile.read(LOCKS / f"{default_release()}.txt")[0]
    target = cache / "onceproof" / "maven" / jar.path
    target.parent.mkdir(parents=True)
    target.write_bytes(b"PK, but not for long")
    return jar.path


def test_a_corrupt_jar_without_a_network(run: Run, tmp_path: Path) -> None:
    """The damaged jar is named, is not used, and stays out of the way of a later start."""
    name = corrupt(tmp_path / "cache").rpartition("/")[2]
    ended = run(*conformance(tmp_path, *LOCAL, patch=WITHOUT_PAUSES))
    ended.refused(rf"Nothing was started .*/{name} could not be fetched .*tox -e fetch", code=5)
    assert f"{name} in the cache is damaged and is fetched again" in ended.output
    kept(tmp_path)


def test_a_jar_that_stays_corrupt(run: Run, tmp_path: Path) -> None:
    """A repository that alters files: both digests are named, and nothing of the file is kept."""
    path = corrupt(tmp_path / "cache")
    repository = LocalServer()
    repository.put(f"/{path}", b"something else")
    with repository.running():
        ended = run(*conformance(tmp_path, *LOCAL), ONCEPROOF_MAVEN_REPOSITORY=repository.url)
    ended.refused(r"Nothing was started .* has sha256 \w+ instead of \w+, also after .*may be altering files", code=5)
    assert repository.times_asked(f"/{path}") == 2
    assert not list((tmp_path / "cache").rglob("*.part"))


# -- the machine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stand_in", "sentence"),
    [
        (
            "available_memory_bytes = lambda: 2_500_000_000",
            r"2\.5 GB of memory are available, 3\.0 GB are needed .*Close",
        ),
        ("free_disk_bytes = lambda _: 1_900_000_000", r"1\.9 GB are free for .*cache.*, 2\.0 GB are needed.*XDG_CACHE"),
        (
            "free_disk_bytes = lambda path: 1_900_000_000 if path.name == 'run' else 9_000_000_000",
            r"1\.9 GB are free for .*/run, 2\.0 GB are needed.*--run-dir",
        ),
    ],
    ids=["memory", "disk of the cache", "disk of the evidence"],
)
def test_too_small_a_machine(run: Run, tmp_path: Path, stand_in: str, sentence: str) -> None:
    """Too little memory or disk is reported before anything is fetched; only the figures of the machine are made up."""
    ended = run(*conformance(tmp_path, *LOCAL, patch=f"import fixtures.machine\nfixtures.machine.{stand_in}"))
    ended.refused(rf"Nothing was started .*{sentence}", code=5)
    assert not (tmp_path / "cache").exists()
    kept(tmp_path)


def test_a_directory_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    """When no evidence can be written nothing is begun, and the sentence names the remedy."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o500)
    ended = run(sys.executable, "-c", UNPRIVILEGED, *conformance(tmp_path / "run", *LOCAL))
    ended.refused(r"There is no report: .*/run/run cannot be written: Permission denied\. .*--run-dir", code=5)


def test_no_java_that_spark_accepts(run: Run, tmp_path: Path) -> None:
    """A Java that is too old is not used; when none can be fetched, the sentence names the package to install."""
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'java.specification.version = 11' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    ended = run(*conformance(tmp_path, *LOCAL), JAVA_HOME=str(tmp_path / "jvm"), PATH="/nonexistent")
    ended.refused(r"Nothing was started .*Java runtime .* could not be fetched by pip: .*install .* yourself", code=5)
    assert "Java: none from 17 to 25 found" in ended.output
    kept(tmp_path)


# -- Docker ------------------------------------------------------------------------------------------------------------


def test_a_strict_run_keeps_its_rule(run: Run, tmp_path: Path) -> None:
    """`--strict` is in the record of the run, so a report that is rendered again is decided by it; so is the headline."""
    ended = run(*conformance(tmp_path, "--strict", "--runtime", "docker"), DOCKER_HOST=f"unix://{tmp_path}/no.sock")
    ended.refused(r"Nothing was started ", code=5)
    assert kept(tmp_path)["strict"] is True
    again = run(*python("reports", str(tmp_path / "run")))
    assert "UNDECIDED (--strict)" in again.output


def test_docker_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """The engine that `--runtime docker` needs is looked for before anything is fetched."""
    ended = run(*conformance(tmp_path, "--runtime", "docker"), DOCKER_HOST=f"unix://{tmp_path}/no.sock")
    ended.refused(r"Nothing was started .*there is no .*/no\.sock\. Start Docker, or .*--runtime local", code=5)
    assert not (tmp_path / "cache").exists()
    kept(tmp_path)


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[Path]:
    """A socket that accepts connections and never answers."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(8)
        yield path


def test_docker_that_does_not_answer(run: Run, tmp_path: Path, silent_engine: Path) -> None:
    """The connection has a deadline (ten seconds; one in this test), and the sentence names another runtime."""
    sooner = "from fixtures.clusters.docker.engine import Engine\nEngine.connect.__func__.__defaults__ = (1.0,)"
    command = conformance(tmp_path, "--runtime", "docker", patch=sooner)
    ended = run(*command, DOCKER_HOST=f"unix://{silent_engine}")
    ended.refused(r"Nothing was started .*does not answer within 1 s: .*--runtime local", code=5)
    kept(tmp_path)


def test_docker_without_permission(run: Run, tmp_path: Path, silent_engine: Path) -> None:
    """A missing permission is not reported as a missing engine, and the sentence names the group that has it."""
    silent_engine.chmod(0)
    command = conformance(tmp_path, "--runtime", "docker")
    ended = run(sys.executable, "-c", UNPRIVILEGED, *command, DOCKER_HOST=f"unix://{silent_engine}")
    ended.refused(r"Nothing was started .*may not talk to the Docker engine at .*Add the user to the group", code=5)
    kept(tmp_path)


# -- the cluster and its clients ---------------------------------------------------------------------------------------

#: Of a run's drivers one dies and another writes garbage, six seconds after they were started: the first two to create a
#: file.
STRAYING_DRIVERS = """import dataclasses, sys, fixtures.clients.registry as registry
kind = registry.CLIENTS["confluent"]
program = (sys.executable, "-c", {program!r})
registry.CLIENTS["confluent"] = dataclasses.replace(kind, command=lambda release: program)"""
PROGRAM = """import os, runpy, threading
events = os.dup(1)
def first(what):
    try:
        os.close(os.open({place!r} + what, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
def stray():
    if first("death"):
        os.write(2, b"this library is out of order\\n")
        os._exit(3)
    if first("garbage"):
        os.write(events, b"Segmentation what?\\n")
threading.Timer(6, stray).start()
runpy.run_module("fixtures.clients.confluent.driver", run_name="__main__")
os._exit(0)"""


@pytest.fixture(scope="module")
def equipped() -> Path:
    """XDG_CACHE_HOME of a cache that has everything, for runs that reach their cluster."""
    find_java()
    fetch_release(default_release())
    fetch_toxiproxy()
    return cache_dir().parent


def of_scenario(place: Path) -> str:
    """The reason in the report why the scenario is an ERROR."""
    (scenario,) = kept(place)["scenarios"]  # type: ignore[misc]
    assert isinstance(scenario, dict)
    return str(scenario["reason"])


@pytest.mark.cluster
@pytest.mark.deep
def test_every_port_in_use(run: Run, tmp_path: Path, equipped: Path) -> None:
    """Blocks of ports that are in use are skipped; when there is no other, the sentence names the port."""

    def at(offset: int) -> Callable[[int], Endpoint]:
        return lambda base: Endpoint(host="127.0.0.1", port=base + offset)

    with contextlib.closing(ports.claim_block(at(99), lambda base: [at(90)(base)])) as taken:
        # The run may use no other block than the one that is in use.
        patch = "import fixtures.clusters.network.ports as ports\n" + (
            f"ports._LOWEST, ports._ceiling = {taken.base}, lambda: {taken.base} + 2 * ports.PORTS_PER_BLOCK"
        )
        ended = run(*conformance(tmp_path, *LOCAL, patch=patch), XDG_CACHE_HOME=str(equipped))
    sentence = (
        r"^ERROR .*: set up: None of .* is free; .*:\d+: Address already in use\. Are other clusters left running"
    )
    ended.refused(sentence, code=5)
    assert "Address already in use" in of_scenario(tmp_path)


@pytest.mark.cluster
def test_a_broker_that_does_not_start(run: Run, tmp_path: Path, equipped: Path) -> None:
    """The message ends with the broker's last log line, its log is kept, and no process of the cluster is left."""
    real = find_java().executable
    # Class archives for this Java stay out of the real cache.
    (tmp_path / "cache" / "onceproof").mkdir(parents=True)
    for name in ("maven", "toxiproxy"):
        (tmp_path / "cache" / "onceproof" / name).symlink_to(equipped / "onceproof" / name)
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    # The Java of the machine, except that it cannot run a broker.
    java.write_text(
        f"""#!/bin/sh
case " $* " in *" kafka.Kafka "*) echo "Could not reserve enough space for the object heap"; exit 1;; esac
if [ "$1" = -XshowSettings:properties ]; then {real} "$@" 2>&1 | sed "s#java.home = .*#java.home = {tmp_path}/jvm#"
else exec {real} "$@"; fi
""",
        encoding="utf-8",
    )
    java.chmod(0o755)
    ended = run(*conformance(tmp_path, *LOCAL), JAVA_HOME=str(tmp_path / "jvm"))
    ended.refused(r"^ERROR .*: set up: Broker \d ended with status 1 while the cluster was starting\.", code=5)
    said = of_scenario(tmp_path)
    assert "Could not reserve enough space for the object heap" in said
    # The others are ended when one has ended, perhaps before they have logged anything.
    first = re.search(r"Broker (\d) ended", said)
    assert first is not None
    (log,) = (tmp_path / "run" / "clusters").glob(f"**/brokers/broker-{first[1]}.log")
    assert "Could not reserve" in log.read_text(encoding="utf-8")


@pytest.mark.cluster
@pytest.mark.deep
def test_drivers_that_die_or_speak_garbage(run: Run, tmp_path: Path, equipped: Path) -> None:
    """The scenario is an ERROR that quotes both drivers, also when their successors work; the evidence is kept."""
    patch = STRAYING_DRIVERS.format(program=PROGRAM.format(place=f"{tmp_path}/"))
    ended = run(*conformance(tmp_path, *LOCAL, patch=patch), XDG_CACHE_HOME=str(equipped))
    ended.refused(r"^ERROR .*: drain: The workload's own processes failed: ", code=5)
    reason = of_scenario(tmp_path)
    assert re.search(r"ended with exit code 3\. Its last lines:\n(?:.*\n)*this library is out of order", reason)
    assert re.search(r"wrote a line that is not an event: 'Segmentation what\?'", reason)
    (history,) = (tmp_path / "run" / "runs").glob("*/history.jsonl")
    assert '"footer"' in history.read_text(encoding="utf-8").splitlines()[-1]
