"""Answers of brokers as scripts read them: error codes by place, and the body by the protocol's field names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire.codes import codes_in
from wire.schema import Body

_TOPICS = ("Name", "TopicName", "Topic", "TopicId", "TransactionalId", "GroupId")
_PARTITIONS = ("PartitionIndex", "Index", "Partition")


class AmbiguousAnswerError(Exception):
    """An answer has several codes where the script reads one: the script must name the place."""


class NoAnswerError(Exception):
    """A request got no answer, because of time or the connection. That decides no claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer of one exchange; `body` is None if none came, and `error` then says why."""

    exchange: int
    api: str
    version: int
    body: Body | None
    error: str = ""

    @property
    def codes(self) -> dict[str, int]:
        """Every error code by its place, such as `orders-0`; the answer's own code has the place ''.

        Raises NoAnswerError.
        """
        if self.body is None:
            raise NoAnswerError(f"{self} never came: {self.error}")
        found = dict(codes_in(self.body, "", _place))
        # In an answer with places, its own code counts only if it is an error.
        return {place: code for place, code in found.items() if place or code or len(found) == 1}

    @property
    def code(self) -> int:
        """The one error code. Raises NoAnswerError, and AmbiguousAnswerError for several different ones."""
        several = set(self.codes.values())
        if len(several) != 1:
            raise AmbiguousAnswerError(f"{self} has the codes {self.codes}")
        return several.pop()

    def __str__(self) -> str:
        return f"answer {self.exchange} ({self.api} v{self.version})"

    def __getitem__(self, name: str) -> Any:
        """A field of the answer's body; raises NoAnswerError, and KeyError when it has no such field."""
        if self.body is None:
            raise NoAnswerError(f"{self} never came: {self.error}")
        return self.body[name]


def _place(value: Mapping[str, Any], place: str) -> str:
    name = next((str(value[each]) for each in _TOPICS if value.get(each)), "")
    number = next((str(value[each]) for each in _PARTITIONS if each in value), "")
    return "-".join(part for part in (place, name, number) if part)
