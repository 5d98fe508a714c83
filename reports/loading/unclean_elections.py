"""Explains what controllers call UNCLEAN: an election of a replica outside of the last in-sync set.

With eligible leader replicas (KIP-966) that is not always a replica that lacks records. When the whole in-sync set is gone,
a partition keeps its eligible replicas, and at last the one that led last. If that one was not shut down cleanly, it is
elected with the state RECOVERING, without any setting that allows it. A controller logs and counts all of these alike
(`PartitionRegistration.electionWasClean`, `PartitionChangeBuilder.canElectLastKnownLeader`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from reports.loading.broker_log import UNCLEAN, lines_with
from reports.model.timeline import Timeline

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
