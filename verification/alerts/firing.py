"""The alerts that would have fired in a run, by the metrics in its history.

Operators see a violation only by an alert. So the report says of each finding which alert could show it, and whether and
when it fired. A finding that none of them shows is *silent*: only a comparison of the log with the clients' answers
reveals it.

Limit: metrics are read every second, so that a shorter rise is missed, as by a monitoring system. A broker that does not
answer states nothing.

Free of pyspark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from verification.alerts.rules import STANDS_S, Alert, When, load
from verification.vocabulary.history import UP, History, Metric, Sample

_NS = 1_000_000_000
Span = tuple[int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that fired: for the first time at `began_ns`; it last held at `ended_ns`, None if it held to the end."""

    alert: Alert
    source: str
    of: str
    began_ns: int
    ended_ns: int | None


def has_metrics(history: History) -> bool:
    """Whether metrics of brokers were sampled; those of clients alone say little."""
    return any(each.name == UP for each in history.of(Metric))


def fired(history: History) -> tuple[Firing, ...]:
    """The alerts that fired, by the time of the first one; one per rule, source and part of it."""
    found = []
    # A value is recorded when it changes. Ends of partitions are sampled for as long as metrics are.
    end_ns = max((each.at_ns for each in history.entries if isinstance(each, Metric | Sample)), default=0)
    for (source, name, of), series in _series(history.of(Metric)).items():
        for alert in load().values():
            if alert.concerns(name, of):
                spans = [span for each in series for span in _spans(alert, each, end_ns)]
                if spans:
                    found.append(Firing(alert=alert, source=source, of=of, began_ns=spans[0][0], ended_ns=spans[-1][1]))
    return tuple(sorted(found, key=lambda each: (each.began_ns, each.alert.name, each.source, each.of)))


def totals(alert: Alert, history: History) -> list[tuple[int, float]]:
    """The metric of an alert over time, added up over sources and their parts; a source that does not answer has 0."""
    steps: dict[int, float] = defaultdict(float)
    stated = (each for each in history.of(Metric) if each.name in (alert.metric, UP))
    for (_, name, of), series in _series(stated).items():
        if alert.concerns(name, of):
            for values in series:
                before = 0.0
                for at_ns, value in values:
                    steps[at_ns] += (value or 0.0) - before
                    before = value or 0.0
    return list(zip(sorted(steps), accumulate(steps[at_ns] for at_ns in sorted(steps)), strict=True))


#: Values with their times, in order; the last one without a value ends them, if the source no longer answered.
_Series = list[tuple[int, float | None]]


def _series(metrics: Iterable[Metric]) -> dict[tuple[str, str, str], list[_Series]]:
    """The values of each metric, a list for each time in which its source answered."""
    series: dict[tuple[str, str, str], list[_Series]] = defaultdict(list)
    latest: dict[str, dict[tuple[str, str, str], _Series]] = defaultdict(dict)
    for each in sorted(metrics, key=lambda each: each.at_ns):
        if each.name == UP and each.value:
            continue
        if each.name == UP:
            for values in latest.pop(each.source, {}).values():
                values.append((each.at_ns, None))
            continue
        key, open_ones = (each.source, each.name, each.of), latest[each.source]
        if key not in open_ones:
            open_ones[key] = []
            series[key].append(open_ones[key])
        open_ones[key].append((each.at_ns, each.value))
    return series


def _spans(alert: Alert, values: _Series, end_ns: int) -> Iterator[Span]:
    """The times in which the alert holds."""
    if alert.when is When.STANDS:
        return _standing(values, end_ns)
    return (_rises if alert.when is When.RISES else _positive)(values, alert.bound)


def _rises(values: _Series, bound: int) -> Iterator[Span]:
    last = values[0][1] or 0.0
    for at_ns, value in values[1:]:
        if value is not None and value > last:
            if value - last > bound:
                yield at_ns, at_ns
            last = value


def _positive(values: _Series, bound: int) -> Iterator[Span]:
    began_ns: int | None = None
    for at_ns, value in values:
        above = (value or 0.0) > bound
        if above and began_ns is None:
            began_ns = at_ns
        elif not above and began_ns is not None:
            yield began_ns, at_ns
            began_ns = None
    if began_ns is not None:
        yield began_ns, None


def _standing(values: _Series, end_ns: int) -> Iterator[Span]:
    """Times in which a value above 0 has not fallen for `STANDS_S`."""
    since_ns: int | None = None
    last = 0.0
    for at_ns, value in values:
        if since_ns is not None and (value is None or value < last):
            if at_ns - since_ns >= STANDS_S * _NS:
                yield since_ns + STANDS_S * _NS, at_ns
            since_ns = None
        last = value or 0.0
        if last > 0 and since_ns is None:
            since_ns = at_ns
    if since_ns is not None and end_ns - since_ns >= STANDS_S * _NS:
        yield since_ns + STANDS_S * _NS, None
