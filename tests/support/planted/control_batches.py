"""Control batches as a coordinator has them written."""

from __future__ import annotations

from wire.records import Marker, encode


def marker(at: int, producer_id: int, decision: Marker, *, epoch: int = -1) -> bytes:
    """A batch with one end transaction marker."""
    key = b"\0\0" + int(decision).to_bytes(2, "big")
    return encode(
        [(key, bytes(6))],
        base_offset=at,
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )
