"""One protocol case as a report tells it: the claim, what was asked and answered, and what was said about it.

It stands beside a scenario: both are tried on the subject, decide requirements, and can be accepted. What differs is
the proof: a scenario has a history and findings, a case has the script itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from verification.vocabulary.verdict import RequirementVerdict, Verdict

#: A violation in short: the known bug that it is, empty where it is none, and the anomaly or requirement.
Proven = tuple[str, str]


class Tried(Protocol):
    """What scenarios and protocol cases have in common."""

    @property
    def key(self) -> str:
        """The name of its directory and its anchor."""

    @property
    def claim(self) -> str:
        """What was claimed, one sentence."""

    @property
    def verdict(self) -> Verdict:
        """How it ended."""

    @property
    def reason(self) -> str:
        """Why, in one sentence."""

    @property
    def accepted(self) -> bool:
        """Whether all that was violated was accepted beforehand."""

    @property
    def counts_as(self) -> Verdict:
        """What decides the exit code: the verdict, or what lies beneath a violation that was accepted."""

    @property
    def requirements(self) -> tuple[RequirementVerdict, ...]:
        """What it says about the rows of the catalogue."""

    @property
    def run(self) -> str:
        """What tells this execution from every other; empty where there is no evidence."""

    @property
    def seed(self) -> int | None:
        """The seed, None where nothing is left to chance."""

    @property
    def part(self) -> str:
        """The run that it belongs to in a merged report."""

    @property
    def actual_s(self) -> float | None:
        """How long it took."""

    @property
    def replay(self) -> str:
        """The command that repeats it."""

    @property
    def proven(self) -> tuple[Proven, ...]:
        """What was violated, with the known bugs that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """A request and its answer in words: the fields that matter, the error codes by name.

    `at_ms` counts from the first request of the script; `took_ms` is None where no answer came, and `error` says why.
    `refused` is True where the answer carries an error code.
    """

    number: int
    api: str
    version: int
    to: str
    request: str
    codes: str
    answer: str
    error: str
    at_ms: float
    took_ms: float | None
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRow:
    """What was said about an observation after so many exchanges; `required` marks the ground, else it is a claim."""

    after: int
    what: str
    relation: str
    expected: str
    observed: str
    required: bool
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRow:
    """A known bug or limitation; `named` is True where the list says that this very case shows it."""

    id: str
    note: str
    limitation: bool
    named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCase:
    """One protocol case of a sweep.

    `key` names its directory and its anchor. `script` is the path of its script relative to the directory that was
    loaded, empty when there is none; `run` tells this performance from every other. `accepted` is True when the
    violation is accepted; `without_findings` is then what is left without it. `part` is the run that it belongs to in a
    merged report.
    """

    key: str
    claim: str
    verdict: Verdict
    reason: str
    accepted: bool = False
    without_findings: Verdict = Verdict.PASS
    requirements: tuple[RequirementVerdict, ...] = ()
    generation: str = ""
    cluster: str = ""
    levels: str = ""
    exchanges: tuple[ExchangeRow, ...] = ()
    statements: tuple[StatementRow, ...] = ()
    known: tuple[KnownRow, ...] = ()
    broke: str = ""
    script: str = ""
    run: str = ""
    actual_s: float | None = None
    replay: str = ""
    part: str = ""
    seed: int | None = None

    @property
    def counts_as(self) -> Verdict:
        """The verdict, or what lies beneath a violation that was accepted."""
        return self.without_findings if self.accepted else self.verdict

    @property
    def clear(self) -> bool:
        """Whether nothing about it asks for attention."""
        return self.verdict <= Verdict.PASS

    @property
    def deciding(self) -> tuple[StatementRow, ...]:
        """The statements that do not hold: violated claims, or else the ground that was missing."""
        failing = tuple(each for each in self.statements if not each.holds)
        return tuple(each for each in failing if not each.required) or failing

    @property
    def claims(self) -> int:
        """How many claims it made."""
        return sum(1 for each in self.statements if not each.required)

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The requirements that it proved violated, with the known bug that it is."""
        named = ", ".join(each.id for each in self.known if each.named)
        return tuple((named, each.id) for each in self.requirements if each.verdict is Verdict.FAIL)
