"""A torn transaction is named after KB-43 only if the log of the coordinators lacks the decision of a marker."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.planted.files import write
from tests.support.planted.histories import Planted
from verification.evidence.rows import all_rows
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.evidence.transaction_log_file import LogHeader, LogRange, TransactionLog
from verification.judge.primary_findings import attribute
from verification.known_bugs.signatures.recognise import recognise
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.transaction_log import Entry, State

HERE, THERE = (0, 0), (1, 0)
NS_PER_MS = 1_000_000
LOST = (State.ONGOING, State.PREPARE_ABORT, State.COMPLETE_ABORT)


def torn(
    root: Path,
    *,
    states: tuple[State, ...] = LOST,
    markers: tuple[str, str] = ("commit", "abort"),
    later_ms: int = 0,
    release: str = "4.3.1",
) -> RunEvidence:
    """A transaction with a marker on each of two partitions, and a log that begins `later_ms` after its commit was asked."""
    planted = Planted(run="story")
    client = planted.client("tx-0")
    operation, _ = planted.transaction(client, (HERE, THERE), decision=None)
    for place, marker in zip((HERE, THERE), markers, strict=True):
        planted.mark(client, place, marker)
    evidence = read_run(write(planted.finish(), root))
    zero_ms = round(datetime.fromisoformat(evidence.history.wall_clock_anchor).timestamp() * 1_000)
    asked_ms = zero_ms + (operation.decided_ns or 0) // NS_PER_MS
    entries = tuple(
        Entry(
            partition=0,
            offset=7 + number,
            transactional_id="tx-0",
            state=state,
            producer_id=client.producer_id,
            epoch=0,
            places=frozenset() if state.startswith("Complete") else frozenset({"a-0", "b-0"}),
            began_ms=asked_ms + later_ms - 1,
            updated_ms=asked_ms + later_ms + number,
            appended_ms=asked_ms + later_ms + number,
        )
        for number, state in enumerate(states)
    )
    ranges = (LogRange(partition=0, start=7, end=7 + len(entries)),)
    return replace(
        evidence,
        experiment=replace(evidence.experiment, release=release, runtime="local"),
        transaction_log=TransactionLog(header=LogHeader(run="story", ranges=ranges), entries=entries),
    )


def name(evidence: RunEvidence) -> str | None:
    """The known bug that the torn transaction is named after."""
    found = attribute(judge_rows(all_rows(evidence))).primary
    return recognise(evidence, found[Anomaly.TORN_TRANSACTION])


@pytest.mark.parametrize("markers", [("commit", "abort"), ("abort", "commit")])
def test_a_commit_marker_without_its_decision_is_named(markers: tuple[str, str], tmp_path: Path) -> None:
    """The coordinators decided to abort, and yet a partition is committed."""
    assert name(torn(tmp_path / "run", markers=markers)) == "KB-43"


@pytest.mark.parametrize(
    "change",
    [
        {"states": (State.ONGOING, State.PREPARE_COMMIT, State.COMPLETE_COMMIT)},
        {"states": (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT, State.COMPLETE_ABORT)},
        {"states": (State.ONGOING,)},
        {"later_ms": 5},
        {"release": "an external service"},
    ],
    ids=["decided to commit", "decided twice", "undecided", "another transaction", "another release"],
)
def test_another_torn_transaction_stays_unnamed(change: dict[str, object], tmp_path: Path) -> None:
    """Markers that contradict a decision in the log have another cause, and so has a torn transaction without a log."""
    assert name(torn(tmp_path / "run", **change)) is None  # type: ignore[arg-type]
