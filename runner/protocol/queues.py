"""The order of protocol cases: those that need the same cluster form a queue, so that one cluster serves all of them.

The largest clusters come first, because the last queue runs alone. Cases do not affect each other: their topics, groups
and ids have names of their own. Cases that share the outages of their brokers are taken together (`shared_outages.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby

from runner.lanes import Queue
from runner.protocol.case_runner import ProtocolCase


def queues(cases: Sequence[ProtocolCase]) -> list[Queue[ProtocolCase]]:
    """The cases by cluster, in the order in which lanes begin them.

    Within a queue, groups that share outages come first, because they take longest. Cases that go through an outage
    alone follow: a broker that comes back loads the logs of all cases before. Else the order of `cases` is kept.
    """
    by_cluster = sorted(cases, key=lambda case: (-case.needs.brokers, case.needs.describe()))
    alike = [list(group) for _, group in groupby(by_cluster, key=lambda case: case.needs.describe())]
    # A long queue is begun early: other lanes can help with it.
    alike.sort(key=lambda group: (-group[0].needs.brokers, -len(group)))
    return [Queue(deque(sorted(sharing_groups(group), key=_when))) for group in alike]


def sharing_groups(cases: Sequence[ProtocolCase]) -> list[list[ProtocolCase]]:
    """The cases of one cluster in groups that share an outage, directly or through a third case; the order is kept."""
    found: list[list[ProtocolCase]] = []
    for case in cases:
        joined = [each for each in found if any(set(other.shares) & set(case.shares) for other in each)]
        found = [each for each in found if each not in joined]
        found.append([*(other for each in joined for other in each), case])
    places = {case.key: number for number, case in enumerate(cases)}
    return sorted(found, key=lambda group: places[group[0].key])


def _when(group: Sequence[ProtocolCase]) -> tuple[int, bool]:
    return -len(group), not group[0].shares
