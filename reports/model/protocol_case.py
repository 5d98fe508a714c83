"""One protocol case in a report: the claim, the requests with their responses, and the statements about them.

Cases and scenarios have much in common: both test the subject, decide requirements, and can be accepted. Their proof
differs: a scenario has a history and findings, a case has its script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from reports.model.conditions import Conditions
from verification.known_bugs.weight import Weight, heaviest
from verification.vocabulary.verdict import RequirementVerdict, Verdict

#: A violation in short: its known bug, empty where there is none, and its anomaly or requirement.
Proven = tuple[str, str]
#: The word for a violation that the user accepted.
ACCEPTED = "accepted"
#: The words for a violation that does not decide, the heaviest first; empty for one that decides.
ASIDES = ("", str(Weight.RISK), str(Weight.DEVIATION), ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A known bug that shows in a scenario or case that passed: its id, and the observation in words."""

    bug: str
    text: str


class Tried(Protocol):
    """The common properties of scenarios and protocol cases."""

    @property
    def key(self) -> str:
        """The name of its directory and its anchor."""

    @property
    def claim(self) -> str:
        """The claim in one sentence."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""

    @property
    def reason(self) -> str:
        """The reason for the verdict in one sentence."""

    @property
    def rate(self) -> str:
        """How often a violation was seen that was repeated; empty where none was."""

    @property
    def accepted(self) -> bool:
        """Whether every violation was accepted."""

    @property
    def aside(self) -> str:
        """The word for its violation where that does not decide: accepted, standing risk or deviation; else empty."""

    @property
    def weights(self) -> tuple[tuple[str, Weight], ...]:
        """The known bugs that name a violation which was not accepted, with their weights in the decision."""

    @property
    def counts_as(self) -> Verdict:
        """The verdict for the exit code: without the violation, where that does not decide."""

    @property
    def requirements(self) -> tuple[RequirementVerdict, ...]:
        """The verdicts on requirements."""

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The known bugs that it shows although it passed."""

    @property
    def run(self) -> str:
        """The id of this execution; empty where there is no evidence."""

    @property
    def seed(self) -> int | None:
        """The seed, None where nothing is left to chance."""

    @property
    def part(self) -> str:
        """The name of its run in a merged report."""

    @property
    def actual_s(self) -> float | None:
        """How long it took."""

    @property
    def replay(self) -> str:
        """The command that repeats it."""

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The violations with their known bugs."""

    @property
    def conditions(self) -> Conditions | None:
        """Its topics, and who was taken away; None where there is no evidence."""


def word_aside(verdict: Verdict, weight: Weight, *, accepted: bool) -> str:
    """The word for a violation that does not decide; empty for one that decides, and where there is none."""
    if verdict is not Verdict.FAIL:
        return ""
    if accepted:
        return ACCEPTED
    return "" if weight is Weight.DECIDES else weight.value


def aside_of(words: Iterable[str]) -> str:
    """The word for several violations: the heaviest of their words; empty where one of them decides."""
    return min(words, key=ASIDES.index, default="")


def seen_in(tried: Iterable[Tried]) -> str:
    """The words for known bugs that passes show: `KB-16 seen`; empty where there is none."""
    bugs = sorted({trace.bug for each in tried if each.verdict is Verdict.PASS for trace in each.traces})
    return f"{', '.join(bugs)} seen" if bugs else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """A request and its response in words: the fields that matter, the error codes by name.

    `at_ms` counts from the first request of the script. `took_ms` is None where no response came; `error` says why.
    `refused` is True where the response has an error code.
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
    """A statement about an observation, made after so many exchanges: a precondition if `required`, else a claim."""

    after: int
    what: str
    relation: str
    expected: str
    observed: str
    required: bool
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRow:
    """A known bug or limitation; `named` is True where the catalogue names this very case.

    `weight` is its weight in the decision where it names the case.
    """

    id: str
    note: str
    limitation: bool
    named: bool
    weight: Weight = Weight.DECIDES


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCase:
    """One protocol case.

    `key` names its directory and its anchor. `script` is the path of its script relative to the loaded directory, empty
    when there is none. `run` is the id of this execution. `accepted` is True when the violation is accepted.
    `without_findings` is the verdict without a violation that does not decide. `part` is the name of its run in a merged
    report. `setting` says which setting of the user explains its violation, in sentences. `rate` says how often
    a violation was seen that was repeated.
    """

    key: str
    claim: str
    verdict: Verdict
    reason: str
    rate: str = ""
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
    traces: tuple[Trace, ...] = ()
    conditions: Conditions | None = None
    setting: str = ""

    @property
    def weights(self) -> tuple[tuple[str, Weight], ...]:
        """The known bugs that name the case, unless the violation was accepted."""
        return () if self.accepted else tuple((each.id, each.weight) for each in self.known if each.named)

    @property
    def aside(self) -> str:
        """The word for its violation where that does not decide."""
        return word_aside(self.verdict, heaviest(weight for _, weight in self.weights), accepted=self.accepted)

    @property
    def counts_as(self) -> Verdict:
        """The verdict for the exit code: without the violation, where that does not decide."""
        return self.without_findings if self.aside else self.verdict

    @property
    def clear(self) -> bool:
        """Whether it needs no attention: it passed or does not apply."""
        return self.verdict <= Verdict.PASS

    @property
    def deciding(self) -> tuple[StatementRow, ...]:
        """The failed statements: claims, or else preconditions."""
        failing = tuple(each for each in self.statements if not each.holds)
        return tuple(each for each in failing if not each.required) or failing

    @property
    def claims(self) -> int:
        """The number of claims."""
        return sum(1 for each in self.statements if not each.required)

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The violated requirements with the known bug."""
        named = ", ".join(each.id for each in self.known if each.named)
        return tuple((named, each.id) for each in self.requirements if each.verdict is Verdict.FAIL)
