"""How much of a script a page shows.

Of a short one every exchange; of a long one the beginning, the end, and what lies around the statements that decided it.
Of a case that passed the claims, and not the ground that they stand on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.script_case import ExchangeRow, ScriptCase, StatementRow

#: A case that passed is read out of curiosity; one that did not is read to the end.
EXCHANGES_MAX, EXCHANGES_MAX_CLEAR = 48, 15
#: What leads to a statement that does not hold, and what followed.
BEFORE, AFTER = 8, 3
#: Statements after one exchange; a loop over a log can say hundreds of things about one answer.
STATEMENTS_MAX = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An exchange, None for the start of the script, with what was said then; `skipped` exchanges are left out before it."""

    exchange: ExchangeRow | None
    statements: tuple[StatementRow, ...]
    skipped: int = 0


def steps(case: ScriptCase) -> Iterator[Step]:
    """The steps of a script that a page shows."""
    said: dict[int, list[StatementRow]] = {}
    for statement in case.statements:
        if case.clear and statement.required:
            continue  # the ground of a claim that holds is in the script; with it a page of 250 cases is too large
        said.setdefault(statement.after, []).append(statement)
    if 0 in said:
        yield Step(exchange=None, statements=_some(said[0]))
    shown = _shown(case)
    skipped = 0
    for exchange in case.exchanges:
        if exchange.number not in shown:
            skipped += 1
            continue
        yield Step(exchange=exchange, statements=_some(said.get(exchange.number, [])), skipped=skipped)
        skipped = 0


def _shown(case: ScriptCase) -> set[int]:
    """The numbers of the exchanges that are shown; the last one always is, so that nothing is left out behind it."""
    count = len(case.exchanges)
    most = EXCHANGES_MAX_CLEAR if case.clear else EXCHANGES_MAX
    if count <= most:
        return set(range(1, count + 1))
    third = most // 3
    shown = {*range(1, 2 * third + 1), *range(count - third + 1, count + 1)}
    for each in case.deciding if not case.clear else ():
        shown |= set(range(each.after - BEFORE, each.after + AFTER + 1))
        if len(shown) > 2 * most:
            break
    return shown


def _some(statements: list[StatementRow]) -> tuple[StatementRow, ...]:
    """What does not hold is always among them."""
    if len(statements) <= STATEMENTS_MAX:
        return tuple(statements)
    failing = [each for each in statements if not each.holds][:STATEMENTS_MAX]
    rest = [each for each in statements if each.holds][: STATEMENTS_MAX - len(failing)]
    chosen = {id(each) for each in (*failing, *rest)}
    return tuple(each for each in statements if id(each) in chosen)
