"""Takes brokers away step by step, and waits until the others know it, for reproductions that need a lost leader.

The cluster's witness is asked for leaders; it may get no answer while the metadata quorum is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from chaos.cluster import BrokerId
from fixtures.clusters.errors import ClusterError
from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.context import CaseContext
from wire.values import TopicPartition

#: A session of 3 s must end; where the controller itself went, an election comes first.
MISSED_WITHIN_S = 30.0


@contextmanager
def whole_afterwards(case: CaseContext) -> Iterator[None]:
    """Allow brokers to be gone inside; afterwards start all of them and wait until the cluster is whole."""
    try:
        yield
    finally:
        for broker in case.cluster.brokers:
            if not case.cluster.is_running(broker):
                case.cluster.start(broker)
        brokers.whole(case)


def leader(case: CaseContext, at: TopicPartition) -> BrokerId | None:
    """The leader of a partition, None when it has none; -1 while no broker can be asked."""
    with contextlib.suppress(ClusterError, KeyError):
        return _seen(case, at)
    return BrokerId(-1)


def _seen(case: CaseContext, at: TopicPartition) -> BrokerId | None:
    return case.cluster.view().partitions[at].leader


def await_leaderless(case: CaseContext, at: TopicPartition) -> None:
    """Wait until every broker knows that a partition has no leader; a precondition of the case."""
    seen = case.poll_until(lambda: leader(case, at), lambda each: each is None, within_s=MISSED_WITHIN_S)
    case.require(f"the leader of {at}", seen, None)
    # Each broker has its own copy of the metadata, and the case may ask another broker than this one.
    for broker in case.cluster.responsive():
        seen = case.poll_until(partial(_leader_to, case, at, broker), lambda each: each < 0, within_s=MISSED_WITHIN_S)
        case.require(f"the leader of {at} to broker {broker}", seen < 0, True)


def _leader_to(case: CaseContext, at: TopicPartition, broker: int) -> int:
    body = {"Topics": [{"Name": at.topic}], "AllowAutoTopicCreation": False}
    answer = case.client.call("Metadata", body, broker=broker)
    return int(answer["Topics"][0]["Partitions"][at.partition]["LeaderId"])
