"""The model of partition leaders: transactional batches and the offsets of a group.

A leader that has the transaction open takes batches by their sequence alone. Otherwise it asks the coordinator, which in
TV2 adds the partition (KIP-890). A batch that was verified and not appended stays in the leader's memory: until the next
append the leader takes no batch with a higher sequence (VerificationStateEntry.lowestSequence). That is KB-17, or EX-05
where the batch named an epoch that no instance was given. The defect does not always show, because the leader may have
forgotten the batch meanwhile.
"""

from __future__ import annotations

from dataclasses import replace

from verification.specification.state import (
    GROUP,
    LAST_SEQUENCE,
    NO_EPOCH,
    REMEMBERED,
    AllowedOutcome,
    ModelAnswer,
    ModelBatch,
    ModelPartition,
    ModelRequest,
    ModelState,
    Rules,
    TransactionPhase,
)
from verification.specification.transaction import begun, refused
from wire.codes import ErrorCode as Code


def produce(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """IDEMP-03 to IDEMP-13, TXN-22, TV2-03, TV2-06, TV2-07."""
    place = state.places[request.place]
    if _unasked(rules, request, opened=place.open, epoch=place.epoch):
        return _joining(rules, state, request)
    known = place.open and place.epoch == request.epoch and not request.foreign
    if not known:
        code = _verified(rules, state, request, request.place, place.epoch)
        if code != Code.NONE:
            early = request.epoch < place.epoch and rules.since("4.1.0")
            after = state if early or request.foreign else _remembering(state, request)
            return (refused(code, after),)
        if rules.tv2:
            state = begun(state, request.place)
    return _appended(rules, state, request, verified=not known)


def _unasked(rules: Rules, request: ModelRequest, *, opened: bool, epoch: int) -> bool:
    """Whether a leader that has a transaction open takes a higher epoch for the same producer's, as before 4.0."""
    return opened and request.epoch > epoch and not request.foreign and not rules.since("4.0.0")


def _joining(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """A higher epoch during a transaction: like TXN-11, because the coordinator never gave this epoch to an instance.

    The leader may check the sequence first; that appends nothing either.
    """
    fenced, gap = (refused(code, state) for code in (Code.INVALID_PRODUCER_EPOCH, Code.OUT_OF_ORDER_SEQUENCE_NUMBER))
    if request.sequence != 0:
        return (fenced, gap)
    taken = _taken(rules, state, request, len(request.values) - 1)
    return (fenced, gap, replace(taken, after=replace(taken.after, tainted="EX-04"), known="EX-04"))


def _verified(rules: Rules, state: ModelState, request: ModelRequest, part: int, seen: int) -> Code:
    """The code from the coordinator, or from the leader itself; `seen` is the epoch that the leader knows."""
    if state.phase is TransactionPhase.ABSENT or request.foreign:
        return Code.INVALID_PRODUCER_ID_MAPPING
    if request.epoch < seen or request.epoch != state.epoch:
        return Code.INVALID_PRODUCER_EPOCH
    if rules.tv2 or (state.phase is TransactionPhase.ONGOING and part in state.parts):
        return Code.NONE
    return Code.TRANSACTION_ABORTABLE


def _appended(rules: Rules, state: ModelState, request: ModelRequest, *, verified: bool) -> tuple[AllowedOutcome, ...]:
    place = state.places[request.place]
    first, last = request.sequence, (request.sequence + len(request.values) - 1) & LAST_SEQUENCE
    again = [each for each in place.batches if (each.first, each.last) == (first, last)]
    if again and place.epoch == request.epoch:
        after = _remembering(state, request) if verified else state
        return (AllowedOutcome(answer=ModelAnswer(offset=again[0].offset), after=after),)  # IDEMP-04
    taken = _taken(rules, state, request, last)
    gap = refused(Code.OUT_OF_ORDER_SEQUENCE_NUMBER, _remembering(state, request) if verified else state)
    if place.epoch == NO_EPOCH and first != 0:
        # IDEMP-10, TV2-07: nothing is known of the producer, and the log never held a record.
        name = ("" if rules.since("4.1.0") else "KB-11") if rules.tv2 else ("" if rules.since("4.5.0") else "KB-05")
        return (gap, replace(taken, known=name)) if name else (gap,)
    if first != place.next_for(request.epoch):
        return (gap,)  # IDEMP-05, IDEMP-06, IDEMP-07, IDEMP-12
    name = _shut_out(place, request, verified=verified)
    return (taken, replace(gap, known=name)) if name else (taken,)


def _shut_out(place: ModelPartition, request: ModelRequest, *, verified: bool) -> str:
    """The defect by which the leader refuses the batch that is due, empty where it has no reason to."""
    if place.refused is None or request.sequence <= place.refused[1]:
        return ""
    if place.refused[0] > request.epoch:
        return "EX-05"
    if place.refused[0] == request.epoch:
        return "KB-17"
    # The verification of a batch with a higher epoch makes the leader forget the lower one's.
    return "" if verified else "EX-06"


def _taken(rules: Rules, state: ModelState, request: ModelRequest, last: int) -> AllowedOutcome:
    place = state.places[request.place]
    offset = len(place.log)
    batch = ModelBatch(first=request.sequence, last=last, offset=offset)
    before = place.batches if place.epoch == request.epoch else ()
    grown = replace(
        place,
        epoch=request.epoch,
        batches=(*before, batch)[-REMEMBERED:],
        open=True,
        log=(*place.log, *((value, state.txn) for value in request.values)),
        refused=None,
    )
    late = not rules.tv2 and request.meant != state.txn
    return AllowedOutcome(
        answer=ModelAnswer(offset=offset), after=state.with_place(request.place, grown), known="KB-04" if late else ""
    )


def _remembering(state: ModelState, request: ModelRequest) -> ModelState:
    """The leader keeps the lowest sequence of the highest epoch that it could not append."""
    place = state.places[request.place]
    lowest = (request.epoch, request.sequence)
    if place.refused is not None:
        epoch, sequence = place.refused
        if request.epoch < epoch:
            lowest = place.refused
        elif request.epoch == epoch:
            lowest = (epoch, min(sequence, request.sequence))
    return state.with_place(request.place, _forgetful(place, lowest))


def _forgetful(place: ModelPartition, lowest: tuple[int, int]) -> ModelPartition:
    return replace(place, refused=lowest)


def commit_offset(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """GRP-01, GRP-10, GRP-11, TV2-03: as a batch, but without sequences."""
    held = state.offset
    if _unasked(rules, request, opened=held.open, epoch=held.epoch):
        joined = replace(held, epoch=request.epoch, pending=request.offset)
        taken = AllowedOutcome(
            answer=ModelAnswer(), after=replace(state, offset=joined, tainted="EX-04"), known="EX-04"
        )
        return (refused(Code.INVALID_PRODUCER_EPOCH, state), taken)
    if not (held.open and held.epoch == request.epoch) or request.foreign:
        code = _verified(rules, state, request, GROUP, held.epoch)
        if code != Code.NONE:
            return (refused(code, state),)
        if rules.tv2:
            state = begun(state, GROUP)
    pending = replace(held, epoch=request.epoch, open=True, pending=request.offset)
    late = not rules.tv2 and request.meant != state.txn
    after = replace(state, offset=pending)
    return (AllowedOutcome(answer=ModelAnswer(), after=after, known="KB-04" if late else ""),)
