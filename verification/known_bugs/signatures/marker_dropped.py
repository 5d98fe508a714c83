"""KB-16: a marker was dropped while its partition had no leader.

The signature `marker-dropped-while-leaderless` needs three facts: a partition of the transaction holds its data without a
marker of the transaction (see `without_marker`); the partition had no leader when the marker was to be sent; and the
coordinator has nothing open for the transactional id any more. There are two proofs that it had no leader:

* The brokers' metadata named no leader at some time between the request to end the transaction and `MARKER_S` after its
  answer (markers are written after the answer). A leader that does not answer is still named.
* The coordinator's log says that the transaction, which had that partition, was complete before any leader was seen. While
  it sent the markers no leader of the partition answered, and the last look named none: there was none, or no broker
  could tell, as while all brokers start. A coordinator that was restarted begins to send when it has loaded its log.

Duplicates and a standstill by the second cluster of a pipeline have proofs of their own (`dropped_at_peer.py`).

Limit: with the second proof, a leader that was not seen may have led in between. A marker that was written to such a leader
and lost with it looks the same.

Free of pyspark.
"""

from __future__ import annotations

from verification.evidence.lso_samples import leaderless, no_leader_seen
from verification.evidence.run_evidence import RunEvidence
from verification.evidence.transaction_completions import sending_ns
from verification.known_bugs.signatures.dropped_at_peer import dropped_at_peer
from verification.known_bugs.signatures.facts import operation_of
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Operation
from verification.vocabulary.violations import Partition, RawViolation

#: The time after the answer to EndTxn in which a marker may still be under way: a restarted coordinator loads its
#: partition and sends the markers of transactions in Prepare within seconds.
MARKER_S = 10.0
#: Coordinator states in which markers are still to come (KIP-664 names).
RUNNING = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})
NS = 1_000_000_000


def without_marker(evidence: RunEvidence, ended: Operation) -> frozenset[Partition]:
    """Partitions where the operation's data is not followed by a marker of the operation.

    Its producer wrote nothing after it, or data of a later operation, or a marker with the other decision: that of a later
    transaction which had the partition but wrote nothing there.
    """
    process, operation = ended.process, ended.operation
    rows = evidence.capture_reader.producer_rows(process, operation)
    pending: set[Partition] = set()
    missing: set[Partition] = set()
    for topic_index, partition, _, control, writer, number, *_ in rows:
        here = (topic_index, partition)
        if (writer, number) == (process, operation):
            pending.add(here)
        elif here in pending:
            pending.discard(here)
            if control != ended.intent:
                missing.add(here)
    return frozenset(missing | pending)


def marker_dropped_while_leaderless(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-16; see the module's docstring."""
    if violation.anomaly in (Anomaly.DUPLICATE, Anomaly.NO_PROGRESS):
        return dropped_at_peer(evidence, violation)
    ended = operation_of(evidence, violation)
    if ended is None or ended.decided_ns is None or not evidence.experiment.has_log:
        return False
    states = {each.transactional_id: each.state for each in evidence.captures.coordinator_states}
    state = states.get(ended.transactional_id or "")
    if state is None or state in RUNNING:
        return False
    asked_ns = ended.decided_ns
    until_ns = (ended.completed_ns or asked_ns) + int(MARKER_S * NS)
    return any(
        _leaderless_between(evidence, partition, asked_ns, until_ns)
        or _completed_unseen(evidence, partition, sending_ns(evidence, ended, partition))
        for partition in without_marker(evidence, ended)
    )


def _leaderless_between(evidence: RunEvidence, partition: Partition, asked_ns: int, until_ns: int) -> bool:
    """The first proof: the metadata named no leader while the marker was to be sent."""
    return any(
        span.began_ns <= until_ns and (span.until_ns is None or span.until_ns > asked_ns)
        for span in leaderless(evidence, partition)
    )


def _completed_unseen(evidence: RunEvidence, partition: Partition, sending: tuple[int, int] | None) -> bool:
    """The second proof: the transaction was complete before any leader was seen."""
    return sending is not None and no_leader_seen(evidence, partition, *sending)
