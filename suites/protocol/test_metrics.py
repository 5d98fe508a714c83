"""Metrics by which an operator sees what transactions hold back, read by JMX as a monitoring system does."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

from runner.protocol.toolkit import brokers, replicas
from runner.protocol.toolkit.case import THREE, needs, requirement, shares
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.coordinators import id_at
from runner.protocol.toolkit.fetching import COMMITTED, fetch
from runner.protocol.toolkit.metrics import BrokerMetrics, of_partition
from runner.protocol.toolkit.producer import plain, transactional
from runner.protocol.toolkit.timing import now_ms
from verification.scripts.script import Relation

#: The server's default of transaction.max.timeout.ms; a transaction is late five minutes after it.
LATE_AFTER_MS = (15 + 5) * 60_000
MINUTE_MS = 60_000
LATE = "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount"
MARKERS = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager"
UNSENT, UNSTORED = f"{MARKERS},name=UnknownDestinationQueueSize", f"{MARKERS},name=LogAppendRetryQueueSize"
VERIFIED = "kafka.server:type=AddPartitionsToTxnManager"
LOADED = "kafka.server:type=transaction-coordinator-metrics"
#: The queue of a coordinator follows its markers at once; the rest is for a busy machine.
QUEUED_WITHIN_S = 15.0


@requirement("ISO-25")
def test_the_metric_of_the_stable_offset_is_its_distance(case: CaseContext) -> None:
    """LastStableOffsetLag is the high watermark minus the last stable offset, with and without an open transaction."""
    (at,) = case.topic()
    with closing(BrokerMetrics(case, case.leader(at))) as metrics:

        def claim(when: str, distance: int) -> None:
            found = fetch(case, at, COMMITTED)
            case.require(f"{when}: the high watermark minus the stable offset", found.end - found.stable, distance)
            lag = metrics.value(of_partition("LastStableOffsetLag", at))
            case.expect(f"{when}: LastStableOffsetLag", lag, distance)

        plain(case, at, "a")
        claim("nothing is open", 0)
        early, late = (transactional(case, name).writes(at, values=["b", "c"]) for name in ("early", "late"))
        claim("two are open", 4)
        early.ends(commit=True)
        claim("the earlier one is committed", 3)
        late.ends(commit=False)
        claim("the later one is aborted", 0)


@requirement("ADM-06")
def test_the_metric_of_late_transactions_counts_late_ones(case: CaseContext) -> None:
    """PartitionsWithLateTransactionsCount counts a transaction once it is five minutes over the longest timeout."""
    on_time, late = case.topic(partitions=2)
    with closing(BrokerMetrics(case, case.leader(late))) as metrics:
        case.require("the count before", metrics.value(LATE), 0)
        # The age of a transaction is that of its last batch, by the timestamp that its producer gave it.
        began = {on_time: now_ms() - LATE_AFTER_MS + MINUTE_MS, late: now_ms() - LATE_AFTER_MS - MINUTE_MS}
        producers = []
        for number, (at, timestamp_ms) in enumerate(began.items()):
            producer = transactional(case, str(number))
            producers.append(producer)
            case.set_up("the partition is added", partial(producer.add, at))
            case.require_code(f"a batch to {at}", producer.produce(at, ["a"], timestamp_ms=timestamp_ms))
            case.require(f"the stable offset of {at}", case.inspect.stable(at), 0)
            case.expect(f"the count, open partitions: {number + 1}", metrics.value(LATE), number)
        for producer in reversed(producers):
            producer.ends(commit=False)
            case.expect("the count after an end", metrics.value(LATE), 0)


@requirement("ADM-08")
@needs(THREE)
@shares("stopped")
def test_the_queues_of_a_coordinator_are_empty_at_last(case: CaseContext) -> None:
    """The coordinator counts a marker that it owes to a partition without a leader, and has empty queues afterwards."""
    gone = brokers.spare(case)
    coordinator = next(each for each in case.brokers if each != gone)
    (at,) = replicas.placed(case, [gone], min_insync_replicas="1")
    owner = id_at(case, "owner", coordinator).writes(at)
    with closing(BrokerMetrics(case, coordinator)) as metrics:
        with brokers.stopped(case, gone):
            case.require_code("EndTxn(commit)", owner.end(commit=True))
            # The other end is a coordinator that has dropped the marker: it owes none, and must count none (KB-16).
            owed = [["PrepareCommit", True], ["CompleteCommit", False]]

            def look() -> list[Any]:
                return [case.inspect.state(str(owner.transactional_id)), metrics.value(UNSENT) > 0]

            seen = case.poll_until(look, lambda each: each in owed, within_s=QUEUED_WITHIN_S)
            case.expect("the state without a leader, and whether a marker is queued", seen, owed, Relation.ONE_OF)
        case.require("the state", case.inspect.complete(owner.transactional_id), "CompleteCommit")
        for name in (UNSENT, UNSTORED):
            left = case.poll_until(partial(metrics.value, name), lambda seen: seen == 0, within_s=QUEUED_WITHIN_S)
            case.expect(f"{name.rpartition('=')[2]} at last", left, 0)
        _expect_present(case, metrics)


def _expect_present(case: CaseContext, metrics: BrokerMetrics) -> None:
    """Claim the metrics of verification and of loading that the release should have."""
    if case.since("3.6.0"):
        rate = metrics.value(f"{VERIFIED},name=VerificationFailureRate", "Count")
        case.expect("VerificationFailureRate", rate, 0, Relation.AT_LEAST)
        times = metrics.value(f"{VERIFIED},name=VerificationTimeMs", "Count")
        case.expect("VerificationTimeMs, how many", times, 0, Relation.AT_LEAST)
    if case.since("2.5.0"):
        for name in ("partition-load-time-avg", "partition-load-time-max"):
            case.expect(f"{name} is there", metrics.value(LOADED, name) is not None, True)
