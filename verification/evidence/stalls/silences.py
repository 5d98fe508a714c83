"""Silences: a last stable offset that stands while the metric of its leader says that nothing does.

Operators alert on `LastStableOffsetLag` and see nothing else. The samples of the run have both offsets as the leader
answered them (`lso_samples`), and the history has the metric as the same broker stated it. If the offset stood below the
high watermark for `BOUND_S` by every look, under one leader, and the metric was 0 for all of that time, the metric lies.

A metric that was never stated, or not read every few seconds in that time, says nothing. The first seconds do not count,
because the metric is read once a second.

Free of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from verification.evidence import lso_samples
from verification.evidence.lso_samples import NS, Place
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.history import UP, Metric, Sample

METRIC = "LastStableOffsetLag"
#: Long enough for every busy partition to decide its transactions; an alert on the metric would wait as long.
BOUND_S = 15.0
#: Metrics are read once a second, and a look at each of three busy brokers may take a second.
READ_WITHIN_S = 4.0
#: Shorter times are no rows: transactions are open for a moment everywhere.
_SHORTEST_S = 5.0


def rows(run: RunEvidence) -> list[Row]:
    """The times in which a last stable offset stood below the high watermark; none where no metrics were sampled.

    `stood_ms` is how long, by the looks; `stated` is the highest value of the metric meanwhile, None where it is not known;
    `offset` is the last stable offset.
    """
    stated = _stated(run)
    if not stated:
        return []
    found = []
    for place in lso_samples.outputs(run):
        for looks in _standing(lso_samples.at_place(run, place)):
            stood_s = (looks[-1].at_ns - looks[0].at_ns) / NS
            if stood_s >= _SHORTEST_S:
                name = f"{run.topic(place[0])}-{place[1]}"
                series = stated.get(f"broker {looks[0].leader}", [])
                found.append(_row(run.run, place, looks, _highest(series, name, looks[0].at_ns, looks[-1].at_ns)))
    return found


def _row(run: str, place: Place, looks: Sequence[Sample], stated: float | None) -> Row:
    return {
        "run": run,
        "topic_index": place[0],
        "partition": place[1],
        "offset": looks[0].last_stable_offset,
        "leader": looks[0].leader,
        "stood_ms": (looks[-1].at_ns - looks[0].at_ns) // 1_000_000,
        "stated": stated,
    }


def _standing(looks: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Looks one after the other at one leader and one last stable offset below the high watermark."""
    alike = groupby(looks, lambda each: (each.leader, each.last_stable_offset))
    for (_, stable), group in alike:
        below = [each for each in group if 0 <= stable < each.high_watermark]
        if below:
            yield below


def _stated(run: RunEvidence) -> dict[str, list[Metric]]:
    """The lags that each broker stated, and whether it answered, in order of time."""
    series: dict[str, list[Metric]] = {}
    for each in sorted(run.history.of(Metric), key=lambda each: each.at_ns):
        if each.name in (METRIC, UP):
            series.setdefault(each.source, []).append(each)
    return series


def _highest(series: Sequence[Metric], of: str, from_ns: int, until_ns: int) -> float | None:
    """The highest value between two moments, without the first seconds; None where it was not read all the time."""
    counted_ns = from_ns + round(READ_WITHIN_S * NS)
    series = [each for each in series if each.at_ns <= until_ns]
    read = [each.at_ns for each in series if each.name == UP and each.value and each.at_ns >= from_ns]
    gaps = [after - before for before, after in pairwise((from_ns, *read, until_ns))]
    lost_ns = max((each.at_ns for each in series if each.name == UP and not each.value), default=0)
    values = [each for each in series if each.name == METRIC and each.of == of and each.at_ns > lost_ns]
    before = [each.value for each in values if each.at_ns <= counted_ns]
    if max(gaps) > READ_WITHIN_S * NS or lost_ns > from_ns or not before:
        return None
    return max(before[-1], *(each.value for each in values if each.at_ns > counted_ns), 0.0)


def excuse(row: Row) -> str:
    """Why a metric is not silent; empty if it is."""
    if row["stated"] is None:
        return "the metric is not known for all of that time"
    if row["stated"] > 0:
        return "the metric said so"
    return "" if row["stood_ms"] >= BOUND_S * 1_000 else f"it stood for less than {BOUND_S:g} s"


def described(row: Row) -> str:
    """A silence in words."""
    return (
        f"the last stable offset stood below the high watermark for {row['stood_ms'] / 1_000:.0f} s, and"
        f" {METRIC} of its leader, broker {row['leader']}, was 0 all the time"
    )
