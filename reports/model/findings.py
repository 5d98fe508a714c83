"""What was found, as values: an anomaly, its examples with what the history knows of them, and the log around one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example of a finding, with what the history knows about its operation; empty means not known or not so.

    `fault` says in words under which fault it happened, `when` by the number of its step.
    """

    record: str
    transaction: str
    place: str
    producer: str
    told: str
    observer: str
    when: str
    fault: str
    detail: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A place of the log near a violation: what stands there, and who was given it how often.

    `what` is a record's identity (process, operation, record), the marker, or a state of a transactional id.

    `committed` and `uncommitted` count the final readers of either isolation, `received` all live observers together;
    `violates` marks the operation of the violation itself.
    """

    place: str
    what: str
    producer: str
    outcome: str
    told: str
    committed: str
    uncommitted: str
    received: str
    violates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """A line of a broker's log near a violation; `alike` more differ from it in nothing but their numbers.

    `file` is its log among the evidence of broker logs. `names_it` is True where it names the violating transactional
    id, and not only a partition of the violation.
    """

    at_s: float
    broker: str
    file: str
    level: str
    text: str
    alike: int
    names_it: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRow:
    """A place of the minimal witness: what the log holds there, whose it is, and which readers were given it."""

    place: str
    holds: str
    writer: str
    producer: str
    given_to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """An operation of the minimal witness: what a client did, when, and what it was told; empty means not so."""

    operation: str
    action: str
    transaction: str
    told: str
    invoked_s: float | None
    decided_s: float | None
    completed_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The fewest places and operations that show a finding's first example, as the judge chose them."""

    places: tuple[PlaceRow, ...]
    operations: tuple[OperationRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReport:
    """An anomaly that was found, what it is, why it is illegal, and its worst examples.

    `evidence` is the directory with every violation, empty when there is none. `around` is the log around the
    example that began first, `around_count` how many places the evidence has in all, `around_brokers` what the brokers
    logged about it; `minimal` is the judge's witness of the first example, None in verdicts that were written before
    there were any.
    """

    anomaly: str
    definition: str
    why_illegal: str
    count: int
    consequences: int
    known_bug: str | None
    known_bug_note: str
    accepted: bool
    witnesses: tuple[Example, ...]
    evidence: str
    around: tuple[LogRow, ...] = ()
    around_count: int = 0
    around_brokers: tuple[BrokerLine, ...] = ()
    minimal: Witness | None = None

    @property
    def first(self) -> Example | None:
        """The example whose operation began first; None when the history knows none of their operations."""
        timed = [each for each in self.witnesses if each.at_s is not None]
        return min(timed, key=lambda each: each.at_s or 0.0, default=None)
