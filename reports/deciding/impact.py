"""The impact of a run in one line: what its violations did to acknowledged operations and their records.

Zeros are said too: a reader must see what did not happen. An acknowledged commit that ended as an abort counts as loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from reports.model.damage import Damage, HeldPartition
from reports.model.report import Report
from reports.model.wording import counted, number

#: Partitions named in a sentence.
HELD_MAX = 3


def impact(report: Report) -> str:
    """The sentence on all scenarios of the subject together; empty where nothing was hit."""
    hit = [each.damage for each in report.scenarios if each.damage is not None and each.damage.any]
    return sentence(summed(hit)) if hit else ""


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
        doubled=total("doubled"),
        shown=total("shown"),
        held=None if any(one.held is None for one in each) else tuple(held for one in each for held in one.held or ()),
        at_least=any(one.at_least for one in each),
    )


def sentence(damage: Damage) -> str:
    """The damage in words, zeros included: a reader must see what did not happen."""
    least = "at least " if damage.at_least else ""
    hit = f"{least}{counted(damage.operations, 'acknowledged operation')} hit"
    if damage.during_fault:
        whole = number(damage.acknowledged_during_fault)
        hit += f" ({number(damage.during_fault)} of {whole} that were acknowledged during a fault)"
    some = "" if damage.aborted == damage.all_lost else f"{number(damage.aborted)} of them "
    aborted = f" ({some}committed for the client, aborted in the log)" if damage.aborted else ""
    records = (
        f"{number(damage.all_lost)} lost{aborted}, {number(damage.hidden)} hidden, {number(damage.doubled)} doubled, "
        f"{number(damage.shown)} shown that must not be"
    )
    return f"{hit}. Acknowledged records: {least}{records}. {_held(damage.held)}"


def _held(held: tuple[HeldPartition, ...] | None) -> str:
    if held is None:
        return "What is held back behind them is not recorded."
    if not held:
        return "Nothing is held back behind them."
    named = ", ".join(f"{each.place}@{each.last_stable_offset}" for each in held[:HELD_MAX])
    rest = f" and {len(held) - HELD_MAX} more" if len(held) > HELD_MAX else ""
    return f"Held back behind {named}{rest}: {number(sum(each.offsets for each in held))} offsets."
