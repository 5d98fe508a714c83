"""ISO: the answers of a broker whose index of aborted transactions had to be made anew from the log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runner.protocol.toolkit import brokers
from runner.protocol.toolkit.case import requirement, shares
from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.fetching import COMMITTED, UNCOMMITTED, fetch
from runner.protocol.toolkit.producer import plain, transactional
from runner.protocol.toolkit.timing import LONG_MS, ROLL_MS, SEGMENT_MS, now_ms
from verification.scripts.script import Relation
from wire.values import TopicPartition

#: The kinds of files that a broker can make anew; the offset index names the segment that lacks them.
MADE = ("index", "timeindex", "txnindex", "snapshot")
#: Below its recovery point, which it notes every minute, a killed broker recovers no segment (then KB-38 shows). Without the
#: note it recovers all of them, so that the claim does not depend on the minute.
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@requirement("ISO-21")
@shares("crashed")
def test_a_killed_broker_rebuilds_its_transaction_index(case: CaseContext) -> None:
    """A broker that was killed answers every Fetch as before, also where transaction index and snapshots are missing."""
    (at,) = case.topic(segment_ms=SEGMENT_MS)
    broker = case.leader(at)
    seen = _written(case, at)
    with brokers.crashed(case, broker):
        files = brokers.files(case, broker, at)
        _remove(case, files, ("txnindex", "snapshot"))
        (files.parent / RECOVERY_POINTS).unlink(missing_ok=True)
    _expect_same(case, at, seen)


@requirement("ISO-21")
@shares("stopped")
def test_a_stopped_broker_rebuilds_all_its_indexes(case: CaseContext) -> None:
    """A broker that was stopped cleanly answers every Fetch as before, also where all indexes and snapshots are missing."""
    (at,) = case.topic(segment_ms=SEGMENT_MS)
    broker = case.leader(at)
    seen = _written(case, at)
    with brokers.stopped(case, broker):
        _remove(case, brokers.files(case, broker, at), MADE)
    _expect_same(case, at, seen)


@requirement("ISO-21")
@shares("stopped")
def test_a_stopped_broker_rebuilds_its_transaction_index(case: CaseContext) -> None:
    """A broker that was stopped cleanly answers every Fetch as before, also where the transaction index is missing."""
    (at,) = case.topic(segment_ms=SEGMENT_MS)
    broker = case.leader(at)
    seen = _written(case, at)
    with brokers.stopped(case, broker):
        _remove(case, brokers.files(case, broker, at), ("txnindex",))
    _expect_same(case, at, seen)


def _written(case: CaseContext, at: TopicPartition) -> list[Any]:
    """Write overlapping transactions that abort in two segments, a committed and an open one; returns all answers."""
    early, late, open_one = (transactional(case, name, timeout_ms=LONG_MS) for name in ("early", "late", "open"))
    early.writes(at, values=["aborted early"])
    late.writes(at, values=["aborted late"])
    early.ends(commit=False)
    plain(case, at, "the next segment", timestamp_ms=now_ms() + ROLL_MS)
    early.writes(at, values=["committed"]).ends(commit=True)
    late.ends(commit=False)
    open_one.writes(at, values=["open"])
    seen = _views(case, at)
    case.require("answers to a Fetch that name aborted transactions", sum(bool(each[-1]) for each in seen), 7)
    case.require("what a reader is given", case.inspect.committed(at), ["the next segment", "committed"])
    return seen


def _views(case: CaseContext, at: TopicPartition) -> list[Any]:
    """The answers to Fetch from every offset, at both isolation levels: the batches, both ends, the aborted list."""
    found = []
    for isolation in (UNCOMMITTED, COMMITTED):
        for offset in range(case.inspect.end(at)):
            answer = fetch(case, at, isolation, offset=offset)
            offsets = [[each.base_offset, each.producer_id, each.control] for each in answer.batches]
            found.append([answer.code, offsets, answer.stable, answer.end, answer.aborted])
    return found


def _remove(case: CaseContext, files: Path, kinds: Iterable[str]) -> None:
    """Remove the files of these kinds, of which there must be some."""
    for kind in kinds:
        paths = sorted(files.glob(f"*.{kind}"))
        case.require(f"files of the kind {kind}", len(paths), 1, Relation.AT_LEAST)
        for path in paths:
            path.unlink()


def _expect_same(case: CaseContext, at: TopicPartition, seen: list[Any]) -> None:
    """Claim that every Fetch is answered as before."""
    case.expect("the answers to Fetch, at both isolation levels, from every offset", _views(case, at), seen)
    case.expect("what a reader is given", case.inspect.committed(at), ["the next segment", "committed"])
