"""KB-16 on the second cluster of a pipeline: a marker was dropped there, so inputs came back twice, or nothing came back.

The only broker of that cluster crashed, in a transaction that its recovery rolled back. Two facts show that an input came
back twice because the abort marker was dropped: in a partition there, records of a producer are followed by records of a
later epoch of the same producer, and no marker of it is in between; and the input is among the records in front and again
behind them. A producer gets a later epoch only when its transaction has ended. So the next marker decided both.

A pipeline that stood still has this cause if a transaction hangs there: its producers have ended, its timeout is over, and
the last stable offset is still below the high watermark. A worker of Kafka Connect that begins reads the topic of its
positions to its end, and waits for as long as a transaction hangs in it.

Limit: neither shows that the partition had no leader when the marker was to be sent. The log of the broker says so
(`brokers/second-cluster`).

Free of pyspark.
"""

from __future__ import annotations

from itertools import islice

from verification.evidence.peer_file import PeerRow
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import FaultRecord
from verification.vocabulary.violations import RawViolation

#: The name of the fault in the history (`chaos.faults.pipelines.CrashPeer`).
CRASH = "CrashPeer"


def dropped_at_peer(evidence: RunEvidence, violation: RawViolation) -> bool:
    """KB-16; see the module's docstring."""
    faults = evidence.history.of(FaultRecord)
    if not any(each.fault == CRASH and each.confirmed_ns is not None for each in faults):
        return False
    if violation.anomaly is Anomaly.NO_PROGRESS:
        return any(each.last_stable_offset < each.high_watermark for each in evidence.peer)
    if violation.index is None:
        return False
    # The index of a copy is the number of its input × the number of topics + its topic (docs/evidence.md).
    copied = violation.index // len(evidence.experiment.topics)
    return any(_dropped_before_again(partition.rows, copied) for partition in evidence.peer)


def _dropped_before_again(rows: tuple[PeerRow, ...], copied: int) -> bool:
    """Whether an input was copied in a transaction whose marker is missing, and again behind that."""
    places = [at for at, row in enumerate(rows) if row.input == copied]
    return any(_without_marker(rows, at) for at in places[:-1])


def _without_marker(rows: tuple[PeerRow, ...], at: int) -> bool:
    """Whether the producer of a record goes on with a later epoch before any marker of its own."""
    first = rows[at]
    own = (each for each in islice(rows, at, None) if each.producer_id == first.producer_id)
    following = (each for each in own if each.decision is not None or each.producer_epoch > first.producer_epoch)
    after = next(following, None)
    return after is not None and after.decision is None
