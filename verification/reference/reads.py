"""Wrong reads: records that readers must not have received, did not receive, or received in two versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from verification.evidence.row_types import Row
from verification.reference.run_index import RunIndex, Spot, violation
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.violations import GONE, Partition, RawViolation


def _earliest(index: RunIndex, spot: Spot) -> tuple[int, str] | None:
    """When the first read_committed observer received a place, and its name."""
    received = [row for row in spot.observed if row["committed_reader"]]
    if not received:
        return None
    first = min(received, key=lambda row: (row["received_ns"] // 1000, row["observer_index"]))
    return min(row["received_ns"] for row in received), index.observers[first["observer_index"]]["observer"]


def read(index: RunIndex) -> Iterator[RawViolation]:
    """aborted-read, else early-read."""
    for place, spot, row in index.records():
        earliest = _earliest(index, spot)
        operation = index.operation(row)
        told = index.told(row)
        if earliest is None and not spot.committed:
            continue
        if spot.outcome == "abort" or told == "aborted":
            observer = "committed" if earliest is None else earliest[1]
            yield violation(Anomaly.ABORTED_READ, row, place, observer=observer, live=not spot.committed)
        elif index.has_log and told is not None and operation is not None and earliest is not None:
            decided_ns = operation["decided_ns"]
            early = decided_ns is not None and earliest[0] < decided_ns
            found = violation(Anomaly.EARLY_READ, row, place, observer=earliest[1], live=True)
            yield from [found] if early else []


def polls(index: RunIndex) -> Iterator[RawViolation]:
    """nonmonotonic-poll and poll-skip, the uncommitted capture included."""
    if not index.has_log:
        return
    given: dict[tuple[int, Partition], list[int]] = defaultdict(list)
    for row in sorted(index.rows["observations"], key=lambda row: (row["poll"], row["position"])):
        given[row["observer_index"], (row["topic_index"], row["partition"])].append(row["offset"])
    for (observer_index, partition), offsets in given.items():
        observer = index.observers[observer_index]
        back = {after for before, after in pairwise(offsets) if after <= before}
        for offset in back:
            place = (*partition, offset)
            record = index.record(index.spots[place])
            yield violation(Anomaly.NONMONOTONIC_POLL, record, place, observer=observer["observer"], live=True)
        received = set(offsets)
        for offset in range(max(offsets)):
            spot = index.spots.get((*partition, offset))
            if spot is None or spot.row is None or spot.row.get("control") is not None or offset in received:
                continue
            if spot.outcome == "commit" or not observer["committed_reader"]:
                place, name = (*partition, offset), observer["observer"]
                live = bool(spot.committed if observer["committed_reader"] else spot.uncommitted)
                facts = {"observer": name, "harm": index.unread(spot, spot.row), "live": live}
                yield violation(Anomaly.POLL_SKIP, spot.row, place, **facts)
    for place, spot in index.spots.items():
        end = index.ends.get(place[:2])
        data = spot.row if spot.row is not None and spot.row.get("control") is None else None
        if data is not None and not spot.uncommitted and end is not None and place[2] < end["high_watermark"]:
            yield violation(Anomaly.POLL_SKIP, data, place, observer="uncommitted", harm=index.unread(spot, data))


def inconsistent(index: RunIndex) -> Iterator[RawViolation]:
    """inconsistent-offset."""
    for place, spot in index.spots.items() if index.has_log else ():
        every = spot.given() if spot.row is None else [spot.row, *spot.given()]
        contents = {row["digest"] for row in every if row.get("digest") is not None}
        identities = {row["identity_digest"] for row in every if row["identity_digest"] is not None}
        if len(contents) > 1 or len(identities) > 1 or _not_the_logs(spot):
            cause = GONE if spot.row is None else None
            found = _gone(index, spot)
            yield violation(Anomaly.INCONSISTENT_OFFSET, found, place, cause=cause, harm=index.given(spot))


def captured_twice(index: RunIndex) -> Iterator[RawViolation]:
    """nonmonotonic-poll of the captures."""
    for place, spot in index.spots.items():
        for capture, rows in (("committed", spot.committed), ("uncommitted", spot.uncommitted)):
            if len(rows) > 1:
                yield violation(Anomaly.NONMONOTONIC_POLL, index.record(spot), place, observer=capture)


def _not_the_logs(spot: Spot) -> bool:
    """Whether a reader received a record where the log holds none or a control record, or a foreign one instead of ours."""
    if not spot.given():
        return False
    if spot.row is None or spot.row.get("control") is not None:
        return True
    if not spot.row["valid"] or not spot.row["identity_digest"]:  # an empty value has the digest 0, and no text
        return False
    # What an observer received is compared by its digest, if it has one: an identity may be elsewhere than in the value.
    without = [row for row in spot.observed if row["identity_digest"] is None]
    return any(not row["valid"] for row in (*spot.committed, *spot.uncommitted, *without))


def _gone(index: RunIndex, spot: Spot) -> Row | None:
    """A record that a reader received and that the log does not hold: the one with the highest digest that differs."""
    with_digest = [row for row in spot.given() if row["identity_digest"] is not None]
    own = None if spot.row is None else spot.row["identity_digest"]
    highest = max(with_digest, key=lambda row: int(row["identity_digest"]), default=None)
    if highest is not None and own is not None and highest["identity_digest"] == own:
        highest = min(with_digest, key=lambda row: int(row["identity_digest"]))
    return highest if highest is not None and highest.get("identity_run") == index.name else None
