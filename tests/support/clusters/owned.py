"""A cluster behind a secured listener, as its owner reaches it: rights on a prefix, and a file of client properties."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from fixtures.clusters.local.cluster import LocalCluster
from fixtures.clusters.network.security import Security
from fixtures.tools.java import find_java
from tests.support.cluster_client import PATIENCE_S

PREFIX = "onceproof-"
_MODULES = "org.apache.kafka.common.security"
_LOGIN = {"PLAIN": "plain.PlainLoginModule", "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule"}
#: The rights that the preflight asks for.
RIGHTS = {
    ResourceType.TOPIC: ("CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"),
    ResourceType.TRANSACTIONAL_ID: ("DESCRIBE", "WRITE"),
    ResourceType.GROUP: ("DELETE", "DESCRIBE", "READ"),
}
#: Without these no protocol case can look at leaders and coordinators.
INSIDE = {"__transaction_state": ("DESCRIBE", "READ"), "__consumer_offsets": ("DESCRIBE", "READ")}


def security_of(cluster: LocalCluster) -> Security:
    assert cluster.security is not None
    return cluster.security


def grant(cluster: LocalCluster, *, inside: bool = False) -> None:
    """Give the owner all rights on the prefix; `inside`: also to describe the cluster and read its internal topics.

    An ANONYMOUS owner has the latter already, and would take its rights on the cluster from the brokers.
    """
    principal = security_of(cluster).principal
    acls = [
        _acl(principal, kind, PREFIX, ResourcePatternType.PREFIXED, right)
        for kind, rights in RIGHTS.items()
        for right in rights
    ]
    if inside and not security_of(cluster).listener.anonymous:
        acls += _inside(principal)
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})
    for done in admin.create_acls(acls).values():
        done.result(PATIENCE_S)


def _inside(principal: str) -> Iterator[AclBinding]:
    literal = ResourcePatternType.LITERAL
    yield _acl(principal, ResourceType.BROKER, "kafka-cluster", literal, "DESCRIBE")
    yield _acl(principal, ResourceType.BROKER, "kafka-cluster", literal, "DESCRIBE_CONFIGS")
    for topic, rights in INSIDE.items():
        for right in rights:
            yield _acl(principal, ResourceType.TOPIC, topic, literal, right)


@contextmanager
def withheld(cluster: LocalCluster, kind: ResourceType, right: str) -> Iterator[None]:
    """Take one right on the prefix away from the owner. Others imply Describe, so that one is denied."""
    denies = right == "DESCRIBE"
    permission = AclPermissionType.DENY if denies else AclPermissionType.ALLOW
    changed = (kind, PREFIX, ResourcePatternType.PREFIXED, security_of(cluster).principal, "*", AclOperation[right])
    admin = AdminClient({"bootstrap.servers": cluster.witness_bootstrap})

    def change(*, adds: bool) -> None:
        asked = (
            admin.create_acls([AclBinding(*changed, permission)])
            if adds
            else admin.delete_acls([AclBindingFilter(*changed, permission)])
        )
        for done in asked.values():
            done.result(PATIENCE_S)

    change(adds=denies)
    try:
        yield
    finally:
        change(adds=not denies)


def _acl(principal: str, kind: ResourceType, name: str, pattern: ResourcePatternType, right: str) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, "*", AclOperation[right], AclPermissionType.ALLOW)


def secret(cluster: LocalCluster) -> str:
    """The password of the owner."""
    return security_of(cluster).passwords["owner"]


def written(file: Path, given: dict[str, str]) -> Path:
    """A file as for `kafka-topics.sh --command-config`."""
    file.write_text("# ours\n" + "".join(f"{name}={value}\n" for name, value in given.items()), encoding="utf-8")
    return file


def properties(cluster: LocalCluster, file: Path, *, password: str = "", **changed: str) -> Path:
    """A file as for `kafka-topics.sh --command-config`."""
    given = login(cluster, password=password) | {name.replace("_", "."): value for name, value in changed.items()}
    return written(file, given)


def login(cluster: LocalCluster, mechanism: str = "SCRAM-SHA-512", *, password: str = "") -> dict[str, str]:
    """The settings with which the owner logs in; with OAUTHBEARER the endpoint of an issuer is to be added."""
    security = security_of(cluster)
    given = {"security.protocol": security.listener.protocol}
    if "SSL" in given["security.protocol"]:
        given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(security.certificate)}
    if security.mechanisms:
        fields = ("clientId", "clientSecret") if mechanism == "OAUTHBEARER" else ("username", "password")
        values = zip(fields, ("owner", password or secret(cluster)), strict=True)
        module = f"{_MODULES}.{_LOGIN.get(mechanism, 'scram.ScramLoginModule')} required"
        given |= {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{module} \\\n  " + " ".join(f'{name}="{value}"' for name, value in values) + ";",
        }
    return given


def jks(file: Path, source: Path, password: str) -> Path:
    """A PKCS12 store as a JKS store with the same password, made by keytool."""
    stores = ("-srckeystore", str(source), "-destkeystore", str(file), "-deststoretype", "JKS", "-noprompt")
    opened = ("-srcstorepass:env", "KEPT", "-deststorepass:env", "KEPT")
    command = [str(find_java().executable), "-m", "java.base/sun.security.tools.keytool.Main", "-importkeystore"]
    subprocess.run(
        [*command, *stores, *opened], env={**os.environ, "KEPT": password}, check=True, capture_output=True, timeout=60
    )
    assert file.read_bytes()[:4] == b"\xfe\xed\xfe\xed"
    return file


def kept_texts(directory: Path) -> Iterator[str]:
    """The text of every file below a directory, unpacked."""
    for each in directory.rglob("*"):
        if each.is_file():
            content = each.read_bytes()
            unpacked = gzip.decompress(content) if each.suffix == ".gz" else content
            yield unpacked.decode("utf-8", errors="replace")
