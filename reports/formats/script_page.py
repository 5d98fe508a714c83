"""How much of a script a page shows.

Of a case that did not pass: of a short script every exchange, of a long one the beginning, the end, and what lies around
the statements that decided it. Of a case that passed a summary: what was asked, and the claims that held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.model.protocol_case import ExchangeRow, ScriptCase, StatementRow

#: A script of ordinary length is read to the end.
EXCHANGES_MAX = 48
#: What leads to a statement that does not hold, and what followed.
BEFORE, AFTER = 8, 3
#: Requests named in the summary of a case; runs of one kind count once.
ASKED_MAX = 12
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


def asked_of(case: ScriptCase) -> str:
    """What a script asked for, in the order of asking: `InitProducerId, Produce × 3, EndTxn`."""
    runs: list[str] = []
    for api, each in groupby(case.exchanges, key=lambda exchange: exchange.api):
        count = len(list(each))
        runs.append(f"{api} × {count}" if count > 1 else api)
    more = len(runs) - ASKED_MAX
    return ", ".join(runs[:ASKED_MAX]) + (f" and {more} more" if more > 0 else "") if runs else "Nothing was asked"


def held_of(case: ScriptCase) -> tuple[StatementRow, ...]:
    """The claims that held; the ground that they stand on is in the script."""
    return tuple(each for each in case.statements if each.holds and not each.required)


def _shown(case: ScriptCase) -> set[int]:
    """The numbers of the exchanges that are shown; the last one always is, so that nothing is left out behind it."""
    count = len(case.exchanges)
    if count <= EXCHANGES_MAX:
        return set(range(1, count + 1))
    third = EXCHANGES_MAX // 3
    shown = {*range(1, 2 * third + 1), *range(count - third + 1, count + 1)}
    for each in case.deciding:
        shown |= set(range(each.after - BEFORE, each.after + AFTER + 1))
        if len(shown) > 2 * EXCHANGES_MAX:
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
