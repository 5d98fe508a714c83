"""What the coordinator's and the leaders' part of the model share."""

from __future__ import annotations

from dataclasses import replace

from verification.specification.state import AllowedOutcome, ModelAnswer, ModelState, TransactionPhase


def begun(state: ModelState, part: int) -> ModelState:
    """A partition is part of the transaction, which begins where none is open; the one before is then complete."""
    if state.phase is TransactionPhase.ONGOING:
        return replace(state, parts=state.parts | {part})
    following = state.txn + 1
    return replace(
        state, phase=TransactionPhase.ONGOING, settling=False, tainted="", txn=following, parts=frozenset({part})
    )


def refused(code: int, state: ModelState) -> AllowedOutcome:
    """An answer that changes nothing."""
    return AllowedOutcome(answer=ModelAnswer(code=int(code)), after=state)
