"""Count the damage of a scenario from its findings, their log entries, the history and the ends of the partitions.

Records are counted once, however many findings name them. The judge keeps the log entries of at most 32 examples of a
finding; with more violations the counts are lower bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from reports.loading.availability import fault_windows_of, is_acknowledged
from reports.loading.examples import Context
from reports.loading.finding_records import LINES_MAX, FindingRecords
from reports.model.damage import Damage, HeldPartition
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Told
from verification.vocabulary.quiescent_state import PartitionEnd
from verification.vocabulary.verdict import Finding

#: Anomalies of which every violation is a record that reached a reader and must not.
SHOWN = (Anomaly.ABORTED_READ, Anomaly.EARLY_READ, Anomaly.ZOMBIE_WRITE)
_LOST, _ABORTED, _HIDDEN = "lost", "aborted", "hidden"


def damage_of(
    findings: Iterable[Finding],
    records: Mapping[str, FindingRecords],
    known: Context,
    ends: Iterable[PartitionEnd] | None,
) -> Damage | None:
    """The damage of a scenario's findings; None without any. `records` are the log entries by anomaly.

    `ends` are the ends of the partitions at quiescence, None where they are unknown.
    """
    found = tuple(findings)
    if not found:
        return None
    identities = {(each.process, each.operation) for finding in found for each in finding.examples}
    hit = [each for key, each in known.operations.items() if key in identities and is_acknowledged(each)]
    during = [
        each for each in known.operations.values() if is_acknowledged(each) and fault_windows_of(each, known.faults)
    ]
    entries = _once(entry for each in records.values() for entry in each.entries)
    own = (each for each in entries if (each.get("process"), each.get("operation")) in identities)
    fates = Counter(map(_fate, filter(_promised, own)))
    count = {each.anomaly: each.count for each in found}
    # What a hung transaction keeps back behind it is damage as well, and the judge has no example of it.
    behind: Counter[str] = Counter()
    for each in found:
        behind.update(dict(each.explains))
    return Damage(
        operations=len(hit),
        during_fault=sum(each in hit for each in during),
        acknowledged_during_fault=len(during),
        lost=max(fates[_LOST], count.get(Anomaly.LOST_WRITE, 0) - fates[_ABORTED]),
        aborted=fates[_ABORTED],
        hidden=max(fates[_HIDDEN], count.get(Anomaly.HIDDEN_COMMITTED, 0)) + behind[Anomaly.HIDDEN_COMMITTED],
        hidden_at_least=behind[Anomaly.TORN_TRANSACTION] > 0,
        doubled=count.get(Anomaly.DUPLICATE, 0),
        shown=sum(count.get(each, 0) for each in SHOWN),
        readers=tuple(sorted(readers))
        if all(readers := {each.reader for each in found if each.anomaly in SHOWN})
        else (),
        torn=count.get(Anomaly.TORN_TRANSACTION, 0) + behind[Anomaly.TORN_TRANSACTION],
        held=None
        if ends is None
        else tuple(_held(each, known.run) for each in ends if each.last_stable_offset < each.high_watermark),
        at_least=any(each.count > len(each.examples) for each in found)
        or any(len(each.entries) >= LINES_MAX for each in records.values()),
    )


def _promised(entry: Mapping[str, Any]) -> bool:
    return entry.get("told") == Told.COMMITTED and "control" not in entry


def _fate(entry: Mapping[str, Any]) -> str:
    """The fate of an acknowledged record; empty for one that readers receive."""
    if not entry.get("in_log", True):
        return _LOST
    if entry.get("outcome") == "abort":
        return _ABORTED
    return "" if entry.get("committed", 1) else _HIDDEN


def _once(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Entries of several findings, each place and record once."""
    names = ("topic", "partition", "offset", "process", "operation", "index")
    return list({tuple(each.get(name) for name in names): each for each in entries}.values())


def _held(end: PartitionEnd, run: str) -> HeldPartition:
    return HeldPartition(
        place=f"{end.topic.removeprefix(f'{run}-')}-{end.partition}",
        last_stable_offset=end.last_stable_offset,
        high_watermark=end.high_watermark,
    )
