"""Looks at a cluster of the user before anything is created there, and changes nothing.

It reaches each advertised listener, reads API versions, feature levels and quotas, and asks for each right in a way that
leaves no trace (`rights.py`). Missing rights are printed as the commands of `kafka-acls.sh` that grant them.
"""

from __future__ import annotations

import contextlib
import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from chaos.cluster import BrokerId
from fixtures.clusters.locks.releases import Release, ReleaseFiles, clients_jar
from fixtures.errors import EnvironmentProblemError, UsageError
from fixtures.recording.quiescence import QUESTIONS
from runner.given.cluster_watcher import by_release
from runner.given.options import ANSWERS_WITHIN_S, GivenOptions
from runner.given.quotas import quotas
from runner.given.rights import REPLICAS, NeededRight, asked_rights, by_resource, in_words, validate_topic
from runner.upgrades.path import line_of, release_lines
from wire.client import Client
from wire.codes import code_name
from wire.errors import BrokerError, ConnectError, DeadlineError, DisconnectedError, WireError
from wire.messages import Definitions
from wire.values import Features

if TYPE_CHECKING:
    from wire.values import Metadata

#: Transactions (KIP-98).
NEEDED = ("InitProducerId", "AddPartitionsToTxn", "EndTxn", "TxnOffsetCommit")
#: Their versions say which protocol of transactions clients can speak: EndTxn from v5 on is the second one (KIP-890).
SHOWN = ("Produce", "Fetch", *NEEDED)


class ClusterRefusedError(EnvironmentProblemError):
    """The cluster of the user cannot be reached, or does not let this principal in."""


class UnfitClusterError(UsageError):
    """The cluster of the user cannot carry a run."""


def preflight(given: GivenOptions, files: ReleaseFiles, *, only_requests: bool, say: Callable[[str], None]) -> None:
    """Look at the cluster, and print what was found; the program of its broker is started for that.

    Where `only_requests` are sent, one broker is enough, and each case finds out by itself what the broker offers.

    Raises ClusterRefusedError and UnfitClusterError, each in one sentence: before anything was created.
    """
    for remark in given.connection.remarks:
        say(f"client properties: {remark}")
    definitions = Definitions.load(clients_jar(files))
    with contextlib.ExitStack() as undo:
        if given.program:
            place = undo.enter_context(TemporaryDirectory(prefix="onceproof-preflight-"))
            at = undo.enter_context(given.program.running(Path(place)))
            given = replace(given, connection=given.connection.at(at))
        _look(given, definitions, files.release, only_requests=only_requests, say=say)


def _look(
    given: GivenOptions, definitions: Definitions, named: Release, *, only_requests: bool, say: Callable[[str], None]
) -> None:
    with given.connection.client(definitions, timeout_s=ANSWERS_WITHIN_S) as client:
        metadata = _reach(client, given)
        found = f"{len(metadata.brokers)} broker{'' if len(metadata.brokers) == 1 else 's'}"
        say(f"cluster: {found} at {given.connection.bootstrap}; names begin with {given.prefix}")
        stated = {
            BrokerId(broker): _reach_broker(client, broker, f"{address.host}:{address.port}")
            for broker, address in sorted(metadata.brokers.items())
        }
        _say_releases(release_lines(stated), named, say)
        features = ", ".join(f"{name} {level}" for name, level in sorted(client.features().finalized.items()))
        say(f"cluster: {features or 'no finalized features are known'}")
        for api in (each for each in QUESTIONS if not client.offers(each)):
            say(f"warning: the cluster does not offer {api}, so its answer is missing in the evidence: the log decides")
        absent = [api for api in NEEDED if not client.offers(api)]
        if absent and only_requests:
            say(f"cluster: it does not offer {', '.join(absent)}")
        elif absent:
            raise UnfitClusterError(f"The cluster at {given.connection.bootstrap} does not offer {', '.join(absent)}.")
        if len(metadata.brokers) < REPLICAS and not only_requests:
            raise UnfitClusterError(
                f"The cluster at {given.connection.bootstrap} has {len(metadata.brokers)} of the {REPLICAS} brokers that"
                " a scenario needs: its topics have three replicas."
            )
        versions = (f"{api} v{client.connection().version_for(api)}" for api in SHOWN if client.offers(api))
        say(f"cluster: it speaks {', '.join(versions)}")
        rights = _require_rights(client, given, replicated=not only_requests)
        principal = given.connection.principal
        say(f"cluster: {principal} has these rights on names that begin with {given.prefix}: {in_words(rights)}")
        for line in quotas(client, principal.removeprefix("User:")):
            say(f"cluster: {line}")


def _reach(client: Client, given: GivenOptions) -> Metadata:
    """The brokers of the cluster. Raises ClusterRefusedError."""
    bootstrap = given.connection.bootstrap
    try:
        return client.metadata([])
    except BrokerError as error:
        raise ClusterRefusedError(
            f"The cluster at {bootstrap} refuses this client: {error}.",
            hint="Check the user, the password and the mechanism in --client-properties.",
        ) from error
    except (ConnectError, DeadlineError, DisconnectedError) as error:
        raise ClusterRefusedError(
            f"The cluster at {bootstrap} cannot be reached: {error}.",
            hint="Check the address. If the listener wants TLS, set security.protocol in --client-properties.",
        ) from error
    except WireError as error:
        raise ClusterRefusedError(
            f"{bootstrap} does not speak Kafka's protocol here: {error}.",
            hint="This is how a listener that wants TLS answers: set security.protocol in --client-properties.",
        ) from error


def _say_releases(found: Mapping[BrokerId, str], named: Release, say: Callable[[str], None]) -> None:
    """Print the line of each broker's release, and warn of brokers that are of another than the run expects."""
    if not found:
        return
    say(f"cluster: {by_release(found)}")
    expected = f"Kafka {line_of(named)}"
    if others := {broker: release for broker, release in found.items() if release != expected}:
        say(
            f"warning: this run expects Kafka {named}, but the brokers' feature levels say {by_release(others)};"
            f" known bugs are those of {named}, and --kafka names another release"
        )


def _reach_broker(client: Client, broker: int, at: str) -> Features:
    """The broker's feature levels. Raises ClusterRefusedError if its advertised listener cannot be reached from here."""
    try:
        return client.features(broker)
    except WireError as error:
        raise ClusterRefusedError(
            f"Broker {broker} advertises {at}, which cannot be reached from here: {error}.",
            hint="The cluster was reached at its bootstrap servers; its advertised.listeners must be reachable, too.",
        ) from error


def _require_rights(client: Client, given: GivenOptions, *, replicated: bool) -> list[NeededRight]:
    """The rights that are there. Raises ClusterRefusedError with the commands that grant those that are missing.

    Raises UnfitClusterError where topics have to be `replicated`, and the cluster refuses such a topic.
    """
    name = f"{given.prefix}{uuid.uuid4().hex[:12]}-preflight"
    there, missing = asked_rights(client, name)
    if missing:
        commands = "\n  ".join(_command(given, *each) for each in by_resource(missing))
        raise ClusterRefusedError(
            f"{given.connection.principal} lacks rights on names that begin with {given.prefix}: {in_words(missing)}.",
            hint="An administrator grants them with these commands, if the brokers name the principal as Kafka does by"
            f" default:\n  {commands}",
        )
    for item in validate_topic(client, name)["Topics"] if replicated else ():
        if item["ErrorCode"]:
            raise UnfitClusterError(
                f"The cluster at {given.connection.bootstrap} refuses a topic with {REPLICAS} replicas: "
                f"{code_name(item['ErrorCode'])}: {item.get('ErrorMessage') or ''}."
            )
    return there


def _command(given: GivenOptions, resource: str, operations: Sequence[str]) -> str:
    file = f" --command-config {shlex.quote(str(given.file))}" if given.file else ""
    return (
        f"kafka-acls.sh --bootstrap-server {given.connection.bootstrap}{file} --add"
        f" --allow-principal {shlex.quote(given.connection.principal)} --resource-pattern-type prefixed"
        f" --{resource} {given.prefix}" + "".join(f" --operation {each}" for each in operations)
    )
