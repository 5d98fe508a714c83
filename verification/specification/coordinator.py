"""The model of the coordinator: which answers the specification allows, and the state after each of them.

Written from the requirements (families TXN, TV2, FENCE, IDEMP, GRP); where these are silent, from KIP-98, KIP-360,
KIP-447 and KIP-890. `allowed` gives the expected outcome first. Released brokers also give answers that they should not.
Such an outcome has the name of a known defect or limitation; the walk goes on from it, and it is counted.

The model covers brokers that verify transactions (3.8 and later). It leaves two things open on purpose:

* While markers are being written, the coordinator may refuse every request for now (CONCURRENT_TRANSACTIONS).
* A TV2 batch that the leader refuses for its sequence is already part of the transaction, because the leader asks the
  coordinator first (KIP-890). So an abort or a commit after it ends a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from verification.specification.partition_leader import commit_offset, produce
from verification.specification.state import (
    GROUP,
    NO_EPOCH,
    AllowedOutcome,
    ModelAnswer,
    ModelPartition,
    ModelRequest,
    ModelState,
    RequestKind,
    Rules,
    TransactionPhase,
)
from verification.specification.transaction import begun, refused
from wire.codes import ErrorCode as Code

#: Answers after which a producer sends the request again. NOT_ENOUGH_REPLICAS is how a leader passes
#: CONCURRENT_TRANSACTIONS on to TV1 producers (ReplicaManager.handleProduceAppend).
BUSY = frozenset({int(Code.CONCURRENT_TRANSACTIONS), int(Code.NOT_ENOUGH_REPLICAS)})


def allowed(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """Every outcome that is allowed; the expected one is the first."""
    outcomes = _RULES[request.kind](rules, state, request)
    if state.settling and request.kind not in (RequestKind.LOOK, RequestKind.EXPIRE):
        busy = Code.CONCURRENT_TRANSACTIONS
        if request.kind is RequestKind.PRODUCE and not rules.tv2:
            busy = Code.NOT_ENOUGH_REPLICAS
        outcomes += (refused(busy, state),)
    return outcomes


def settled(state: ModelState) -> ModelState:
    """The state once every marker is written."""
    return replace(state, settling=False, tainted="")


def _init(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    continues = request.epoch != NO_EPOCH
    if state.phase is TransactionPhase.ABSENT:
        return (_initialised(state, 0, NO_EPOCH),)  # TXN-01; TXN-06 for one that continues
    if request.foreign:
        return (refused(Code.PRODUCER_FENCED, state),)
    if state.phase is TransactionPhase.ONGOING:
        return _init_during(rules, state, request)
    if not continues or request.epoch == state.epoch:
        return (_initialised(state, state.epoch + 1, state.epoch if continues else NO_EPOCH),)  # TXN-02, TXN-05
    if request.epoch == state.last:
        return (_initialised(state, state.epoch, state.last),)  # TXN-05: a repetition
    return (refused(Code.PRODUCER_FENCED, state),)


def _init_during(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """TXN-03, TXN-05: only the owner, or an instance that takes over, aborts the open transaction."""
    aborting = AllowedOutcome(
        answer=ModelAnswer(code=Code.CONCURRENT_TRANSACTIONS), after=aborted_by_coordinator(rules, state), known=""
    )
    if request.epoch in (NO_EPOCH, state.epoch):
        return (aborting,)
    # TransactionCoordinator.prepareInitProducerIdTransit looks at the id only while a transaction is open: any epoch
    # aborts it, and only the repetition is fenced.
    known = "EX-02" if request.epoch == state.last else "EX-01" if request.epoch < state.epoch else "EX-03"
    return (refused(Code.PRODUCER_FENCED, state), replace(aborting, known=known))


def aborted_by_coordinator(rules: Rules, state: ModelState) -> ModelState:
    """The state after a timeout or an initialisation has aborted the open transaction (EXP-01, TXN-03)."""
    raised, last = rules.after_abort(state.epoch)
    return ended(state, commit=False, marker=raised, epoch=raised, last=last)


def _initialised(state: ModelState, epoch: int, last: int) -> AllowedOutcome:
    after = replace(settled(state), phase=TransactionPhase.EMPTY, epoch=epoch, last=last, parts=frozenset())
    return AllowedOutcome(answer=ModelAnswer(epoch=epoch), after=after)


def _add(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    if state.phase is TransactionPhase.ABSENT or request.foreign:
        return (refused(Code.INVALID_PRODUCER_ID_MAPPING, state),)  # TXN-10
    if request.epoch != state.epoch:
        return (refused(Code.PRODUCER_FENCED, state),)  # TXN-11
    part = GROUP if request.kind is RequestKind.ADD_OFFSETS else request.place
    after = begun(state, part)
    late = not rules.tv2 and request.meant != after.txn
    return (AllowedOutcome(answer=ModelAnswer(), after=after, known="KB-04" if late else ""),)


def _end(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    if state.phase is TransactionPhase.ABSENT or request.foreign:
        return (refused(Code.INVALID_PRODUCER_ID_MAPPING, state),)  # TXN-20
    return _end_tv2(state, request) if rules.tv2 else _end_tv1(state, request)


def _end_tv1(state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """TXN-16, TXN-17, TXN-19."""
    if request.epoch != state.epoch:
        return (refused(Code.PRODUCER_FENCED, state),)
    if state.phase is TransactionPhase.ONGOING:
        after = ended(state, commit=request.commit, marker=state.epoch, epoch=state.epoch, last=state.last)
        return (AllowedOutcome(answer=ModelAnswer(), after=after, known="KB-03" if request.meant != state.txn else ""),)
    if state.phase is (TransactionPhase.COMMITTED if request.commit else TransactionPhase.ABORTED):
        return (refused(Code.NONE, state),)
    return (refused(Code.INVALID_TXN_STATE, state),)


def _end_tv2(state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    """TV2-05: EndTxn with the current epoch asks for a decision; with the epoch before, it is a repetition."""
    current, repeats = request.epoch == state.epoch, request.epoch == state.epoch - 1
    complete = state.phase in (TransactionPhase.COMMITTED, TransactionPhase.ABORTED)
    if not current and not (repeats and complete):
        return (refused(Code.PRODUCER_FENCED, state),)
    if current:
        if state.phase is not TransactionPhase.ONGOING and request.commit:
            return (refused(Code.INVALID_TXN_STATE, state),)
        following = state.epoch + 1
        after = ended(state, commit=request.commit, marker=following, epoch=following, last=state.epoch)
        return (AllowedOutcome(answer=ModelAnswer(epoch=following), after=after),)
    if request.commit == (state.phase is TransactionPhase.COMMITTED):
        return (AllowedOutcome(answer=ModelAnswer(epoch=state.epoch), after=state),)
    return (refused(Code.INVALID_TXN_STATE, state),)


def ended(state: ModelState, *, commit: bool, marker: int, epoch: int, last: int) -> ModelState:
    """The state after a decision: each partition of the transaction has its marker, and the transaction has none."""
    after = replace(
        state,
        phase=TransactionPhase.COMMITTED if commit else TransactionPhase.ABORTED,
        epoch=epoch,
        last=last,
        settling=True,
        parts=frozenset(),
        committed=state.committed
        | ({state.txn} if commit and state.phase is TransactionPhase.ONGOING else frozenset()),
    )
    for part in sorted(state.parts - {GROUP}):
        after = after.with_place(part, _marked(state.places[part], marker, state.txn))
    if GROUP in state.parts:
        held = state.offset
        kept = held.pending if commit and held.pending is not None else held.committed
        after = replace(after, offset=replace(held, epoch=marker, open=False, committed=kept, pending=None))
    return after


def _marked(place: ModelPartition, marker: int, txn: int) -> ModelPartition:
    # The leader remembers its batches after a marker of the same epoch (TV1), and forgets them after a higher one.
    known = place.batches if place.epoch == marker else ()
    return replace(place, epoch=marker, batches=known, open=False, log=(*place.log, (None, txn)), refused=None)


def _expire(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    del request
    after = settled(aborted_by_coordinator(rules, state))
    return (AllowedOutcome(answer=ModelAnswer(seen={"state": str(TransactionPhase.ABORTED)}), after=after),)


def _look(rules: Rules, state: ModelState, request: ModelRequest) -> tuple[AllowedOutcome, ...]:
    del rules, request
    return (AllowedOutcome(answer=ModelAnswer(seen=visible(state)), after=state),)


def visible(state: ModelState) -> dict[str, Any]:
    """The things that an observer must see: logs under both isolation levels, their ends, offset, id's state."""
    told: dict[str, Any] = {"state": str(state.phase), "epoch": state.epoch}
    for index, place in enumerate(state.places):
        undecided = [at for at, (value, txn) in enumerate(place.log) if value is not None and _open(state, place, txn)]
        stable = undecided[0] if undecided else len(place.log)
        values = [(value, txn) for value, txn in place.log[:stable] if value is not None]
        told[f"end {index}"] = len(place.log)
        told[f"stable {index}"] = stable
        told[f"log {index}"] = [value for value, _ in place.log if value is not None]
        told[f"committed {index}"] = [value for value, txn in values if txn in state.committed]
    told["offset"] = state.offset.committed
    told["offset pending"] = state.offset.pending is not None
    return told


def _open(state: ModelState, place: ModelPartition, txn: int) -> bool:
    return place.open and txn == state.txn


_RULES: Mapping[RequestKind, Callable[[Rules, ModelState, ModelRequest], tuple[AllowedOutcome, ...]]] = {
    RequestKind.INIT: _init,
    RequestKind.ADD: _add,
    RequestKind.ADD_OFFSETS: _add,
    RequestKind.PRODUCE: produce,
    RequestKind.COMMIT_OFFSET: commit_offset,
    RequestKind.END: _end,
    RequestKind.EXPIRE: _expire,
    RequestKind.LOOK: _look,
}
