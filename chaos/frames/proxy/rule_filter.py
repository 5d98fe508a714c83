"""The selector of a rule that a user wrote: ids, groups and topics by pattern."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from chaos.frames.selector import FrameFields, FrameFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFilter(FrameFilter):
    """As `FrameFilter`; but texts are patterns in which `*`, `?` and `[a-z]` have their usual meaning in a shell.

    `topic` and `index` hold for the same partition of a request. `text` is the rule as it was written.
    """

    text: str
    client_id: str | None = None
    topic: str | None = None
    index: int | None = None
    epoch: int | None = None

    @property
    def needs_fields(self) -> bool:
        """Whether the body of the request must be read to decide."""
        texts = (self.transactional_id, self.group, self.client_id, self.topic)
        return any(each is not None for each in (*texts, self.producer_id, self.index, self.epoch))

    def fits(self, fields: FrameFields) -> bool:
        """Whether a request with these fields matches, apart from its API and its number."""
        return (
            _matches(self.transactional_id, fields.transactional_ids)
            and _matches(self.group, fields.groups)
            and _matches(self.client_id, fields.client_ids)
            and (self.producer_id is None or self.producer_id in fields.producer_ids)
            and (self.epoch is None or self.epoch in fields.producer_epochs)
            and ((self.topic, self.index) == (None, None) or any(self._about(*at) for at in fields.partitions))
        )

    def _about(self, topic: str, index: int) -> bool:
        return _matches(self.topic, [topic]) and self.index in (None, index)

    def describe(self) -> str:
        """The rule in words."""
        return self.text


def _matches(pattern: str | None, values: Iterable[str]) -> bool:
    return pattern is None or any(fnmatchcase(value, pattern) for value in values)
