"""What a protocol case says about itself: the requirements it decides, the transaction versions it exists in, what it needs.

Cases with equal needs share a cluster, one after the other, in the order of the files; what a case leaves behind must
therefore be its own (topics, ids and groups are named after it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from chaos.cluster import Site
from fixtures.clusters.spec import ClusterSpec
from wire.transaction_versions import TransactionVersion

#: `@requirement("TXN-17")` above a case: the rows of the catalogue that it decides.
requirement = pytest.mark.requirement
#: `@versions(TransactionVersion.TV1)`: the transaction protocols whose requests it sends. Without it there is one run, in
#: whatever the broker speaks, because nothing in it depends on the generation.
versions = pytest.mark.versions
#: `@shares("stopped")`: the outages of its brokers that it goes through with others (`company.OUTAGES`), in order;
#: `time_critical=True` where time runs from its first request on.
shares = pytest.mark.shares
#: `@needs(Needs(brokers=3))`: the cluster; without it one broker with the harness's settings.
needs = pytest.mark.needs

BOTH = (TransactionVersion.TV1, TransactionVersion.TV2)
#: What a new cluster has finalized on every release that can be formatted with a level (TV2-01): whoever needs it shares
#: the cluster of those who do not mind, and requires it.
LEVEL_OF_NEW_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """A cluster that a case needs. `level` is the finalized `transaction.version`, the release's default where None.

    `settings` are server properties, for instance short expiries. `releases` are those of brokers that do not run the one
    under test, as in the middle of an upgrade; only processes of this machine can be of several. `secured` adds a
    listener behind TLS and SASL, whose users may do what they were granted; there is one on clusters of local processes
    with a metadata quorum.
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
            secured=self.secured,
            releases=self.releases,
            feature_levels={} if self._formatted is None else {"transaction.version": self._formatted},
        )

    @property
    def _formatted(self) -> int | None:
        """The level that must be named when the cluster is formatted, None where it comes by itself."""
        return None if self.level == LEVEL_OF_NEW_CLUSTERS else self.level

    def describe(self) -> str:
        """The cluster in words."""
        parts = ["1 broker" if self.brokers == 1 else f"{self.brokers} brokers, {self.replicas} replicas"]
        if self._formatted is not None:
            parts.append(f"transaction.version {self._formatted}")
        if self.secured:
            parts.append("a listener with SASL_SSL, an authorizer")
        parts += [f"broker {broker} of {release}" for broker, release in sorted(self.releases.items())]
        return ", ".join([*parts, *(f"{name}={value}" for name, value in sorted(self.settings.items()))])


#: Three brokers, three replicas each, two of which must be in sync: what a real cluster looks like.
THREE = Needs(brokers=3, replicas=3, min_in_sync=2)
#: One broker with an authorizer and a listener behind TLS and SASL.
SECURED = Needs(secured=True)
#: Everything that a broker does from time to time, it does at once: retention of records and of offsets, and cleaning.
#: The cleaner's map has room for about 870 keys (2 MiB × 0.01 / 24 bytes), so that larger segments take several passes.
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
#: A broker whose clocks run out after two seconds and are looked at five times a second (3.4+ for producer ids).
EXPIRING = Needs(
    settings={
        "transactional.id.expiration.ms": "2000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
        "producer.id.expiration.ms": "2000",
        "producer.id.expiration.check.interval.ms": "200",
        "offsets.retention.check.interval.ms": "200",
    }
)
