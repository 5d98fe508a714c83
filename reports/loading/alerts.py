"""The alerts that would have fired in a scenario, each once, with the brokers and partitions where it did.

Controllers call an election of a replica outside of the last in-sync set UNCLEAN. With eligible leader replicas (KIP-966)
that is not always a replica that lacks records. When the whole in-sync set is gone, a partition keeps its eligible
replicas, and at last the one that led last. If that one was not shut down cleanly, it is elected with the state RECOVERING,
without any setting that allows it. A controller logs and counts all of these alike
(`PartitionRegistration.electionWasClean`, `PartitionChangeBuilder.canElectLastKnownLeader`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from reports.loading.broker_log import UNCLEAN, lines_with
from reports.loading.process_lanes import Clock
from reports.model.timeline import FiredAlert, Timeline
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


#: The rule in alerts.toml on the metric UncleanLeaderElectionsPerSec.
ALERT = "unclean"
_CHANGE = re.compile(r"UNCLEAN partition change for (?P<partition>\S+)")
_LEADER = re.compile(r" leader: -?[0-9]+ -> (-?[0-9]+)")


class Election(StrEnum):
    """What an election that is logged as UNCLEAN was, in words for the page."""

    LAST_LEADER = (
        "the last leader was elected again after a crash (KIP-966). No other replica could have more records; "
        "unclean.leader.election.enable is not needed for it"
    )
    ELIGIBLE = "an eligible leader replica was elected, which has every committed record (KIP-966)"
    REAL = "a replica that was not in sync was elected: a real unclean election, and records can be lost"


def election_of(text: str) -> Election | None:
    """What a line of a controller's log says of an election; None for another line."""
    leader = _LEADER.search(text)
    if _CHANGE.search(text) is None or leader is None:
        return None
    for field, found in (("lastKnownElr", Election.LAST_LEADER), ("elr", Election.ELIGIBLE)):
        before = re.search(rf" {field}: \[([0-9, ]*)\] -> ", text)
        if before and leader[1] in before[1].split(", "):
            return found
    return Election.REAL


def explained(timeline: Timeline, logs: Path) -> Timeline:
    """The timeline, whose alert on unclean elections says what they were; unchanged where no log has them."""
    if timeline.alerts is None or all(each.name != ALERT for each in timeline.alerts):
        return timeline
    began = datetime.fromtimestamp(timeline.began_us / 1_000_000, UTC)
    ended = began + timedelta(seconds=timeline.end_s)
    seen = Counter(dict(_elections(logs, began, ended)).values())
    note = "; ".join(f"{count} partition{'s' if count != 1 else ''}: {each}" for each, count in sorted(seen.items()))
    # Where no election was a real one, the alert reveals no anomaly.
    lasting = seen.keys() <= {Election.LAST_LEADER, Election.ELIGIBLE} and bool(seen)
    alerts = [
        each if each.name != ALERT else replace(each, note=note, shows=() if lasting else each.shows)
        for each in timeline.alerts
    ]
    return replace(timeline, alerts=tuple(alerts))


def _elections(logs: Path, began: datetime, ended: datetime) -> Iterator[tuple[str, Election]]:
    """Each partition with its election; every controller logs the same one, and a real one outweighs the others."""
    found = [
        (each["partition"], kind)
        for path in sorted(logs.glob("broker-*.log"))
        for at, _, text in lines_with(path, (UNCLEAN,))
        if began <= at <= ended and (each := _CHANGE.search(text)) and (kind := election_of(text))
    ]
    yield from sorted(found, key=lambda each: each[1] is Election.REAL)
