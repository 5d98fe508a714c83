"""Which frames: a selector names them by what their request says, never by chance.

Every criterion that is given must hold, and one that a frame cannot show never holds: a Heartbeat has no partition, so
a selector with a partition meets no Heartbeat. A request may say a thing several times (WriteTxnMarkers carries the
markers of many producers, AddPartitionsToTxn v4+ many transactional ids); a criterion holds when it is among them, and
criteria are held against the frame as a whole, not against one entry of it. A *response* is selected by what its
request said, because only the request names ids and partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wire.values import TopicPartition


class Direction(StrEnum):
    """Which way a frame travels: to the one who was connected to, or back."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFields:
    """What a request says about whom and what it concerns; empty where it says nothing."""

    transactional_ids: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFilter:
    """A selector. `api` is a name ("EndTxn") or, for one that nobody defines, a number; None means any.

    Of the frames that fit, the first `skip` pass, the next `count` are met (all when None), and the rest pass.
    """

    api: str | int | None = None
    direction: Direction = Direction.REQUEST
    transactional_id: str | None = None
    producer_id: int | None = None
    partition: TopicPartition | None = None
    group: str | None = None
    skip: int = 0
    count: int | None = None

    @property
    def needs_facts(self) -> bool:
        """Whether the body of the request must be read to decide."""
        criteria = (self.transactional_id, self.producer_id, self.partition, self.group)
        return any(each is not None for each in criteria)

    def fits(self, facts: FrameFields) -> bool:
        """Whether a request that says this fits, its API and its place in the count aside."""
        return (
            (self.transactional_id is None or self.transactional_id in facts.transactional_ids)
            and (self.producer_id is None or self.producer_id in facts.producer_ids)
            and (self.partition is None or self.partition in facts.partitions)
            and (self.group is None or self.group in facts.groups)
        )

    def describe(self) -> str:
        """The selector in words."""
        named = {
            "of": self.transactional_id,
            "of producer id": self.producer_id,
            "about": self.partition,
            "of group": self.group,
        }
        words = [f"API {self.api}" if isinstance(self.api, int) else self.api or "all", f"{self.direction}s"]
        words += [f"{word} {value}" for word, value in named.items() if value is not None]
        if self.skip:
            words.append(f"after {self.skip}")
        if self.count is not None:
            words.append(f"at most {self.count}")
        return " ".join(words)

    def flaw(self) -> str | None:
        """Why this selector could never meet a frame, None when it could."""
        if self.count is not None and self.count < 1:
            return f"a count of {self.count} selects no frame"
        return "a negative number cannot be skipped" if self.skip < 0 else None
