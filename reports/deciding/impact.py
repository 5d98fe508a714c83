"""The impact of a run: the damage of its violations to acknowledged operations and records, in scenarios and cases.

Zeros are said too: a reader must see what did not happen. An acknowledged commit that ended as an abort counts as loss.
Protocol cases write a few records each, so they count as cases: those that gave a reader a record that it must not have,
or kept one back. Their claims say it, on the values that readers are given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reports.model.damage import Damage, HeldPartition
from reports.model.protocol_case import ScriptCase, StatementRow
from reports.model.report import Report
from reports.model.wording import counted, number
from verification.vocabulary.verdict import Verdict

#: Partitions named in a sentence.
HELD_MAX = 3
#: The claims of cases on the records that readers receive (`runner.protocol.toolkit`).
_OF_READERS = re.compile(r"\b(?:given|visible|delivers|returned?)\b|read_committed|^from the new leader")

#: Texts in a value are quoted, and a value that is too long ends with an ellipsis (`reports.loading.exchange`).
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_CUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Readers of a failed case: whether they received a forbidden record (`shown`), or lacked a record (`hidden`)."""

    shown: bool = False
    hidden: bool = False


def impact(report: Report) -> str:
    """The sentences on all scenarios and cases of the subject together; empty where nothing was hit."""
    hit = [each.damage for each in report.scenarios if each.damage is not None and each.damage.any]
    cases = [readers_of(each) for each in report.cases if each.verdict is Verdict.FAIL]
    shown = any(each.shown for each in cases)
    # Cases are counted behind it: a zero of scenarios must not be read as one of the run.
    where = "In scenarios: " if cases else ""
    said = [where + sentence(summed(hit), shown_elsewhere=shown)] if hit else []
    if any(each.shown or each.hidden for each in cases):
        said.append(
            f"Of {counted(len(cases), 'protocol case')} that failed, "
            f"{sum(each.shown for each in cases)} gave a reader a record that it must not have, and "
            f"{sum(each.hidden for each in cases)} kept back a record that it must have."
        )
    return " ".join(said)


def readers_of(case: ScriptCase) -> Readers:
    """The failed claims of a case about readers. A value that was cut short says nothing."""
    differing = [_differing(each) for each in case.deciding if _OF_READERS.search(each.what)]
    return Readers(
        shown=any(extra and not missing for extra, missing in differing),
        hidden=any(missing for _, missing in differing),
    )


def _differing(statement: StatementRow) -> tuple[set[str], Counter[str]]:
    """The values that must not be there at all, and those that are missing."""
    if statement.expected.endswith(_CUT) or statement.observed.endswith(_CUT):
        return set(), Counter()
    expected, observed = (Counter(_QUOTED.findall(text)) for text in (statement.expected, statement.observed))
    return set(observed) - set(expected), expected - observed


def summed(all_: Iterable[Damage]) -> Damage:
    """The damage of several scenarios together."""
    each = tuple(all_)

    def total(name: str) -> int:
        return sum(getattr(one, name) for one in each)

    return Damage(
        operations=total("operations"),
        during_fault=total("during_fault"),
        acknowledged_during_fault=total("acknowledged_during_fault"),
        lost=total("lost"),
        aborted=total("aborted"),
        hidden=total("hidden"),
        hidden_at_least=any(one.hidden_at_least for one in each),
        doubled=total("doubled"),
        shown=total("shown"),
        readers=tuple(dict.fromkeys(name for one in each for name in one.readers))
        if all(one.readers for one in each if one.shown)
        else (),
        torn=total("torn"),
        held=None if any(one.held is None for one in each) else tuple(held for one in each for held in one.held or ()),
        at_least=any(one.at_least for one in each),
    )


def sentence(damage: Damage, *, shown_elsewhere: bool = False) -> str:
    """The damage of scenarios in words. `shown_elsewhere`: a case gave a reader a record that it must not have."""
    least = "at least " if damage.at_least else ""
    hit = f"{least}{counted(damage.operations, 'acknowledged operation')} hit directly"
    hidden = f"{'at least ' if damage.hidden_at_least and not least else ''}{number(damage.hidden)} hidden"
    if damage.during_fault:
        whole = number(damage.acknowledged_during_fault)
        hit += f" ({number(damage.during_fault)} of {whole} that were acknowledged during a fault)"
    some = "" if damage.aborted == damage.all_lost else f"{number(damage.aborted)} of them "
    aborted = f" ({some}committed for the client, aborted in the log)" if damage.aborted else ""
    records = f"{number(damage.all_lost)} lost{aborted}, {hidden}, {number(damage.doubled)} doubled"
    shown = "" if shown_elsewhere else " No record reached a reader wrongly."
    if damage.shown:
        shown = f" Readers received {least}{counted(damage.shown, 'record')} that they must not have."
    if damage.shown and damage.readers:
        who = " and ".join(f"{each} as a reader" for each in damage.readers)
        shown = f" {who} received {least}{counted(damage.shown, 'record')} that it must not have; another client, none."
    torn = f" {counted(damage.torn, 'transaction')} visible in part." if damage.torn else ""
    return f"{hit}. Acknowledged records: {least}{records}.{torn}{shown} {_held(damage.held)}"


def _held(held: tuple[HeldPartition, ...] | None) -> str:
    if held is None:
        return "Held-back records: not recorded."
    if not held:
        return "Nothing is held back."
    named = ", ".join(f"{each.place}@{each.last_stable_offset}" for each in held[:HELD_MAX])
    rest = f" and {len(held) - HELD_MAX} more" if len(held) > HELD_MAX else ""
    return f"Held back behind {named}{rest}: {number(sum(each.offsets for each in held))} offsets."
