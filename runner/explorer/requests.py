"""Turns a move into the request that it means in a state of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from verification.specification.state import (
    LAST_SEQUENCE,
    NO_EPOCH,
    ModelPartition,
    ModelRequest,
    ModelState,
    RequestKind,
    TransactionPhase,
)

if TYPE_CHECKING:
    from runner.explorer.moves import Move

#: The epoch that an instance without one names where the id is not initialised.
FIRST_EPOCH = 0
GAP, LONG_AGO = 3, 7


def resolved(
    move: Move, state: ModelState, epochs: Sequence[int], frames: Mapping[int, ModelRequest]
) -> ModelRequest | None:
    """The request, or None for a move that means nothing now."""
    if move.send == "replay":
        return frames.get(move.of)
    if move.kind is RequestKind.LOOK:
        return ModelRequest(kind=RequestKind.LOOK)
    if move.kind is RequestKind.EXPIRE:
        return ModelRequest(kind=RequestKind.EXPIRE) if state.phase is TransactionPhase.ONGOING else None
    if move.who < 0 and state.phase is not TransactionPhase.ONGOING:
        return None  # no transaction is open that an owner could end
    epoch = _epoch(move, state, epochs)
    if epoch is None:
        return None
    # Before the id is initialised its producer id is not known: a request that names one always names a foreign one.
    foreign = move.foreign or (state.phase is TransactionPhase.ABSENT and epoch != NO_EPOCH)
    common = ModelRequest(kind=move.kind, epoch=epoch, foreign=foreign, place=move.place, meant=state.meant)
    return _filled(move, state, common)


def _epoch(move: Move, state: ModelState, epochs: Sequence[int]) -> int | None:
    if move.epoch == "none":
        return NO_EPOCH
    mine = state.epoch if move.who < 0 else epochs[move.who]
    if mine == NO_EPOCH:
        return FIRST_EPOCH if state.phase is TransactionPhase.ABSENT and move.epoch == "told" else None
    epoch = mine + {"told": 0, "told - 1": -1, "told + 1": 1}[move.epoch]
    return epoch if epoch >= 0 else None


def _filled(move: Move, state: ModelState, common: ModelRequest) -> ModelRequest | None:
    if move.kind is RequestKind.INIT:
        return None if move.foreign and common.epoch == NO_EPOCH else common
    if move.kind is RequestKind.COMMIT_OFFSET:
        return replace(common, offset=100 + move.number)
    if move.kind is RequestKind.END:
        return replace(common, commit=move.commit)
    if move.kind is RequestKind.PRODUCE:
        found = _sequence(move, state.places[move.place], common.epoch)
        if found is None:
            return None
        sequence, count = found
        values = tuple(f"{move.number}.{index}" for index in range(count))
        return replace(common, sequence=sequence & LAST_SEQUENCE, values=values)
    return common


def _sequence(move: Move, place: ModelPartition, epoch: int) -> tuple[int, int] | None:
    """First sequence and number of records."""
    following = place.next_for(epoch)
    batches = place.batches if place.epoch == epoch else ()
    if move.sequence == "next":
        return following, move.count
    if move.sequence == "gap":
        return following + GAP, move.count
    if move.sequence == "highest":
        return LAST_SEQUENCE, 1
    if move.sequence == "long ago":
        return (following - LONG_AGO, 1) if following >= LONG_AGO else None
    if len(batches) < move.back:
        return None
    batch = batches[-move.back]
    count = ((batch.last - batch.first) & LAST_SEQUENCE) + 1
    return batch.first, count + (move.sequence != "again")
