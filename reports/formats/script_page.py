"""Choose the part of a script that a page shows.

Of a case that did not pass: every exchange of a short script; of a long one the beginning, the end, and the exchanges
around the deciding statements. Of a case that passed: the requests in short, and the claims that held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.model.protocol_case import ExchangeRow, ScriptCase, StatementRow

#: Scripts up to this length are shown whole.
EXCHANGES_MAX = 48
#: Exchanges shown before and after a failed statement.
BEFORE, AFTER = 8, 3
#: Requests named in the summary of a case; successive ones of one kind count once.
REQUESTS_MAX = 12
#: Statements after one exchange; a loop over a log can make hundreds about one response.
STATEMENTS_MAX = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """An exchange (None: the start of the script) with its statements; `skipped` exchanges before it are not shown."""

    exchange: ExchangeRow | None
    statements: tuple[StatementRow, ...]
    skipped: int = 0


def steps(case: ScriptCase) -> Iterator[ScriptStep]:
    """The steps of a script that a page shows."""
    said: dict[int, list[StatementRow]] = {}
    for statement in case.statements:
        said.setdefault(statement.after, []).append(statement)
    if 0 in said:
        yield ScriptStep(exchange=None, statements=_some(said[0]))
    shown = _shown(case)
    skipped = 0
    for exchange in case.exchanges:
        if exchange.number not in shown:
            skipped += 1
            continue
        yield ScriptStep(exchange=exchange, statements=_some(said.get(exchange.number, [])), skipped=skipped)
        skipped = 0


def requests_of(case: ScriptCase) -> str:
    """The requests of a script in order: `InitProducerId, Produce × 3, EndTxn`."""
    runs: list[str] = []
    for api, each in groupby(case.exchanges, key=lambda exchange: exchange.api):
        count = len(list(each))
        runs.append(f"{api} × {count}" if count > 1 else api)
    more = len(runs) - REQUESTS_MAX
    return ", ".join(runs[:REQUESTS_MAX]) + (f" and {more} more" if more > 0 else "") if runs else "No request was sent"


def held_of(case: ScriptCase) -> tuple[StatementRow, ...]:
    """The claims that held; the preconditions are in the script."""
    return tuple(each for each in case.statements if each.holds and not each.required)


def _shown(case: ScriptCase) -> set[int]:
    """The numbers of the exchanges to show; the last one is always among them."""
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
    """At most STATEMENTS_MAX statements, failed ones first."""
    if len(statements) <= STATEMENTS_MAX:
        return tuple(statements)
    failing = [each for each in statements if not each.holds][:STATEMENTS_MAX]
    rest = [each for each in statements if each.holds][: STATEMENTS_MAX - len(failing)]
    chosen = {id(each) for each in (*failing, *rest)}
    return tuple(each for each in statements if id(each) in chosen)
