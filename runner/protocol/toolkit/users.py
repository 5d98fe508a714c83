"""Users of the secured listener: grants and revokes rights, and sends requests as one of the users.

The script itself grants and revokes rights, through a listener where it is a super user. A right is in force when the
broker lists it. Inspection (leaders, logs, states) uses that listener as well: the user sends only the requests of the
script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

from fixtures.clusters.local.cluster import LocalCluster
from runner.protocol.toolkit.context import BrokerConnection, CaseContext
from wire.client import Client
from wire.connection import Authentication, Connection
from wire.router import check
from wire.sasl import Plain, Scram
from wire.schema import Body

#: A broker applies a change of the controller within milliseconds.
IN_FORCE_WITHIN_S = 15.0
_LITERAL, _ALLOW = 3, 3


class Resource(IntEnum):
    """The kind of resource that a right is for, by Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Right(IntEnum):
    """The operation that a right allows, by Kafka's numbers."""

    READ = 3
    WRITE = 4
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


#: The name of the one resource of its kind.
CLUSTER = "kafka-cluster"


class UserContext(CaseContext):
    """A context whose requests are sent as a user, in the script of another one; `acting` closes its connections."""

    def __init__(self, case: CaseContext, client: Client, user: str) -> None:
        super().__init__(
            case.client,
            transaction_version=case.transaction_version,
            release=case.release,
            defined=case.defined,
            cluster=case.cluster,
            java=case.java,
        )
        self.recording, self.name, self._user, self._own = case.recording, case.name, user, client

    def connection(self, broker: int) -> BrokerConnection:
        """The user's connection to a broker."""
        connection = super().connection(broker)
        connection.name = f"broker {broker} as {self._user}"
        return connection

    def close_connections(self) -> None:
        """Close the connections of the case and of the user."""
        super().close_connections()
        self._own.pool.close()

    def _open(self, broker: int) -> Connection:
        return self._own.open(broker)


@contextmanager
def acting(case: CaseContext, user: str, *, mechanism: str = "PLAIN") -> Iterator[UserContext]:
    """A context that sends requests as one user."""
    with connected(case, user, mechanism=mechanism) as client:
        context = UserContext(case, client, user)
        try:
            yield context
        finally:
            context.close_connections()


@contextmanager
def connected(case: CaseContext, user: str, *, mechanism: str = "PLAIN") -> Iterator[Client]:
    """A client that is authenticated as one user."""
    cluster = case.cluster
    assert isinstance(cluster, LocalCluster)
    assert cluster.security is not None, "the case needs a secured cluster"
    password = cluster.security.passwords[user]
    authentication: Authentication = Plain(username=user, password=password)
    if mechanism != "PLAIN":
        authentication = Scram(username=user, password=password, digest=mechanism.removeprefix("SCRAM-"))
    with Client(
        cluster.security.bootstrap,
        case.client.definitions,
        client_id=user,
        ssl_context=cluster.security.context(),
        authentication=authentication,
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
    _check(case.client.call("CreateAcls", {"Creations": creations})["Results"], f"CreateAcls for {user}")
    for right in rights:
        _await(case, user, kind, name, right, granted=True)


def revoke(case: CaseContext, user: str, kind: Resource, name: str, *rights: Right) -> None:
    """Take rights from a user, and wait until they are gone."""
    filters = [_filter(user, kind, name, right) for right in rights]
    _check(case.client.call("DeleteAcls", {"Filters": filters})["FilterResults"], f"DeleteAcls for {user}")
    for right in rights:
        _await(case, user, kind, name, right, granted=False)


@contextmanager
def granted(case: CaseContext, user: str, kind: Resource, name: str, *rights: Right) -> Iterator[None]:
    """Grant rights for the duration of a block; for resources that are not named after the case."""
    grant(case, user, kind, name, *rights)
    try:
        yield
    finally:
        revoke(case, user, kind, name, *rights)


def _check(results: Sequence[Body], what: str) -> None:
    for result in results:
        check(result["ErrorCode"], f"{what}: {result['ErrorMessage']}")


def _await(case: CaseContext, user: str, kind: Resource, name: str, right: Right, *, granted: bool) -> None:
    body = _filter(user, kind, name, right)

    def has_it() -> bool:
        answer = case.client.call("DescribeAcls", body)
        check(answer["ErrorCode"], f"DescribeAcls of {user}")
        return bool(answer["Resources"])

    seen = case.poll_until(has_it, lambda each: each is granted, within_s=IN_FORCE_WITHIN_S)
    case.require(f"{user} may {right.name} {kind.name} {name}", seen, granted)


def _filter(user: str, kind: Resource, name: str, right: Right) -> Body:
    """The fields that select one right in DeleteAcls and DescribeAcls."""
    return {
        "ResourceTypeFilter": int(kind),
        "ResourceNameFilter": name,
        "PatternTypeFilter": _LITERAL,
        "PrincipalFilter": f"User:{user}",
        "HostFilter": "*",
        "Operation": int(right),
        "PermissionType": _ALLOW,
    }
