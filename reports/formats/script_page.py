"""Choose the part of a script that a page shows.

Of a case that did not pass: every exchange of a short script; of a long one the beginning, the end, and the exchanges
around the deciding statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.model.protocol_case import ExchangeRow, ScriptCase, StatementRow

#: Scripts up to this length are shown whole.
EXCHANGES_MAX = 12
#: Exchanges shown before and after a failed statement.
BEFORE, AFTER = 3, 1
#: Statements after one exchange; a loop over a log can make hundreds about one response.
STATEMENTS_MAX = 6


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


def named_by(case: ScriptCase) -> str:
    """The name with which `-k` selects a case in the command that repeats it; empty where it has none."""
    return case.replay.partition(" -k ")[2].strip('"')


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
