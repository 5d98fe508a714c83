"""The alerts that would have fired in a scenario, each once, with the brokers and partitions where it did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from reports.loading.process_lanes import Clock
from reports.model.timeline import FiredAlert
from verification.alerts.firing import Firing, fired, has_metrics, totals
from verification.vocabulary.history import FaultRecord, History

#: So many parts are named, for instance partitions.
NAMED_MAX = 2


def alerts(history: History, clock: Clock) -> tuple[FiredAlert, ...] | None:
    """The alerts in the order in which they first fired; None where no metrics were sampled."""
    if not has_metrics(history):
        return None
    together: dict[str, list[Firing]] = defaultdict(list)
    for each in fired(history):
        together[each.alert.name].append(each)
    return tuple(_fired(each, history, clock) for each in together.values())


def _fired(firings: list[Firing], history: History, clock: Clock) -> FiredAlert:
    alert = firings[0].alert
    ends = [each.ended_ns for each in firings]
    faults = history.of(FaultRecord)
    return FiredAlert(
        name=alert.name,
        text=alert.text,
        place=_place(firings, history.run),
        shows=tuple(sorted(alert.shows)),
        began_s=clock(firings[0].began_ns),
        ended_s=None if None in ends else clock(max(each for each in ends if each is not None)),
        values=tuple((clock(at_ns), value) for at_ns, value in totals(alert, history)),
        to_the_end=_parts((each for each in firings if each.ended_ns is None), history.run),
        before_faults=bool(faults) and firings[0].began_ns < min(each.began_ns for each in faults),
    )


def _place(firings: list[Firing], run: str) -> str:
    """The sources, and the first of their parts: `broker 1, broker 3: orders-0, orders-1 and 3 more`."""
    sources, parts = ", ".join(sorted({each.source for each in firings})), _parts(firings, run)
    return f"{sources}: {parts}" if parts else sources


def _parts(firings: Iterable[Firing], run: str) -> str:
    """The first parts, for instance partitions."""
    parts = sorted({each.of.removeprefix(f"{run}-") for each in firings if each.of})
    more = f" and {len(parts) - NAMED_MAX} more" if len(parts) > NAMED_MAX else ""
    return ", ".join(parts[:NAMED_MAX]) + more
