"""The testbed of an exploration: one broker, the connections of all walks, and topics that are created in advance."""

from __future__ import annotations

import contextlib
import secrets

from chaos.cluster import Site
from fixtures.closing import Closing
from fixtures.clusters.runtime import RunningCluster
from fixtures.clusters.spec import ClusterSpec
from runner.explorer.broker import Broker, WalkConnections
from runner.explorer.observe import PLACES
from verification.specification.state import Rules
from wire.client import Client
from wire.errors import WireError
from wire.messages import Definitions
from wire.transaction_versions import AT_LEAST, TransactionVersion
from wire.values import CoordinatorType

#: Topics are created and deleted so many at a time: one request instead of many, and few enough partitions on the broker.
#: On a loaded machine a partition takes a tenth of a second, and several walkers ask for theirs at the same time.
TOPICS = 10
#: The broker looks for timed-out transactions ten times a second and soon deletes the files of deleted topics. Indexes
#: are small, because there are many topics.
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "log.segment.delete.delay.ms": "1000",
    "log.index.size.max.bytes": "65536",
}


def spec(release: str) -> ClusterSpec:
    """The cluster of an exploration."""
    return ClusterSpec(
        release=release, brokers=1, replicas=1, min_in_sync=1, sites=(Site("app"),), broker_settings=SETTINGS
    )


class BrokerTestbed(Closing):
    """A cluster's client and connections; `broker` gives each walk a new topic and name."""

    def __init__(self, cluster: RunningCluster, definitions: Definitions, release: str) -> None:
        self.release = release
        self.client = Client(cluster.witness_bootstrap, definitions, client_id="explorer")
        self._name = secrets.token_hex(4)
        self._walks = 0
        self._ready: list[str] = []
        self._used: list[str] = []
        # Both internal topics exist once a coordinator was asked for.
        for kind in CoordinatorType:
            broker = self.client.find_coordinator(self._name, kind)
        self._broker = broker
        self._connections = WalkConnections.open(self.client, broker)
        self.level = self.client.connection().features.get("transaction.version", 0)
        self.generations = tuple(each for each in TransactionVersion if self._offers(each))

    def _offers(self, generation: TransactionVersion) -> bool:
        """Whether the brokers have its requests, and the cluster's level allows them."""
        versions, keys = self.client.connection().versions, self.client.definitions.api_key
        offered = all(versions.get(keys(api), (0, -1))[1] >= least for api, least in AT_LEAST[generation].items())
        return offered and (generation is TransactionVersion.TV1 or self.level >= 2)

    def rules(self, generation: TransactionVersion) -> Rules:
        """The facts about the brokers that the model must know."""
        return Rules(release=self.release, generation=generation, level=self.level)

    def broker(self, rules: Rules, *, timeout_ms: int) -> Broker:
        """The answerer of one walk."""
        if self._connections.ended:
            self._connections.close()
            self._connections = WalkConnections.open(self.client, self._broker)
        self._walks += 1
        name = f"{self._name}-{self._walks}"
        return Broker(self.client, self._connections, rules, name=name, topic=self._topic(), timeout_ms=timeout_ms)

    def _topic(self) -> str:
        if not self._ready:
            if self._used:
                with contextlib.suppress(WireError):  # they are only in the way
                    self.client.delete_topics(self._used)
                self._used.clear()
            self._ready = [f"{self._name}-{self._walks}-{number}" for number in range(TOPICS)]
            self.client.create_topics(dict.fromkeys(self._ready, len(PLACES)))
        self._used.append(self._ready.pop())
        return self._used[-1]

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()
        self.client.close()
