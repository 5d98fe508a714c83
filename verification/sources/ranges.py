"""Pinned offset ranges and how they are grouped into Spark partitions; shared by both readers.

Ranges are given by the caller, never asked for here: ends that each task resolves for itself are taken at different
moments, and then a transaction that commits in between looks torn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql.datasource import InputPartition


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Range:
    """Offsets [start, end) of one partition; `topic_index` is the topic's place in the experiment's list."""

    topic: str
    topic_index: int
    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets, which is more than how many records."""
        return max(0, self.end - self.start)


class RangeGroup(InputPartition):
    """The ranges that one Spark task reads over one connection per broker."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


def encode(ranges: Iterable[Range]) -> str:
    """Ranges as the value of a data source option."""
    return json.dumps([asdict(each) for each in ranges])


def decode(text: str) -> tuple[Range, ...]:
    """The inverse of `encode`."""
    return tuple(Range(**each) for each in json.loads(text))


def grouped(ranges: Iterable[Range], tasks: int) -> list[RangeGroup]:
    """At most `tasks` groups of about equal length, empty ranges left out; at least one group.

    Longest first into the shortest group: close enough to even, and the same for the same input.
    """
    groups: list[list[Range]] = [[] for _ in range(max(1, tasks))]
    for each in sorted(ranges, key=lambda one: (-one.length, one)):
        if each.length:
            min(groups, key=lambda group: sum(one.length for one in group)).append(each)
    return [RangeGroup(group) for group in groups if group] or [RangeGroup(())]
