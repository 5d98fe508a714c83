"""Users of the secured listener: who may do what, and a stage on which requests are sent as one of them.

Rights are granted and taken away by the script itself, which comes through a listener where it is a super user, and are
in force when the broker lists them. What is only looked at (leaders, logs, states) is looked at in that way, too: the
user sends what the script asks and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from fixtures.clusters.local.cluster import LocalCluster
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from wire.client import Client
from wire.connection import Authentication, Connection
from wire.router import check
from wire.sasl import Plain, Scram
from wire.schema import Body

#: A broker applies what the controller wrote within milliseconds.
IN_FORCE_WITHIN_S = 15.0
_LITERAL, _ALLOW = 3, 3


class Resource(IntEnum):
    """What a right is about, by Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Right(IntEnum):
    """What somebody may do, by Kafka's numbers."""

    READ = 3
    WRITE = 4
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


#: The name of the one resource of its kind.
CLUSTER = "kafka-cluster"


class ActingStage(CaseContext):
    """A part of another stage's script, sent by a user; its connections are closed by `acting`."""

    def __init__(self, case: CaseContext, client: Client, user: str) -> None:
        super().__init__(
            case.client,
            generation=case.generation,
            release=case.release,
            defined=case.defined,
            cluster=case.cluster,
        )
        self.recording, self.name, self._user, self._own = case.recording, case.name, user, client

    def line(self, broker: int) -> BrokerConnection:
        """The user's connection to a broker."""
        line = super().line(broker)
        line.name = f"broker {broker} as {self._user}"
        return line

    def close_connections(self) -> None:
        """Close the user's connections as well."""
        super().close_connections()
        self._own.pool.close()

    def _open(self, broker: int) -> Connection:
        return self._own.open(broker)


@contextmanager
def acting(case: CaseContext, user: str, *, mechanism: str = "PLAIN") -> Iterator[ActingStage]:
    """Requests of one user."""
    with connected(case, user, mechanism=mechanism) as client:
        acting_stage = ActingStage(case, client, user)
        try:
            yield acting_stage
        finally:
            acting_stage.close_connections()


@contextmanager
def connected(case: CaseContext, user: str, *, mechanism: str = "PLAIN") -> Iterator[Client]:
    """A client of one user."""
    cluster = case.cluster
    assert isinstance(cluster, LocalCluster)
    assert cluster.security is not None, "the case needs a secured cluster"
    password = cluster.security.passwords[user]
    who: Authentication = Plain(username=user, password=password)
    if mechanism != "PLAIN":
        who = Scram(username=user, password=password, digest=mechanism.removeprefix("SCRAM-"))
    with Client(
        cluster.security.bootstrap,
        case.client.definitions,
        client_id=user,
        ssl_context=cluster.security.context(),
        authentication=who,
    ) as client:
        yield client


def grant(case: CaseContext, user: str, kind: Resource, name: str, *rights: Right) -> None:
    """Give a user rights, and wait until they are in force."""
    creations = [
        {
            "ResourceType": int(kind),
            "ResourceName": name,
            "ResourcePatternType": _LITERAL,
            "Principal": f"User:{user}",
            "Host": "*",
            "Operation": int(right),
            "PermissionType": _ALLOW,
        }
        for right in rights
    ]
    for result in case.client.call("CreateAcls", {"Creations": creations})["Results"]:
        check(result["ErrorCode"], f"CreateAcls for {user}: {result['ErrorMessage']}")
    for right in rights:
        _await(case, user, kind, name, right, granted=True)


def revoke(case: CaseContext, user: str, kind: Resource, name: str, *rights: Right) -> None:
    """Take rights from a user, and wait until they are gone."""
    filters = [
        {
            "ResourceTypeFilter": int(kind),
            "ResourceNameFilter": name,
            "PatternTypeFilter": _LITERAL,
            "PrincipalFilter": f"User:{user}",
            "HostFilter": "*",
            "Operation": int(right),
            "PermissionType": _ALLOW,
        }
        for right in rights
    ]
    for result in case.client.call("DeleteAcls", {"Filters": filters})["FilterResults"]:
        check(result["ErrorCode"], f"DeleteAcls for {user}: {result['ErrorMessage']}")
    for right in rights:
        _await(case, user, kind, name, right, granted=False)


@contextmanager
def granted(case: CaseContext, user: str, kind: Resource, name: str, *rights: Right) -> Iterator[None]:
    """Rights for a while; for what does not carry the case's own name."""
    grant(case, user, kind, name, *rights)
    try:
        yield
    finally:
        revoke(case, user, kind, name, *rights)


def _await(case: CaseContext, user: str, kind: Resource, name: str, right: Right, *, granted: bool) -> None:
    body: Body = {
        "ResourceTypeFilter": int(kind),
        "ResourceNameFilter": name,
        "PatternTypeFilter": _LITERAL,
        "PrincipalFilter": f"User:{user}",
        "HostFilter": "*",
        "Operation": int(right),
        "PermissionType": _ALLOW,
    }
    seen = case.poll_until(
        lambda: bool(case.client.call("DescribeAcls", body)["Resources"]),
        lambda each: each is granted,
        within_s=IN_FORCE_WITHIN_S,
    )
    case.require(f"{user} may {right.name} {kind.name} {name}", seen, granted)
