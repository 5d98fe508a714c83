"""KB-16 on the second cluster of a pipeline: duplicates are named only if a marker was dropped in front of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted import counts
from tests.support.planted.files import write
from verification.evidence import peer_file
from verification.evidence.peer_file import PeerPartition, PeerRow
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.known_bugs.signatures.recognise import recognise
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import FaultRecord
from verification.vocabulary.violations import RawViolation

#: Two inputs in a transaction whose marker is missing, again in the next one, and a third one that is not repeated.
DROPPED = (
    PeerRow(0, 5, 1, None, 7),
    PeerRow(1, 5, 1, None, 8),
    PeerRow(2, 5, 3, None, 7),
    PeerRow(3, 5, 3, None, 8),
    PeerRow(4, 5, 3, None, 9),
    PeerRow(5, 5, 4, "commit", None),
)
#: The same with the marker of each transaction.
MARKED = (*DROPPED[:2], PeerRow(2, 5, 2, "abort", None), *(row._replace(offset=row.offset + 1) for row in DROPPED[2:]))
#: The transaction in front is of another producer: it is open.
OTHER = (*(row._replace(producer_id=6) for row in DROPPED[:2]), *DROPPED[2:])
#: The same epoch goes on.
SAME = tuple(row._replace(producer_epoch=3) for row in DROPPED)
CRASHED = FaultRecord(step=0, fault="CrashPeer", description="", target="", began_ns=1, confirmed_ns=2)


def evidence(
    root: Path, rows: tuple[PeerRow, ...], fault: FaultRecord, release: str = "4.3.1", stable: int = 6
) -> RunEvidence:
    """A run of a pipeline with a second cluster."""
    directory = write(counts.counted("peer")[0], root / "run")
    line = PeerPartition(topic="orders", partition=0, high_watermark=6, last_stable_offset=stable, rows=rows)
    peer_file.write(directory.peer, [line])
    read = read_run(directory)
    history = replace(read.history, entries=(*read.history.entries, fault))
    return replace(read, history=history, experiment=replace(read.experiment, release=release))


def twice(number: int) -> RawViolation:
    """A second copy of an input, by its number; the run has two topics."""
    return RawViolation(anomaly=Anomaly.DUPLICATE, process=9, operation=0, index=2 * number + 1)


def test_inputs_of_a_dropped_marker_are_named(tmp_path: Path) -> None:
    """Every one of the finding, on an affected release."""
    told = evidence(tmp_path, DROPPED, CRASHED)
    assert recognise(told, [twice(7), twice(8)]) == "KB-16"
    assert recognise(told, [twice(7), twice(9)]) is None, "the last one was copied once there"


@pytest.mark.parametrize(
    "other",
    [
        {"rows": MARKED},
        {"rows": OTHER},
        {"rows": SAME},
        {"rows": DROPPED[:2]},
        {"fault": replace(CRASHED, confirmed_ns=None)},
        {"fault": replace(CRASHED, fault="CrashBroker")},
        {"release": "4.2.1"},
    ],
)
def test_a_near_miss_stays_unnamed(tmp_path: Path, other: dict[str, Any]) -> None:
    """With each marker, of two producers, in one epoch, without a repetition, without the crash, on a sound release."""
    given: dict[str, Any] = {"rows": DROPPED, "fault": CRASHED, **other}
    assert recognise(evidence(tmp_path, **given), [twice(7), twice(8)]) is None


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"stable": 5}, "KB-16"),
        ({"stable": 6}, None),
        ({"stable": 5, "fault": replace(CRASHED, fault="CrashBroker")}, None),
        ({"stable": 5, "release": "3.9.2"}, None),
    ],
)
def test_a_standstill_is_named_if_a_transaction_hangs_there(
    tmp_path: Path, other: dict[str, Any], name: str | None
) -> None:
    """Not without a hanging transaction, without the crash, or on a sound release."""
    told = evidence(tmp_path, **{"rows": MARKED, "fault": CRASHED, **other})
    stood = RawViolation(anomaly=Anomaly.NO_PROGRESS, topic_index=0, partition=0, offset=842)
    assert recognise(told, [stood]) == name
