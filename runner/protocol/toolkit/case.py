"""Marks of protocol cases: the requirements they decide, their transaction versions, their outages and their cluster.

Cases with equal needs share a cluster, one after the other, in the order of the files. Topics, ids and groups that a case
leaves behind must therefore be its own; their names contain the name of the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from chaos.cluster import Site
from fixtures.clusters.spec import ClusterSpec, SecuredListener
from wire.transaction_versions import TransactionVersion

#: `@requirement("TXN-17")` above a case: the rows of the catalogue that it decides.
requirement = pytest.mark.requirement
#: `@versions(TransactionVersion.TV1)`: the transaction versions whose requests it sends. A case without it depends on no
#: version. It is performed once, in the newest one that the brokers offer.
versions = pytest.mark.versions
#: `@shares("stopped")`: the outages that it goes through together with other cases (`shared_outages.OUTAGES`), in order;
#: `time_critical=True` if its time runs from its first request on.
shares = pytest.mark.shares
#: `@alone`: its script states an upper bound on time that a busy machine could exceed, so nothing else runs meanwhile. A
#: wait that only ends sooner or later is no such bound.
alone = pytest.mark.alone
#: `@needs(Needs(brokers=3))`: the cluster; without it one broker with the harness's settings.
needs = pytest.mark.needs
#: For cases that ask one broker for what several brokers share, such as the list of all transactions; or that write to
#: several partitions in one request. They are not for a cluster of the user with several brokers.
one_broker = pytest.mark.one_broker
#: For cases whose answers lack what a principal may not describe: internal topics, or ids that are not under its prefix.
inside = pytest.mark.inside

BOTH = (TransactionVersion.TV1, TransactionVersion.TV2)
#: The level that a new cluster has finalized, on every release that can be formatted with a level (TV2-01). A case that
#: needs it shares the cluster of cases without a level, and requires it.
LEVEL_OF_NEW_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """A cluster that a case needs.

    `level` is the finalized `transaction.version`; None is the default of the release. `settings` are server properties,
    for instance short expiries. `releases` names brokers of another release than the one under test, as in the middle of
    an upgrade; only local processes can mix releases. `secured` adds a listener behind TLS and SASL with an authorizer;
    only clusters of local processes with a metadata quorum can have it.
    """

    brokers: int = 1
    replicas: int = 1
    min_in_sync: int = 1
    level: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    secured: bool = False
    releases: Mapping[int, str] = field(default_factory=dict, hash=False)

    def spec(self, release: str) -> ClusterSpec:
        """The cluster of a release."""
        return ClusterSpec(
            release=release,
            brokers=self.brokers,
            replicas=self.replicas,
            min_in_sync=self.min_in_sync,
            sites=(Site("app"),),
            broker_settings=self.settings,
            secured=SecuredListener() if self.secured else None,
            releases=self.releases,
            feature_levels={} if self._formatted is None else {"transaction.version": self._formatted},
        )

    @property
    def _formatted(self) -> int | None:
        """The level to format the cluster with; None if a new cluster has it by default."""
        return None if self.level == LEVEL_OF_NEW_CLUSTERS else self.level

    def describe(self) -> str:
        """The cluster in words."""
        internal = f"internal topics with replication factor {self.replicas}, min ISR {self.min_in_sync}"
        parts = ["1 broker" if self.brokers == 1 else f"{self.brokers} brokers, {internal}"]
        if self._formatted is not None:
            parts.append(f"transaction.version {self._formatted}")
        if self.secured:
            parts.append("a listener with SASL_SSL, an authorizer")
        parts += [f"broker {broker} of {release}" for broker, release in sorted(self.releases.items())]
        return ", ".join([*parts, *(f"{name}={value}" for name, value in sorted(self.settings.items()))])


#: Three brokers, three replicas each, two of which must be in sync, as in a real cluster.
THREE = Needs(brokers=3, replicas=3, min_in_sync=2)
#: One broker with an authorizer and a listener behind TLS and SASL.
SECURED = Needs(secured=True)
#: A broker that does its periodic work at once: retention of records and of offsets, and cleaning. The map of its cleaner
#: holds about 870 keys (2 MiB × 0.01 / 24 bytes), so that larger segments take several passes.
HASTY = Needs(
    settings={
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "offsets.retention.check.interval.ms": "500",
        "log.cleaner.backoff.ms": "100",
        "log.cleaner.dedupe.buffer.size": str(2 * 1024 * 1024),
        "log.cleaner.io.buffer.load.factor": "0.01",
    }
)
#: A broker whose expiries are two seconds and are checked five times a second (3.4+ for producer ids).
EXPIRING = Needs(
    settings={
        "transactional.id.expiration.ms": "2000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
        "producer.id.expiration.ms": "2000",
        "producer.id.expiration.check.interval.ms": "200",
        "offsets.retention.check.interval.ms": "200",
    }
)
