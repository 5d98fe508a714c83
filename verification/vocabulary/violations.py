"""Violations as checks find them, before those with one cause become one finding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from verification.vocabulary.anomalies import Anomaly

#: Causes: a last stable offset that stands still; a record that was read where the log holds nothing; a run that claims no
#: more than at-least-once; a state that went back.
LSO = "lso"
GONE = "gone"
ALLOWED = "allowed"
AGAIN = "again"
Partition = tuple[int, int]
Place = tuple[int, int, int]
OperationKey = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawViolation:
    """A violation as a check found it: `verification.sources.schema.VIOLATIONS` without the run.

    `harm` orders the examples. It is above 0 where a reader is the victim: a record was acknowledged and no read_committed
    reader received it, or one received it and must not have. A check sets it where its violations differ in that.
    `live` says that only a live observer shows it: the capture of its isolation level has no such violation.
    """

    anomaly: Anomaly
    process: int | None = None
    operation: int | None = None
    index: int | None = None
    topic_index: int | None = None
    partition: int | None = None
    offset: int | None = None
    observer: str | None = None
    detail: str = field(default="", compare=False)
    cause: str | None = None
    places: tuple[str, ...] = ()
    harm: int = 0
    live: bool = False

    @property
    def place(self) -> Place | None:
        """Where it is, when it is at one place."""
        if self.topic_index is None or self.partition is None or self.offset is None:
            return None
        return (self.topic_index, self.partition, self.offset)

    @property
    def operation_key(self) -> OperationKey | None:
        """The operation of the record or transaction, when there is one."""
        return None if self.process is None or self.operation is None else (self.process, self.operation)

    def missing(self) -> tuple[Place | None, ...]:
        """The acknowledged places of missing records, None for a record whose place is unknown."""
        return tuple(_place(text) for text in self.places)


def _place(text: str) -> Place | None:
    parts = text.split(":")
    return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) == 3 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """The violations of one run: primary findings, the consequences attributed to each, and those that its claim allows."""

    primary: dict[Anomaly, tuple[RawViolation, ...]]
    consequences: dict[Anomaly, tuple[RawViolation, ...]]
    allowed: tuple[RawViolation, ...] = ()

    def explained(self, anomaly: Anomaly) -> tuple[tuple[str, int], ...]:
        """The consequences of a primary finding, counted by their own anomaly."""
        found = Counter(each.anomaly for each in self.consequences.get(anomaly, ()))
        return tuple((str(each), found[each]) for each in Anomaly if found[each])
