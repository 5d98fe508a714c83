"""Clusters on which no run can begin, and one that lacks a little: one sentence each, before anything is created."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fixtures.clusters.network.certificates import SelfSigned
from fixtures.recording.quiescence import QUESTIONS
from tests.support.clusters.owned import written
from tests.support.real_cluster import RELEASE
from tests.support.servers.frame_broker import frame_broker
from tests.support.whole_commands import Command, starting
from tests.support.wire_definitions import definitions


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts commands; whatever they started ends with the test."""
    with starting(tmp_path) as start:
        yield start


@pytest.fixture
def expired(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a TLS server whose certificate has expired, and that certificate."""
    identity = SelfSigned.of("broker", ("127.0.0.1",), valid=-timedelta(hours=1))
    identity.write(tmp_path / "server.pem")
    (tmp_path / "trusted.pem").write_text(identity.certificate, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", tmp_path / "trusted.pem"
    server.shutdown()
    server.server_close()


def test_a_certificate_that_has_expired_is_named(
    expired: tuple[str, Path], command: Callable[..., Command], tmp_path: Path
) -> None:
    """One sentence before anything is created, although the certificate is trusted."""
    bootstrap, trusted = expired
    given = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
    file = written(tmp_path / "client.properties", given)
    where = ("--bootstrap", bootstrap, "--client-properties", str(file), "--kafka", RELEASE, "--dry-run")
    ended = command("pytest", "suites", *where, "--run-dir", str(tmp_path / "run")).end()
    ended.refused(rf"{bootstrap}.*certificate has expired", code=5)
    assert not (tmp_path / "run").exists()


def offered(*, without: tuple[str, ...] = ()) -> list[dict[str, int]]:
    """Every version of every API that we can speak, but some."""
    known = definitions()
    spans = {known.api_key(api): known.versions(f"{api}Request") for api in known.apis() if api not in without}
    return [{"ApiKey": key, "MinVersion": span[0], "MaxVersion": span[-1]} for key, span in spans.items() if span]


def closed_port() -> int:
    """Nothing listens there any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("advertised", "code", "sentence"),
    [
        (0, 4, "has 1 of the 3 brokers that a scenario needs"),
        (1, 5, r"Broker 1 advertises 127\.0\.0\.1:\d+, which cannot be"),
    ],
    ids=["of one broker", "that advertises a closed port"],
)
def test_a_cluster_that_cannot_carry_a_run_is_refused_before_anything_is_created(
    command: Callable[..., Command], tmp_path: Path, advertised: int, code: int, sentence: str
) -> None:
    """The broker was asked for versions and metadata, and for nothing else."""
    with frame_broker() as broker:
        broker.says = {
            "ApiVersions": {"ApiKeys": offered()},
            "Metadata": {
                "Brokers": [{"NodeId": 1, "Host": "127.0.0.1", "Port": closed_port() if advertised else broker.at.port}]
            },
        }
        where = ("--bootstrap", f"127.0.0.1:{broker.at.port}", "--kafka", RELEASE)
        ended = command("pytest", "suites", *where, "--run-dir", str(tmp_path / "run")).end()
        asked = {int.from_bytes(frame[4:6], "big") for frame in broker.frames}
    ended.refused(sentence, code=code)
    assert asked == {definitions().api_key("ApiVersions"), definitions().api_key("Metadata")}


def test_a_broker_without_questions_about_transactions_is_fit_and_they_are_named(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    """The log decides without their answers."""
    with frame_broker() as broker:
        at = {"Host": "127.0.0.1", "Port": broker.at.port}
        broker.says = {
            "ApiVersions": {"ApiKeys": offered(without=QUESTIONS)},
            "Metadata": {"Brokers": [{"NodeId": each, **at} for each in (1, 2, 3)]},
            "FindCoordinator": {"Coordinators": [{"NodeId": 1, **at}]},
        }
        where = ("--bootstrap", f"127.0.0.1:{broker.at.port}", "--kafka", RELEASE, "--dry-run")
        ended = command("pytest", "suites", *where, "--run-dir", str(tmp_path / "run")).end()
    assert ended.code == 0, ended.output
    for each in QUESTIONS:
        assert f"warning: the cluster does not offer {each}" in ended.output


def test_a_cluster_that_refuses_replicas_is_unfit(command: Callable[..., Command], tmp_path: Path) -> None:
    """The topic is only validated."""
    with frame_broker() as broker:
        at = {"Host": "127.0.0.1", "Port": broker.at.port}
        refused = {"Name": "onceproof-preflight", "ErrorCode": 44, "ErrorMessage": "four replicas here"}
        broker.says = {
            "ApiVersions": {"ApiKeys": offered()},
            "Metadata": {"Brokers": [{"NodeId": each, **at} for each in (1, 2, 3)]},
            "CreateTopics": {"Topics": [refused]},
        }
        where = ("--bootstrap", f"127.0.0.1:{broker.at.port}", "--kafka", RELEASE, "--dry-run")
        ended = command("pytest", "suites", *where, "--run-dir", str(tmp_path / "run")).end()
    ended.refused(r"refuses a topic with 3 replicas: .*four replicas here", code=4)
