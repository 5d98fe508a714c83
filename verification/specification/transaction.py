"""Functions that the models of the coordinator and of the leaders share."""

from __future__ import annotations

from dataclasses import replace

from verification.specification.state import AllowedOutcome, ModelAnswer, ModelState, TransactionPhase


def begun(state: ModelState, part: int) -> ModelState:
    """The state with a partition added to the transaction, which begins, and completes the one before, if none is open."""
    if state.phase is TransactionPhase.ONGOING:
        return replace(state, parts=state.parts | {part})
    following = state.txn + 1
    return replace(
        state, phase=TransactionPhase.ONGOING, settling=False, tainted="", txn=following, parts=frozenset({part})
    )


def refused(code: int, state: ModelState) -> AllowedOutcome:
    """An answer that changes nothing."""
    return AllowedOutcome(answer=ModelAnswer(code=int(code)), after=state)
