"""The work on a second cluster: committed records at and above a connector's position, wherever markers and aborts are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from runner.scenarios import peer_cluster
from runner.scenarios.peer_cluster import records_left
from tests.support.planted.control_batches import marker
from wire.records import Batch, Marker, decode, encode
from wire.values import TopicPartition

PLACE = TopicPartition("home.orders", 0)


def records(at: int, count: int, producer_id: int) -> bytes:
    return encode([(b"k", b"v")] * count, base_offset=at, producer_id=producer_id, transactional=True)


#: Three records that were committed, two that were aborted, one that was committed; 9 is the end.
LOG = (
    records(0, 3, 5),
    marker(3, 5, Marker.COMMIT),
    records(4, 2, 6),
    marker(6, 6, Marker.ABORT),
    records(7, 1, 5),
    marker(8, 5, Marker.COMMIT),
)


class Broker:
    """A client of a cluster with one partition, which ends there."""

    def list_offsets(self, places: Iterable[TopicPartition], **_: object) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 9)


def log_from(client: object, topic: str, partition: int, start: int, end: int) -> list[Batch]:
    """Whole batches, as a broker sends them: the first may begin before the start."""
    assert (topic, partition, end) == (*PLACE, 9)
    return [batch for part in LOG for batch in decode(part) if batch.next_offset > start]


@pytest.mark.parametrize(("position", "left"), [(None, 4), (0, 4), (2, 2), (3, 1), (7, 1), (8, 0), (9, 0)])
def test_records_are_counted_and_not_offsets(monkeypatch: pytest.MonkeyPatch, position: int | None, left: int) -> None:
    """A connector that copied the last record is done, though a marker lies behind its position."""
    monkeypatch.setattr(peer_cluster, "fetch_log", log_from)
    broker: Any = Broker()
    assert records_left(broker, [PLACE], {} if position is None else {PLACE: position}) == left
