"""Findings as values: the anomaly, its examples with facts from the history, and the log around one example."""

from __future__ import annotations

from dataclasses import dataclass

from verification.known_bugs.weight import Weight
from verification.vocabulary.verdict import Circumstances


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example of a finding with facts of the history about its operation; empty means unknown or none.

    `fault` names the fault that the operation overlapped in words, `when` by the number of its step. `circumstances` is the
    state of an upgrade at that moment; `detail` begins with its words.
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
    circumstances: Circumstances | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A log entry near a violation, and how many times each reader received it.

    `what` is the identity of a record (process, operation, record), a marker, or a state of a transactional id.

    `committed` and `uncommitted` count in the final captures of that isolation level, `received` counts in all live
    observers together. `violates` marks the records of the violation's operation that readers lack or must not have; all its
    records where there is none.
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
    """A line of a broker log near a violation; `alike` counts further lines that differ only in their numbers.

    `file` is the log file in the evidence. `names_it` is True where the line names the violating transactional id, and
    not only a partition of the violation. `note` explains a line whose words mislead.
    """

    at_s: float
    broker: str
    file: str
    level: str
    text: str
    alike: int
    names_it: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRow:
    """A log entry of the witness: its content, its writer, and the readers that received it."""

    place: str
    holds: str
    writer: str
    producer: str
    given_to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """An operation of the witness: its action, its times, and the answer to the client; empty means none."""

    operation: str
    action: str
    transaction: str
    told: str
    invoked_s: float | None
    decided_s: float | None
    completed_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessRows:
    """The witness of the judge, for display: the fewest log entries and operations that prove the first example."""

    places: tuple[PlaceRow, ...]
    operations: tuple[OperationRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReport:
    """A finding: the anomaly, its definition, why it is illegal, and its first examples.

    `weight` is that of its known bug in the decision; without a known bug it decides. `setting` says which setting of the
    user explains it, in sentences.
    `evidence` is the directory with every violation, empty when there is none. `around` is the log around the first
    example, `around_count` the number of log entries in the evidence, `around_brokers` the lines of broker logs about
    it. `minimal` is the witness of the first example, None in older verdicts. `reader` is that of the verdict
    (`Finding`).
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
    weight: Weight = Weight.DECIDES
    setting: str = ""
    explains: tuple[tuple[str, int], ...] = ()
    around: tuple[LogRow, ...] = ()
    around_count: int = 0
    around_brokers: tuple[BrokerLine, ...] = ()
    minimal: WitnessRows | None = None
    reader: str = ""

    @property
    def whose(self) -> str:
        """A sentence where a reader alone shows it, else empty."""
        return f"Only {self.reader} as a reader shows it; a capture by another client does not." if self.reader else ""

    @property
    def first(self) -> Example | None:
        """The first example, the one with the witness and the logs; None when its operation is not in the history."""
        return self.witnesses[0] if self.witnesses and self.witnesses[0].at_s is not None else None
