"""Protocol cases on a broker of another make, which the run starts: librdkafka's mock, and programs that are none."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.clusters.given.connection import ClusterConnection
from fixtures.clusters.given.program import BrokerProgram
from fixtures.clusters.given.runtime import GivenRuntime
from fixtures.clusters.locks.releases import fetch_release, parse_release
from fixtures.clusters.pool import ClusterPool
from fixtures.downloads.cache import cache_dir
from fixtures.tools.go_program import built
from runner.protocol.implementations import KFAKE
from runner.protocol.toolkit.case import Needs
from tests.chaos.test_links import free_endpoint
from tests.support.paths import ROOT
from tests.support.real_cluster import RELEASE
from tests.support.whole_commands import BARE, Command, python

pytestmark = pytest.mark.cluster

ADVERTISED = "error-codes-advertised-versions-are-those-of-the-release"
MOCK = f"{sys.executable} -m fixtures.clients.mock_broker {{port}}"
#: A minute on a loaded machine.
ENDS_WITHIN_S = 120.0


@pytest.fixture
def protocol(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts `tox -e protocol` on a broker; it ends with the test."""
    commands: list[Command] = []

    def start(broker: str, *more: str, variables: dict[str, str] | None = None) -> Command:
        run = ("--broker-command", broker, "--kafka", RELEASE, "--run-dir", str(tmp_path / "run"))
        commands.append(Command(tmp_path, python("pytest", "suites/protocol", *run, *more), variables or {}))
        return commands[-1]

    yield start
    for each in commands:
        each.close()


def test_a_broker_of_another_make_passes_fails_and_lacks(protocol: Callable[..., Command], tmp_path: Path) -> None:
    """A request that it does not offer is no failure; a wrong answer is one, with request and answer in the evidence."""
    cases = (
        *("half_of_an_identity", "the_next_batch_is_appended", "list_transactions_by_pattern", "a_gap_is_refused"),
        "advertised_versions",
    )
    ended = protocol(MOCK, "-k", " or ".join(cases)).end(within_s=ENDS_WITHIN_S)
    assert ended.code == 1, ended.output
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {each["id"]: each for each in results["cases"]}
    assert {name: each["verdict"] for name, each in found.items()} == {
        "administration-list-transactions-by-pattern": "NOT_APPLICABLE",
        "idempotence-half-of-an-identity-is-malformed": "FAIL",
        "idempotence-the-next-batch-is-appended": "PASS",
        "idempotence-a-gap-is-refused": "FAIL",
        ADVERTISED: "FAIL",
    }
    lacking = found["administration-list-transactions-by-pattern"]["reason"]
    assert lacking.startswith("not implemented: the broker at 127.0.0.1:")
    assert lacking.endswith("does not offer ListTransactions")
    # The requests that it lacks are no part of the failure.
    said = "ranges that exceed the defined ones: expected nothing, observed Heartbeat: (0, 5); repeated alone: seen in "
    assert found[ADVERTISED]["reason"].startswith(said)
    script = tmp_path / "run" / found["idempotence-a-gap-is-refused"]["script"]["path"]
    asked = [each["api"] for each in json.loads(script.read_text(encoding="utf-8"))["exchanges"]]
    assert "Produce" in asked
    assert not (tmp_path / "run" / "clusters" / "cases-1" / "cluster-1").exists()
    ended.left_nothing()


def test_a_machine_without_java_performs_cases(protocol: Callable[..., Command], tmp_path: Path) -> None:
    """Without one in PATH, JAVA_HOME or the cache, none is fetched, and a case that calls kafka-clients is left out."""
    cache = tmp_path / "cache" / "onceproof"
    cache.mkdir(parents=True)
    (cache / "maven").symlink_to(cache_dir() / "maven")
    bare = {**BARE, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(cache.parent)}
    cases = "the_next_batch_is_appended or a_java_producer_without_settings"
    ended = protocol(MOCK, "-k", cases, variables=bare).end(within_s=ENDS_WITHIN_S)
    assert ended.code == 0, ended.output
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    found = {each["id"]: each["reason"] for each in results["cases"] if each["verdict"] != "PASS"}
    assert len(results["cases"]) == 2
    assert list(found.values()) == ["it needs kafka-clients, and so Java 17 to 25, which this machine does not have"]


def test_versions_that_a_broker_lacks_are_not_implemented(protocol: Callable[..., Command], tmp_path: Path) -> None:
    """It may serve versions that only older releases define, too."""
    ended = protocol(f"{built(KFAKE)} {{port}}", "-k", "advertised_versions").end(within_s=ENDS_WITHIN_S)
    assert ended.code == 2, ended.output
    (found,) = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))["cases"]
    assert (found["id"], found["verdict"]) == (ADVERTISED, "NOT_APPLICABLE")
    assert found["reason"].startswith("not implemented: some versions of ListOffsets, ")


def test_a_case_does_not_wait_for_the_sessions_of_its_members(tmp_path: Path) -> None:
    """On a broker that runs already a group is removed at once, because its members leave; a session is 30 s long."""
    at = free_endpoint()
    broker = subprocess.Popen([built(KFAKE), str(at.port)], stdout=subprocess.DEVNULL)
    try:
        run = ("--bootstrap", str(at), "--kafka", RELEASE, "--run-dir", str(tmp_path / "run"))
        words = python("pytest", "suites/protocol", *run, "-k", "offsets_without_member_data or stale_epoch")
        with closing(Command(tmp_path, words, {})) as command:
            output = command.end(within_s=ENDS_WITHIN_S).output
        results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
        assert len(results["cases"]) == 4, output
        assert max(each["seconds"] for each in results["cases"]) < 20, output
        assert "is left on your cluster" not in output
    finally:
        broker.kill()
        broker.wait()


def test_a_broker_that_ended_is_started_again(tmp_path: Path) -> None:
    """The next case gets a broker that answers; the one before is lost, and nothing else."""
    program = tmp_path / "broker.py"
    program.write_text(
        "import os, sys\nfrom pathlib import Path\nfrom fixtures.clients.mock_broker import main\n"
        f"Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\nmain(sys.argv[1:])\n",
        encoding="utf-8",
    )
    runtime = GivenRuntime(
        connection=ClusterConnection(bootstrap="127.0.0.1:{port}"),
        files=fetch_release(parse_release(RELEASE)),
        toxiproxy=None,
        commands=BrokerCommands(),
        program=BrokerProgram(f"/usr/bin/env PYTHONPATH={ROOT} {sys.executable} {program} {{port}}"),
    )
    spec, count = Needs().spec(RELEASE), itertools.count()
    with ClusterPool(
        lambda each: runtime.launch(each, tmp_path / str(next(count)), keep_data=False), settle_s=0.5
    ) as pool:
        first = pool.lease(spec)
        assert pool.lease(spec) is first
        killed = int((tmp_path / "pid").read_text(encoding="ascii"))
        os.kill(killed, signal.SIGKILL)
        second = pool.lease(spec)
        assert second is not first
        # Its port is drawn by chance, and may be that of the one before.
        assert int((tmp_path / "pid").read_text(encoding="ascii")) != killed
        assert second.view().alive == {1}
        assert "did not give its roles" in pool.replacements[0]


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)' {{port}}", r"ended with exit status 3 before it listened at 127"),
        ("/nowhere/broker {port}", r"broker could not be started: .*nowhere"),
        (f"{sys.executable} -m http.server --bind 127.0.0.1 {{port}}", r"(cannot be reached|does not speak Kafka)"),
    ],
    ids=["it ends", "it does not exist", "it speaks HTTP"],
)
def test_a_program_that_is_no_broker_is_named(protocol: Callable[..., Command], broker: str, said: str) -> None:
    """One sentence and exit code 5; nothing is left running."""
    ended = protocol(broker, "-k", "a_gap_is_refused").end(within_s=ENDS_WITHIN_S)
    ended.refused(said, code=5)
    ended.left_nothing()
