"""Protocol cases on a cluster of the user: which can be performed there, and what keeps them from harming it.

A case gets message definitions of those requests alone that touch only what it creates itself, under the prefix of the
run. So it cannot even encode one that changes brokers, features, rights or the topics of others: such a case is NOT
APPLICABLE. So is a case that needs another cluster than the one that is there, or that takes a broker away: commands of
the user are for scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures.clusters.given.broker_commands import BrokerCommands
from fixtures.clusters.given.cluster import GivenCluster, NotOursError
from fixtures.clusters.given.runtime import GivenRuntime
from fixtures.clusters.observing.coordinators import NoCoordinatorTopicError
from runner.environment import Environment
from runner.given.removal import remove
from runner.protocol.toolkit.case import LEVEL_OF_NEW_CLUSTERS, Needs
from verification.vocabulary.verdict import NOT_IMPLEMENTED
from wire.client import Client
from wire.codes import NO_RIGHT
from wire.errors import BrokerError, DefinitionError, VersionError, WireError
from wire.messages import Definitions, carried

if TYPE_CHECKING:
    from runner.protocol.toolkit.context import CaseContext

#: Requests that change nothing, or nothing but topics, groups and ids that they name.
HARMLESS = (
    *("AddOffsetsToTxn", "AddPartitionsToTxn", "ApiVersions", "ConsumerGroupDescribe", "ConsumerGroupHeartbeat"),
    *("CreateTopics", "DeleteGroups", "DeleteRecords", "DeleteTopics", "DescribeCluster", "DescribeConfigs"),
    *("DescribeGroups", "DescribeProducers", "DescribeQuorum", "DescribeTransactions", "EndTxn", "Fetch"),
    *("FindCoordinator", "Heartbeat", "InitProducerId", "JoinGroup", "LeaveGroup", "ListGroups", "ListOffsets"),
    *("ListTransactions", "Metadata", "OffsetCommit", "OffsetDelete", "OffsetFetch", "OffsetForLeaderEpoch"),
    *("Produce", "SaslAuthenticate", "SaslHandshake", "SyncGroup", "TxnOffsetCommit"),
)


NEEDS_THE_INSIDE = "it needs a principal that may describe the cluster and its internal topics"


def harmless(*jars: Path) -> Definitions:
    """The definitions of these requests from kafka-clients jars, newest first. Raises DefinitionError."""
    return Definitions.load(*carried(*jars, apis=HARMLESS))


def is_of_others(environment: Environment) -> bool:
    """Whether others may be on the cluster: no one else uses a program that the run has started."""
    return isinstance(environment.brokers, GivenRuntime) and environment.brokers.program is None


def without_commands(environment: Environment) -> Environment:
    """The same environment, in which no command of the user is run."""
    brokers = environment.brokers
    if not isinstance(brokers, GivenRuntime):
        return environment
    return replace(environment, brokers=replace(brokers, commands=BrokerCommands()))


def hindrance(needs: Needs, cluster: GivenCluster, *, one_broker: bool = False, inside: bool = False) -> str:
    """Why a case cannot be performed on this cluster; empty if it can. Raises ObservationError.

    `one_broker` is for a case that asks one broker for what several share, `inside` for one that needs more rights than
    those on the prefix.
    """
    return next(_hindrances(needs, cluster, one_broker=one_broker, inside=inside), "")


def _hindrances(needs: Needs, cluster: GivenCluster, *, one_broker: bool, inside: bool) -> Iterator[str]:
    if inside and not cluster.shows_its_inside:
        yield NEEDS_THE_INSIDE
    if one_broker and len(cluster.brokers) > 1:
        yield "it needs a cluster of one broker"
    if needs.releases or needs.secured:
        yield "it needs brokers of ours: of other releases, or with a listener of ours"
    if needs.settings:
        yield f"it needs brokers with {', '.join(f'{name}={value}' for name, value in sorted(needs.settings.items()))}"
    if needs.brokers not in (1, len(cluster.brokers)):
        yield f"it needs a cluster of {needs.brokers} brokers"
    level = cluster.levels().get("transaction.version", 0)
    if needs.level not in (None, LEVEL_OF_NEW_CLUSTERS, level):
        yield f"it needs transaction.version {needs.level}, and this cluster has {level}"


def reason_to_leave_out(error: Exception, cluster: GivenCluster) -> str:
    """Why a case that ended with this error cannot be performed on this cluster; empty if the error is no such reason."""
    match error:
        case NoCoordinatorTopicError() if not cluster.shows_its_inside:
            return NEEDS_THE_INSIDE
        case VersionError() | NoCoordinatorTopicError():
            return f"{NOT_IMPLEMENTED}: {error}"
        case BrokerError() if error.error in NO_RIGHT:
            return f"it needs a right that this principal does not have: {error}"
        case DefinitionError() | NotOursError():
            return f"not run on a cluster of yours: {error}"
    return ""


def remove_traces(case: CaseContext, client: Client, say: Callable[[str], None]) -> None:
    """Remove the topics and groups of a case; `say` gets a sentence for each that is left."""
    remove({f"topic {topic}": partial(client.delete_topics, [topic]) for topic in case.topics}, say)
    for leave in case.leaving.values():
        with suppress(WireError):  # a member that has left already; its session may also end by itself
            leave()
    try:
        groups = [name for name in client.list_groups() if name.startswith(f"{case.name}-")]
    except WireError as error:
        say(
            f"Groups that begin with {case.name}- may be left on your cluster, and tox -e sweep-up removes them: {error}"
        )
    else:
        remove({f"group {group}": partial(client.delete_groups, [group]) for group in groups}, say)
