"""The wire client against a real broker's listener with SASL_SSL: accepted users, and errors for all others."""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from chaos.cluster import Site
from fixtures.clusters.errors import ClusterSpecError
from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.locks.releases import clients_jar, default_release, fetch_release
from fixtures.clusters.network.security import USERS, Security
from fixtures.clusters.spec import SCRAM, SITES_MAX, ClusterSpec, SecuredListener
from fixtures.waiting import await_until
from tests.support.real_cluster import RELEASE, SINGLE_BROKER, launcher
from tests.support.wire_definitions import definitions
from verification.sources.ranges import Range, RangeGroup, encode
from verification.sources.wire_log import LogReader
from verification.vocabulary.errors import CaptureError
from wire.client import Client
from wire.codes import ErrorCode
from wire.connection import Authentication, Connection
from wire.errors import BrokerError, ConnectError, WireError
from wire.sasl import Plain, Scram
from wire.values import Address

OWNER = USERS[0]
MECHANISMS = ("PLAIN", *SCRAM)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with launcher(tmp_path_factory)(replace(SINGLE_BROKER, secured=SecuredListener())) as started:
        yield started


@pytest.fixture
def security(cluster: LocalCluster) -> Security:
    assert cluster.security is not None
    return cluster.security


def credentials(mechanism: str, password: str, name: str = OWNER) -> Authentication:
    """The credentials of a user."""
    if mechanism == "PLAIN":
        return Plain(username=name, password=password)
    return Scram(username=name, password=password, digest=mechanism.removeprefix("SCRAM-"))


def connect(
    security: Security, authentication: Authentication | None, context: ssl.SSLContext | None = None
) -> Connection:
    """A connection to the secured listener."""
    address = Address.parse(security.bootstrap)
    return Connection(*address, definitions(), ssl_context=context, authentication=authentication, timeout_s=10)


@pytest.mark.cluster
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_is_let_in(security: Security, mechanism: str) -> None:
    """With each mechanism a user with the right password gets answers, through TLS, that the broker gives only to users."""
    login = credentials(mechanism, security.passwords[OWNER])
    with Client(security.bootstrap, definitions(), ssl_context=security.context(), authentication=login) as client:
        assert list(client.metadata([]).brokers) == [1]
        with pytest.raises(BrokerError) as refused:
            client.init_producer_id("not-granted")
    assert refused.value.error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.cluster
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", [OWNER, "unknown"])
def test_a_wrong_password_is_refused(security: Security, mechanism: str, name: str) -> None:
    """A wrong password and an unknown name are both SASL_AUTHENTICATION_FAILED, and the password is in no message."""
    with pytest.raises(BrokerError) as refused:
        connect(security, credentials(mechanism, "not-the-password", name), security.context())
    assert refused.value.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "not-the-password" not in str(refused.value)


@pytest.mark.cluster
def test_a_mechanism_that_is_not_offered_is_refused(security: Security) -> None:
    """A mechanism that the listener does not have is UNSUPPORTED_SASL_MECHANISM, and those that it has are named."""
    with pytest.raises(BrokerError, match="PLAIN") as refused:
        connect(security, Scram(username=OWNER, password="x", digest="SHA-384"), security.context())
    assert refused.value.error is ErrorCode.UNSUPPORTED_SASL_MECHANISM


@pytest.mark.cluster
def test_a_plain_client_at_the_tls_port_gets_an_error(security: Security) -> None:
    """A client without TLS gets an error of the wire, at once, and no answer of a broker."""
    with pytest.raises(WireError) as refused:
        connect(security, credentials("PLAIN", security.passwords[OWNER]))
    assert not isinstance(refused.value, BrokerError)


@pytest.mark.cluster
def test_a_tls_client_at_a_plain_port_gets_an_error(cluster: LocalCluster, security: Security) -> None:
    """A client with TLS at a listener without it cannot connect."""
    with pytest.raises(ConnectError):
        Connection(*Address.parse(cluster.witness_bootstrap), definitions(), ssl_context=security.context())


@pytest.mark.cluster
def test_an_untrusted_certificate_is_refused(security: Security) -> None:
    """A client that trusts other authorities does not talk to this broker."""
    with pytest.raises(ConnectError, match="certificate"):
        connect(security, credentials("PLAIN", security.passwords[OWNER]), ssl.create_default_context())


@pytest.mark.cluster
def test_a_client_without_credentials_is_refused(security: Security) -> None:
    """Through TLS but without SASL a request ends the connection."""
    with pytest.raises(WireError) as refused, connect(security, None, security.context()) as connection:
        connection.call("Metadata", {"Topics": []})
    assert not isinstance(refused.value, BrokerError)


@pytest.mark.cluster
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_log_is_read_through_a_secured_listener(cluster: LocalCluster, security: Security, mechanism: str) -> None:
    """With librdkafka's settings a user with the right may read the log, and one without it may not."""
    topic = f"secured-{secrets.token_hex(4)}"
    fill(cluster, topic, 3)
    whole = RangeGroup((Range(topic=topic, topic_index=0, partition=0, start=0, end=3),))
    reading = {"run": "r", "ranges": encode(whole.ranges), "tasks": "1", "timeout_s": "10"}
    jars = json.dumps([str(clients_jar(fetch_release(default_release())))])

    def read(user: str) -> list[int]:
        entry = {
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": str(security.certificate),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": security.passwords[user],
        }
        options = {**reading, "bootstrap": security.bootstrap, "definitions": jars, "settings": json.dumps(entry)}
        return [offset for batch in LogReader(options).read(whole) for offset in batch["offset"].to_pylist()]

    allow(cluster, OWNER, topic)
    assert read(OWNER) == [0, 1, 2]
    with pytest.raises(CaptureError, match="AUTHORIZATION"):
        read("stranger")


def fill(cluster: LocalCluster, topic: str, count: int) -> None:
    """A topic of one partition that holds so many records."""
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": cluster.witness_bootstrap})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(30) == 0


def allow(cluster: LocalCluster, user: str, topic: str) -> None:
    """Let a user read a topic, and wait until the broker lists it."""
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})
    kind, literal = ResourceType.TOPIC, ResourcePatternType.LITERAL
    right = AclBinding(kind, topic, literal, f"User:{user}", "*", AclOperation.READ, AclPermissionType.ALLOW)
    wanted = AclBindingFilter(kind, topic, literal, None, None, AclOperation.ANY, AclPermissionType.ANY)
    admin.create_acls([right])[right].result(30)
    await_until(lambda: right in admin.describe_acls(wanted).result(30), f"{user} may read {topic}", timeout_s=30)


def test_secrets_are_in_no_representation(tmp_path: Path) -> None:
    """A printed listener shows no password."""
    security = Security.of(tmp_path, "127.0.0.1:1", SecuredListener(), scram=True)
    shown = repr(security)
    assert not any(secret in shown for secret in security.passwords.values())


def test_a_secured_listener_takes_the_place_of_a_site() -> None:
    """With a secured listener a cluster has room for one site less, and the error says so."""
    sites = tuple(Site(f"site{number}") for number in range(SITES_MAX))
    ClusterSpec(release=RELEASE, sites=sites)
    with pytest.raises(ClusterSpecError, match="secured"):
        ClusterSpec(release=RELEASE, sites=sites, secured=SecuredListener())
