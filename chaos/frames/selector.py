"""Selects frames by the fields of their request, never by chance.

Every criterion that is given must hold. A criterion never holds for a request without that field: a Heartbeat has no
partition, so a selector with a partition selects no Heartbeat. A request may have several values of a field:
WriteTxnMarkers carries the markers of many producers, AddPartitionsToTxn v4+ many transactional ids. A criterion then
holds when its value is among them. Criteria apply to the frame as a whole, not to one entry of it. A *response* is
selected by the fields of its request, because only the request has ids and partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wire.values import TopicPartition


class Direction(StrEnum):
    """The direction of a frame: to the side that accepted the connection, or back."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFields:
    """The ids, epochs, partitions and groups in a request; empty where it has none."""

    transactional_ids: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()
    groups: frozenset[str] = frozenset()
    client_ids: frozenset[str] = frozenset()
    producer_epochs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFilter:
    """A selector. `api` is a name ("EndTxn") or, for an API without definition, a number; None means any.

    Of the frames that match, the first `skip` pass, the next `count` are met (all when None), and the rest pass.
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
    def needs_fields(self) -> bool:
        """Whether the body of the request must be read to decide."""
        criteria = (self.transactional_id, self.producer_id, self.partition, self.group)
        return any(each is not None for each in criteria)

    def fits(self, fields: FrameFields) -> bool:
        """Whether a request with these fields matches, apart from its API and its number."""
        return (
            (self.transactional_id is None or self.transactional_id in fields.transactional_ids)
            and (self.producer_id is None or self.producer_id in fields.producer_ids)
            and (self.partition is None or self.partition in fields.partitions)
            and (self.group is None or self.group in fields.groups)
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
        """Why this selector could never meet any frame, None when it could."""
        if self.count is not None and self.count < 1:
            return f"a count of {self.count} selects no frame"
        return "a negative number cannot be skipped" if self.skip < 0 else None
