"""What the coordinator's and the leaders' part of the model share."""

from __future__ import annotations

from dataclasses import replace

from verification.specification.state import Answer, Outcome, Phase, State


def begun(state: State, part: int) -> State:
    """A partition is part of the transaction, which begins where none is open; the one before is then complete."""
    if state.phase is Phase.ONGOING:
        return replace(state, parts=state.parts | {part})
    following = state.txn + 1
    return replace(state, phase=Phase.ONGOING, settling=False, tainted="", txn=following, parts=frozenset({part}))


def refused(code: int, state: State) -> Outcome:
    """An answer that changes nothing."""
    return Outcome(answer=Answer(code=int(code)), after=state)
