"""Pinned offset ranges and how they are cut and grouped into Spark partitions; shared by all readers.

The caller gives the ranges. If each task resolved the ends for itself, it would do so at another time, and a transaction
that commits in between would look torn.

A range may be cut anywhere, through batches and transactions: a row depends on its own offset only, not on other rows.
Outcomes, which need a producer's next marker, are resolved when all rows are together again
(`verification.checks.places`).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from pyspark.sql.datasource import InputPartition

#: Offsets of one piece at most, and about as many as one Spark task reads. Our own Fetch reads 0.8 million records per
#: second and core, so this is some 0.6 s of work: ten times the fixed cost of a task. That cost is the Python worker,
#: definitions, connection, metadata, and the batch across each cut, which both sides read. Little is repeated when an
#: executor is lost. 10^9 records make 2,000 tasks.
SPLIT_OFFSETS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Range:
    """Offsets [start, end) of one partition; `topic_index` is the topic's place in the experiment's list.

    `reference` says where the identities are if not in the values (`verification.vocabulary.input_reference`).
    """

    topic: str
    topic_index: int
    partition: int
    start: int
    end: int
    reference: str = ""

    @property
    def length(self) -> int:
        """The number of offsets; there are fewer records."""
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


def split(ranges: Iterable[Range], most: int) -> list[Range]:
    """Ranges cut into pieces of equal length of at most `most` offsets each; 0 leaves them whole."""
    pieces = []
    for each in ranges:
        count = -(-each.length // most) if most and each.length else 1
        cuts = [each.start + each.length * number // count for number in range(count)]
        ends = [*cuts[1:], max(each.start, each.end)]
        pieces += [replace(each, start=start, end=end) for start, end in zip(cuts, ends, strict=True)]
    return pieces


def split_and_grouped(ranges: Sequence[Range], tasks: int, most: int) -> list[RangeGroup]:
    """`grouped` pieces of at most `most` offsets (0: whole ranges), in more groups than `tasks` where there are more.

    No group is then much longer than `most`, so that a large capture keeps all cores of a cluster busy; a small one has
    few tasks.
    """
    total = sum(each.length for each in ranges)
    return grouped(split(ranges, most), max(tasks, -(-total // most)) if most else tasks)


def grouped(ranges: Iterable[Range], tasks: int) -> list[RangeGroup]:
    """At most `tasks` groups of about equal length, without empty ranges; at least one group.

    Longest first into the shortest group: nearly even, and deterministic.
    """
    groups: list[list[Range]] = [[] for _ in range(max(1, tasks))]
    shortest = [(0, number) for number in range(len(groups))]
    for each in sorted(ranges, key=lambda one: (-one.length, one)):
        if each.length:
            length, number = shortest[0]
            groups[number].append(each)
            heapq.heapreplace(shortest, (length + each.length, number))
    return [RangeGroup(group) for group in groups if group] or [RangeGroup(())]
