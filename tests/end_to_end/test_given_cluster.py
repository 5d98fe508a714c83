"""A cluster that was started by other means: what a run, and a run that was killed, do to it and leave on it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import ResourceType

from fixtures.clusters.given.connection import read_connection
from fixtures.clusters.health import await_healthy
from fixtures.clusters.local.cluster import LocalCluster, OtherRelease
from fixtures.clusters.locks.releases import (
    LAST_OF_3,
    default_release,
    fetch_release,
    parse_release,
    supported_releases,
)
from fixtures.clusters.spec import ClusterSpec, SecuredListener
from fixtures.tools.java import find_java
from fixtures.waiting import await_until
from runner.given.options import GivenOptions
from runner.given.preflight import ClusterRefusedError, preflight
from runner.protocol.given_cases import NEEDS_THE_INSIDE
from runner.upgrades.path import line_of
from tests.support.cluster_client import PATIENCE_S, new_topic
from tests.support.clusters.broker_operator import Operator
from tests.support.clusters.listing import everything
from tests.support.clusters.owned import (
    PREFIX,
    RIGHTS,
    grant,
    kept_texts,
    properties,
    secret,
    security_of,
    withheld,
)
from tests.support.real_cluster import RELEASE, launcher
from tests.support.whole_commands import Command, Ended, starting
from tests.support.wire_definitions import definitions
from wire.client import Client

pytestmark = pytest.mark.cluster

#: Two scenarios of half a minute; a loaded machine takes several times that.
RUN_WITHIN_S = 600.0
#: Longer than a command takes, and than a session (3 s).
RESTARTED_AFTER_S = 5.0
#: So long does the scenario hold a crash that was seen.
HELD_S = 3.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster with a listener behind TLS and SASL; a topic and a group of another team are on it."""
    with launcher(tmp_path_factory)(ClusterSpec(release=RELEASE, secured=SecuredListener())) as started:
        new_topic(started, "billing")
        plain = {"bootstrap.servers": started.witness_bootstrap}
        producer = Producer(plain | {"transactional.id": "billing-1"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("billing", b"an invoice", key=b"1", headers={"currency": b"CHF"})
        producer.commit_transaction()
        producer.begin_transaction()
        producer.produce("billing", b"a mistake")
        producer.abort_transaction()
        consumer = Consumer(plain | {"group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("billing", 0, 1)], asynchronous=False)
        consumer.close()
        yield started


@pytest.fixture(scope="module")
def granted(cluster: LocalCluster) -> LocalCluster:
    """The same, where the owner has all rights on the prefix."""
    grant(cluster)
    return cluster


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts commands; whatever they started ends with the test."""
    with starting(tmp_path) as start:
        yield start


def ended_with(running: Command, code: int = 0) -> Ended:
    """The end of a command, after the check of its exit code."""
    ended = running.end(within_s=RUN_WITHIN_S)
    assert ended.code == code, ended.output
    return ended


def where(cluster: LocalCluster, file: Path) -> tuple[str, ...]:
    return ("--bootstrap", security_of(cluster).bootstrap, "--client-properties", str(file))


def results_of(run: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return results


def run_options(cluster: LocalCluster, file: Path, run: Path, *more: str) -> tuple[str, ...]:
    options = (*where(cluster, file), "--run-dir", str(run), "--kafka", RELEASE, "--only", "scenarios", "--seed", "1")
    return ("pytest", "suites", *options, *more)


def watch_options(cluster: LocalCluster, file: Path, run: Path) -> tuple[str, ...]:
    """A watch until Ctrl-C, of which a test sees the first window; the brokers show the line of their release."""
    pytest_, suites, *rest = run_options(cluster, file, run)
    return (pytest_, f"{suites}/watch", *rest[: rest.index("--kafka")], "--window", "1h")


@pytest.mark.quiet
def test_a_run_behind_tls_and_sasl_leaves_the_cluster_as_it_was(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """A scenario with links passes, one without its command is not applicable; no secret is kept.

    Its clients give a connection up after 3 s. Where two other clusters and two Spark sessions started on the same two
    processors, no TLS handshake of a new connection ended in that time, and no producer was initialised within 90 s.
    """
    before, run = everything(granted), tmp_path / "run"
    file = properties(granted, tmp_path / "client.properties")
    narrowed = ("-k", "partitioned_zombie or controller_crash")
    ended = ended_with(command(*run_options(granted, file, run, *narrowed)))
    assert [each["verdict"] for each in results_of(run)["scenarios"]] == ["PASS", "NOT_APPLICABLE"]
    assert "--faults has no command to crash a broker: crash (SIGKILL) of the active controller" in ended.output
    assert everything(granted) == before
    assert not [each for each in kept_texts(run) if secret(granted) in each]
    assert secret(granted) not in ended.output
    ended.left_nothing()


def test_the_look_says_which_protocol_cases_can_be_performed(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """And why the others cannot; nothing is created. The brokers show the line of their release."""
    before, file = everything(granted), properties(granted, tmp_path / "client.properties")
    options = (*where(granted, file), "--dry-run", "--run-dir", str(tmp_path / "run"))
    ended = ended_with(command("pytest", "suites/protocol", *options))
    line = re.escape(line_of(parse_release(RELEASE)))
    shown = rf"^release: {line}\.\d+, the newest supported of the line .* \(Kafka {line}: 1, 2, 3\)$"
    assert re.search(shown, ended.output, re.MULTILINE), ended.output
    assert "warning: this run expects" not in ended.output
    assert int(re.findall(r"^protocol cases: (\d+) can be performed", ended.output, re.MULTILINE)[0]) > 20
    assert re.search(rf"^protocol cases: [1-9]\d* cannot: {NEEDS_THE_INSIDE}$", ended.output, re.MULTILINE)
    assert everything(granted) == before


def test_rights_on_the_prefix_are_enough_for_protocol_cases(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """Left out is a case whose answers would lack what this principal may not describe; no secret is kept."""
    file, run = properties(granted, tmp_path / "client.properties"), tmp_path / "run"
    options = (*where(granted, file), "--run-dir", str(run), "--kafka", RELEASE)
    cases = ("-k", "a_gap_is_refused or an_empty_transactional_id_is_malformed or adding_again_writes_nothing")
    ended = ended_with(command("pytest", "suites/protocol", *options, *cases))
    found = {each["id"]: (each["verdict"], each["reason"]) for each in results_of(run)["cases"]}
    assert found.pop("idempotence-a-gap-is-refused")[0] == "PASS"
    empty = [found.pop(each) for each in sorted(found) if "an-empty-transactional-id" in each]
    said = "it needs a right that this principal does not have: InitProducerId"
    assert [(verdict, said in reason) for verdict, reason in empty] == [("NOT_APPLICABLE", True)] * 2
    assert list(found.values()) == [("NOT_APPLICABLE", NEEDS_THE_INSIDE)]
    assert not [each for each in kept_texts(run) if secret(granted) in each]
    ended.left_nothing()


@pytest.mark.deep
def test_brokers_are_struck_by_commands_of_the_user(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """By commands that ask another process, which restarts brokers later; each takes hold, and each is healed."""
    with Operator(granted, restarted_after_s=RESTARTED_AFTER_S) as operator:
        faults = tmp_path / "faults.toml"
        ask = f"{sys.executable} -c 'from urllib.request import urlopen; urlopen(\"{operator.at}/%s/{{broker}}\")'"
        names = ("crash", "restart", "pause", "resume", "cut", "mend")
        faults.write_text(
            "[commands]\n" + "".join(f"{name} = {json.dumps(ask % name)}\n" for name in names), encoding="utf-8"
        )
        struck = "leader_crash_while_sending or leader_paused_past or leader_cut_from_its or acknowledged_by_the_leader"
        options = ("--faults", str(faults), "-k", struck)
        file, run = properties(granted, tmp_path / "client.properties"), tmp_path / "run"
        ended = ended_with(command(*run_options(granted, file, run, *options)))
    results = results_of(run)
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"] * 3
    assert [each["convicted"] for each in results["controls"]] == [True]
    done = [each.partition("/")[0] for each in operator.asked]
    assert done == [*names, "cut", "crash", "mend", "restart"], "the last four are of the control"
    (crash,) = results["scenarios"][0]["faults"]
    assert crash["healed_s"] - crash["confirmed_s"] > RESTARTED_AFTER_S + HELD_S, "it was back when that was seen"
    ended.left_nothing()


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of the last release before the default one, whose nodes can run that one, too."""
    release = max(each for each in supported_releases() if each < default_release())
    start = launcher(tmp_path_factory, {str(release): OtherRelease(files=fetch_release(release))})
    with start(ClusterSpec(release=RELEASE, releases=dict.fromkeys((1, 2, 3), str(release)))) as started:
        yield started


@pytest.mark.deep
def test_a_rolling_upgrade_is_watched(older: LocalCluster, command: Callable[..., Command], tmp_path: Path) -> None:
    """The run is not told of it: brokers that left, leaders that moved and each broker's new release are in its history."""
    run = tmp_path / "run"
    options = ("--bootstrap", older.witness_bootstrap, "--run-dir", str(run), "--kafka", RELEASE, "--seed", "1")
    watching = command("pytest", "suites/watch", *options, "--for", "80s", "--window", "40s")
    watching.wait_for(lambda: "others may act on the cluster" in watching.output, "a window", within_s=RUN_WITHIN_S)
    (before,) = set(older.installed().values())
    for broker in older.brokers:
        older.stop(broker)
        older.install(broker, RELEASE)
        older.start(broker)
        await_healthy(older, PATIENCE_S, idle=False)
    ended = ended_with(watching)
    old, new = line_of(parse_release(before)), line_of(default_release())
    assert f"cluster: Kafka {old}: 1, 2, 3" in ended.output
    assert "commits/s │ longest gap" in ended.output
    seen = "".join(each.read_text(encoding="utf-8") for each in run.glob("runs/*/history.jsonl"))
    for broker in older.brokers:
        assert f'"broker {broker} left the cluster"' in seen, ended.output
        assert f'"broker {broker} changed from Kafka {old} to Kafka {new}"' in seen, ended.output
    assert '"LeaderMoved"' in seen
    ended.left_nothing()


def test_ctrl_c_ends_a_watch_with_a_decision(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """The window that is watched becomes the last one; the cluster is as before."""
    before, run = everything(granted), tmp_path / "run"
    watching = command(*watch_options(granted, properties(granted, tmp_path / "client.properties"), run))
    watching.wait_for(lambda: "others may act on the cluster" in watching.output, "a window", within_s=RUN_WITHIN_S)
    watching.interrupt()
    ended = ended_with(watching)
    results = results_of(run)
    assert (results["decision"], results["interrupted"]) == ("GO", False)
    assert len(results["scenarios"]) == 1, "the other window was not begun"
    assert everything(granted) == before
    ended.left_nothing()


@pytest.mark.deep
@pytest.mark.parametrize("watches", [False, True])
def test_a_run_that_is_broken_off_leaves_the_cluster_as_it_was(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path, *, watches: bool
) -> None:
    """Ctrl-C in a fault; of a watch, which ends normally at the first one, twice."""
    before, file, run = everything(granted), properties(granted, tmp_path / "client.properties"), tmp_path / "run"
    options = watch_options(granted, file, run) if watches else run_options(granted, file, run, "-k", "copier_cut_from")
    running = command(*options)
    running.wait_for(lambda: "confirmed: " in running.output, "the fault", within_s=RUN_WITHIN_S)
    if watches:
        running.interrupt()
        running.wait_for(lambda: "Ending: " in running.output, "the answer", within_s=RUN_WITHIN_S)
    running.interrupt()
    ended = ended_with(running, 5)
    assert everything(granted) == before
    ended.left_nothing()


@pytest.mark.deep
def test_what_a_killed_run_left_is_swept_up_and_nothing_else(
    granted: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """SIGKILL leaves topics; `--list` names them, and `tox -e sweep-up` removes exactly them."""
    before = everything(granted)
    file = properties(granted, tmp_path / "client.properties")
    # A member of its group lives on for the broker, until its session is over.
    running = command(*run_options(granted, file, tmp_path / "run", "-k", "copier_cut_from"))
    running.wait_for(lambda: "confirmed: zombie" in running.output, "the fault", within_s=RUN_WITHIN_S)
    running.close()
    listed = ended_with(command("runner.given.sweep_up", *where(granted, file), "--list"))
    assert "-billing-events" in listed.output
    assert re.search(r"^group onceproof-\S+-copiers$", listed.output, re.MULTILINE), listed.output
    assert everything(granted) != before
    ended_with(command("runner.given.sweep_up", *where(granted, file)))
    assert everything(granted) == before
    assert before["transactional ids"], "those of others are among them"


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"password": "wrong"}, 5, "refuses this client: SASL with"),
        ({"security_protocol": "SASL_PLAINTEXT"}, 5, "does not speak Kafka's protocol here"),
        ({"sasl_mechanism": "GSSAPI"}, 4, "give a listener with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"),
        ({"ssl_truststore_location": "/nowhere"}, 4, "ssl.truststore.location=/nowhere cannot be read"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_named_in_a_sentence(
    granted: LocalCluster,
    command: Callable[..., Command],
    tmp_path: Path,
    changed: dict[str, str],
    code: int,
    said: str,
) -> None:
    """Before anything is created; the run has no evidence."""
    file = properties(granted, tmp_path / "client.properties", **changed)
    ended = ended_with(command(*run_options(granted, file, tmp_path / "run", "--dry-run")), code)
    assert said in ended.output
    assert not (tmp_path / "run").exists()


def test_missing_rights_are_named_with_the_commands_that_grant_them(
    cluster: LocalCluster, command: Callable[..., Command], tmp_path: Path
) -> None:
    """A prefix on which the owner has no rights: an administrator runs the commands, and the look finds nothing to say."""
    file = properties(cluster, tmp_path / "client.properties")
    options = run_options(cluster, file, tmp_path / "run", "--prefix", "elsewhere-", "--dry-run")
    ended = ended_with(command(*options), 5)
    assert "User:owner lacks rights on names that begin with elsewhere-: Create, Delete, Describe, " in ended.output
    commands = re.findall(r"^ +kafka-acls\.sh (.*)$", ended.output, re.MULTILINE)
    assert len(commands) == len(RIGHTS)
    for each in commands:
        words = shlex.split(each)
        assert words[:4] == ["--bootstrap-server", security_of(cluster).bootstrap, "--command-config", str(file)]
        # Of the supported releases only the last one before 4.0 has this tool in the jars of its brokers.
        tool = (str(find_java().executable), "-cp", fetch_release(LAST_OF_3).classpath, "kafka.admin.AclCommand")
        subprocess.run(
            [*tool, "--bootstrap-server", cluster.witness_bootstrap, *words[4:]], check=True, timeout=PATIENCE_S
        )
    ended = ended_with(command(*options))
    assert "User:owner has these rights on names that begin with elsewhere-" in ended.output


def looked(cluster: LocalCluster, file: Path) -> str:
    """The refusal in the look at the cluster; empty if there is none."""
    connection = read_connection(security_of(cluster).bootstrap, file)
    given = GivenOptions(connection=connection, prefix=PREFIX, file=file)
    try:
        preflight(given, fetch_release(default_release()), only_requests=False, say=print)
    except ClusterRefusedError as error:
        return f"exit code {error.exit_code}: {error.sentence}"
    return ""


@pytest.mark.parametrize(
    ("kind", "right"), [(kind, right) for kind, rights in RIGHTS.items() for right in rights], ids=str
)
def test_each_right_is_asked_for(granted: LocalCluster, tmp_path: Path, kind: ResourceType, right: str) -> None:
    """It is named if it alone is missing, and the question leaves nothing behind."""
    file = properties(granted, tmp_path / "client.properties")
    lacks = f"{right.title().replace('_', '')} on {kind.name.lower().replace('_', ' ')}s"
    sentence = f"User:owner lacks rights on names that begin with {PREFIX}: {lacks}."
    with withheld(granted, kind, right):
        before = everything(granted)
        await_until(
            # Each broker learns of the change a moment later.
            lambda: looked(granted, file) == f"exit code 5: {sentence}",
            f"a look that names {lacks}",
            timeout_s=PATIENCE_S,
            last=lambda: looked(granted, file),
        )
        assert everything(granted) == before
    with Client(granted.witness_bootstrap, definitions()) as client:
        assert not [each for each in client.list_transactions() if each.endswith("-preflight")]


@pytest.mark.parametrize(
    ("password", "prefix", "without", "said"),
    [
        ("wrong", PREFIX, (), "refuses this client: SASL with"),
        ("", "nowhere-", (), "User:owner lacks rights on names that begin with nowhere-: Create"),
        ("", PREFIX, (ResourceType.TOPIC, "WRITE"), "User:owner lacks rights on .*: Write on topics"),
    ],
    ids=["password", "prefix", "right"],
)
def test_a_run_that_is_refused_creates_nothing(
    granted: LocalCluster,
    command: Callable[..., Command],
    tmp_path: Path,
    password: str,
    prefix: str,
    without: tuple[ResourceType, str] | tuple[()],
    said: str,
) -> None:
    """It looks at the cluster first, and not only with `--dry-run`."""
    file = properties(granted, tmp_path / "client.properties", password=password)
    with withheld(granted, *without) if without else nullcontext():
        before = everything(granted)
        # A second passes until brokers know the rights, and the run starts for longer.
        ended = command(*run_options(granted, file, tmp_path / "run", "--prefix", prefix)).end(within_s=RUN_WITHIN_S)
        assert everything(granted) == before
    ended.refused(rf"Nothing was started \(exit code 5\): .*{said}", code=5)
