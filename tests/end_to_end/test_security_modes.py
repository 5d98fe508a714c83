"""Each way into a secured cluster of three brokers that was started by other means, with ACLs on.

In each mode the smoke profile and all protocol cases run, and the smoke scenario and a protocol case with other clients;
the secrets are nowhere in the files of a run or in command lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ResourceType
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificates

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.network.certificates import SelfSigned
from fixtures.clusters.spec import OAUTHBEARER, PLAIN, SCRAM, ClusterSpec, SecuredListener
from tests.support.clusters.owned import (
    PREFIX,
    grant,
    jks,
    kept_texts,
    login,
    secret,
    security_of,
    withheld,
    written,
)
from tests.support.real_cluster import RELEASE, launcher
from tests.support.servers.token_issuer import issuing
from tests.support.whole_commands import Command, Ended, python

pytestmark = pytest.mark.cluster

#: A run has two scenarios of half a minute; a loaded machine takes several times that.
RUN_WITHIN_S = 600.0
#: Most of the cases of plain requests; the others need brokers with settings of their own, or one that goes away.
CASES_AT_LEAST = 100
FINE = ("PASS", "NOT_APPLICABLE")
CASE = "idempotence-the-last-five-batches-are-recognised"
STORE_PASSWORD = "opens a store"
EVERY = SecuredListener(mechanisms=(PLAIN, *SCRAM, OAUTHBEARER))
#: The name of an owner that has none.
NAMELESS = "ANONYMOUS"
MODES = [
    *((EVERY, each) for each in EVERY.mechanisms),
    (SecuredListener(protocol="SASL_PLAINTEXT"), SCRAM[0]),
    *((SecuredListener(protocol="SSL", mechanisms=()), kind) for kind in ("PEM", "PKCS12", "JKS")),
    (SecuredListener(protocol="SSL", mechanisms=(), certified=False), NAMELESS),
    (SecuredListener(protocol="PLAINTEXT", mechanisms=()), NAMELESS),
]
CLUSTERS: dict[SecuredListener, LocalCluster] = {}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[SecuredListener], LocalCluster]]:
    """Starts the cluster of a listener, and ends the one before."""
    with ExitStack() as running:

        def start(listener: SecuredListener) -> LocalCluster:
            if listener not in CLUSTERS:
                running.close()
                CLUSTERS.clear()
                spec = ClusterSpec(release=RELEASE, secured=listener, controllers=int(listener.anonymous))
                CLUSTERS[listener] = running.enter_context(launcher(tmp_path_factory)(spec))
                grant(CLUSTERS[listener], inside=True)
            return CLUSTERS[listener]

        yield start


@pytest.fixture
def entered(
    started: Callable[[SecuredListener], LocalCluster], request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[LocalCluster, dict[str, str]]]:
    """The cluster of a mode, and the settings of its owner."""
    listener, how = request.param
    cluster = started(listener)
    given = login(cluster, how)
    with ExitStack() as open_issuer:
        if how == OAUTHBEARER:
            # It speaks TLS, with an authority of its own, which Kafka and Strimzi name among the options of JAAS.
            identity = SelfSigned.of("issuer", ("127.0.0.1",))
            identity.write(tmp_path / "issuer.pem")
            (tmp_path / "authority.pem").write_text(identity.certificate, encoding="ascii")
            tokens = issuing(security_of(cluster).issuer, {"owner": secret(cluster)}, own=tmp_path / "issuer.pem")
            given["sasl.oauthbearer.token.endpoint.url"] = open_issuer.enter_context(tokens)
            trust = f"oauth.ssl.truststore.location='{tmp_path / 'authority.pem'}' oauth.ssl.truststore.type=PEM;"
            given["sasl.jaas.config"] = given["sasl.jaas.config"].replace(";", f" {trust}")
        if how == "PEM":
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(security_of(cluster).owner)}
        if how in ("PKCS12", "JKS"):
            store = _store(cluster, tmp_path)
            place = store if how == "PKCS12" else jks(tmp_path / "owner.jks", store, STORE_PASSWORD)
            given |= {"ssl.keystore.type": how, "ssl.keystore.location": str(place)}
            given |= {"ssl.keystore.password": STORE_PASSWORD}
        if how == "JKS":
            authorities = _store(cluster, tmp_path, trusts=True)
            given |= {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": str(authorities)}
            given |= {"ssl.truststore.password": STORE_PASSWORD}
        yield cluster, given


def _store(cluster: LocalCluster, directory: Path, *, trusts: bool = False) -> Path:
    """A store with the owner's key, or with the authorities of the brokers."""
    security = security_of(cluster)
    content = (security.certificate if trusts else security.owner).read_bytes()
    (certificate,) = load_pem_x509_certificates(content)
    parts = (None, None, [certificate]) if trusts else (load_pem_private_key(content, None), certificate, None)
    file = directory / ("authorities.p12" if trusts else "owner.p12")
    lock = BestAvailableEncryption(STORE_PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"it", *parts, lock))  # type: ignore[arg-type]
    return file


def run(cluster: LocalCluster, given: dict[str, str], place: Path, *more: str, suite: str = "suites") -> Ended:
    """A run on the cluster; its directory is `run` in the place."""
    (place / "started").mkdir(parents=True)
    file = written(place / "client.properties", given)
    where = ("--bootstrap", security_of(cluster).bootstrap, "--client-properties", str(file))
    command = Command(place / "started", python("pytest", suite, *where, "--run-dir", str(place / "run"), *more), {})
    try:
        lines = command.command_lines(within_s=RUN_WITHIN_S)
        assert not [each for each in lines if secret(cluster) in each]
        return command.end(within_s=RUN_WITHIN_S)
    finally:
        command.close()


def named(mode: Any) -> str:
    listener, how = mode
    return f"{listener.protocol}-{how}"


@pytest.mark.parametrize("entered", MODES, indirect=True, ids=named)
def test_the_preflight_finds_its_way_in(entered: tuple[LocalCluster, dict[str, str]], tmp_path: Path) -> None:
    """All rights are there, so it lists what can be run and ends well; the brokers show the line of their release."""
    ended = run(*entered, tmp_path, "--dry-run")
    assert ended.code == 0, ended.output
    assert "cluster: 3 brokers" in ended.output
    assert f"release: {RELEASE}, the newest supported of the line that the brokers show" in ended.output
    assert "no quota holds for this principal" in ended.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("entered", MODES[-2:], indirect=True, ids=named)
def test_a_right_that_anonymous_lacks_is_named(entered: tuple[LocalCluster, dict[str, str]], tmp_path: Path) -> None:
    """Without a name there are rights, too, and it is not a super user."""
    cluster, _ = entered
    with withheld(cluster, ResourceType.TOPIC, "WRITE"):
        ended = run(*entered, tmp_path, "--dry-run")
    ended.refused("User:ANONYMOUS lacks rights on names that begin with onceproof-: Write on topics", code=5)
    assert f"--allow-principal User:ANONYMOUS --resource-pattern-type prefixed --topic {PREFIX}" in ended.output


def results_of(run_directory: Path, ended: Ended, cluster: LocalCluster) -> dict[str, Any]:
    """The results of a run that ended well, after a search for passwords, tokens and keys in all that it kept."""
    assert ended.code == 0, ended.output
    kept = "".join(kept_texts(run_directory)) + ended.output
    assert secret(cluster) not in kept
    assert STORE_PASSWORD not in kept
    assert "PRIVATE KEY" not in kept
    assert "eyJhbGci" not in kept, "the beginning of every token"
    ended.left_nothing()
    results: dict[str, Any] = json.loads((run_directory / "results.json").read_text(encoding="utf-8"))
    return results


@pytest.mark.deep
@pytest.mark.parametrize("entered", MODES, indirect=True, ids=named)
def test_the_smoke_profile_and_all_protocol_cases_are_performed(
    entered: tuple[LocalCluster, dict[str, str]], tmp_path: Path
) -> None:
    """The scenario passes, the control is convicted, and no case finds anything but known bugs of the release."""
    cluster, given = entered
    ended = run(cluster, given, tmp_path / "smoke", "--profile", "smoke", "--seed", "1")
    results = results_of(tmp_path / "smoke" / "run", ended, cluster)
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"]
    assert [each["convicted"] for each in results["controls"]] == [True]
    protocol_cases_find_nothing_new(cluster, given, tmp_path / "cases")


def protocol_cases_find_nothing_new(cluster: LocalCluster, given: dict[str, str], place: Path) -> None:
    """All protocol cases on a cluster: most pass, those that cannot be performed there are left out."""
    ended = run(cluster, given, place, suite="suites/protocol")
    cases = results_of(place / "run", ended, cluster)["cases"]
    unknown = [each["id"] for each in cases if each["verdict"] not in FINE and not each["known"]]
    assert not unknown, ended.output
    assert sum(each["verdict"] == "PASS" for each in cases) > CASES_AT_LEAST


@pytest.mark.deep
@pytest.mark.parametrize(("brokers", "inside"), [(3, False), (5, True)], ids=["rights-on-the-prefix", "five-brokers"])
def test_cases_that_cannot_be_performed_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, brokers: int, *, inside: bool
) -> None:
    """Of a principal that may not look inside, and of a cluster whose brokers are not three; no case is an error."""
    spec = ClusterSpec(release=RELEASE, brokers=brokers, secured=SecuredListener())
    with launcher(tmp_path_factory)(spec) as cluster:
        grant(cluster, inside=inside)
        protocol_cases_find_nothing_new(cluster, login(cluster), tmp_path)


@pytest.mark.parametrize("entered", MODES[-1:], indirect=True, ids=named)
def test_a_controller_that_is_no_broker_is_not_struck(
    entered: tuple[LocalCluster, dict[str, str]], tmp_path: Path
) -> None:
    """No command is run for a node that commands of brokers do not know."""
    faults = tmp_path / "faults.toml"
    faults.write_text('[commands]\ncrash = "touch {broker}"\nrestart = "rm {broker}"\n', encoding="utf-8")
    why = "the active controller is node 4, which is no broker"
    looked = run(*entered, tmp_path / "look", "--faults", str(faults), "-k", "controller_crash", "--dry-run")
    assert f"cannot be performed: {why}" in looked.output
    ended = run(*entered, tmp_path, "--faults", str(faults), "-k", "controller_crash")
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    left_out = [(each["verdict"], each["reason"]) for each in results["scenarios"]]
    assert left_out == [("NOT_APPLICABLE", why)], ended.output


#: Each way in with the other library that also reads; those that only write with one of each kind.
OTHERS = ("kafka-python", "aiokafka", "franz-go", "sarama")
ENTRIES = [
    *((mode, "java") for mode in MODES),
    *((mode, client) for mode in (MODES[0], MODES[2], MODES[3], MODES[7]) for client in OTHERS),
]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("entered", "client"), ENTRIES, indirect=["entered"], ids=[f"{named(mode)}-{client}" for mode, client in ENTRIES]
)
def test_clients_and_scripted_requests_work(
    entered: tuple[LocalCluster, dict[str, str]], client: str, tmp_path: Path
) -> None:
    """The scenario and the case pass; no password, token or key is kept."""
    cluster, given = entered
    ended = run(cluster, given, tmp_path, "--client", client, "-k", "without_faults or last_five", "--seed", "1")
    results = results_of(tmp_path / "run", ended, cluster)
    assert [each["verdict"] for each in results["scenarios"]] == ["PASS"]
    assert {each["id"]: each["verdict"] for each in results["cases"]}[CASE] == "PASS"
