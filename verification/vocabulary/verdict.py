"""Verdicts, findings, coverage, and the one table that turns them into a decision and an exit code.

A verdict is a point on the lattice NOT_APPLICABLE < PASS < INCONCLUSIVE < ERROR < FAIL; verdicts combine by taking
the worst. A violation that was proven stays proven when something else broke, therefore FAIL is above ERROR. A pass
needs evidence that something was tried: too little coverage is INCONCLUSIVE, never PASS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from verification.vocabulary.strict_json import Float64, Int64

#: Examples of a finding in a verdict; all violations are in the files of the finding.
EXAMPLES_MAX = 32


class Verdict(IntEnum):
    """Requirement × run, and everything combined from it; the order is the severity."""

    NOT_APPLICABLE = 0
    PASS = 1
    INCONCLUSIVE = 2
    ERROR = 3
    FAIL = 4

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The combination of verdicts; of none it is NOT_APPLICABLE."""
        return max(verdicts, default=Verdict.NOT_APPLICABLE)


class Decision(StrEnum):
    """The decision of a platform team that follows from a report."""

    GO = "GO"
    NO_GO = "NO-GO"
    UNDECIDED = "UNDECIDED"


#: The beginning of the reason of NOT_APPLICABLE where a broker of another make does not offer a request.
NOT_IMPLEMENTED = "not implemented"


class ExitCode(IntEnum):
    """The exit codes of every entry point."""

    CONFORMANT = 0
    VIOLATION = 1
    INCONCLUSIVE = 2
    REGRESSION = 3
    USAGE = 4
    ENVIRONMENT = 5


#: Highest first: when several apply, the first in this table wins.
PRECEDENCE: tuple[ExitCode, ...] = (
    ExitCode.USAGE,
    ExitCode.VIOLATION,
    ExitCode.REGRESSION,
    ExitCode.ENVIRONMENT,
    ExitCode.INCONCLUSIVE,
    ExitCode.CONFORMANT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageItem:
    """How much of something happened and how much is needed for a pass to mean anything."""

    name: str
    have: Int64
    need: Int64
    text: str

    @property
    def met(self) -> bool:
        """Whether the floor is reached."""
        return self.have >= self.need


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The state of an upgrade at the moment of a violation, and the nodes that had a part in it.

    `releases` has the release of each node that ran, by its id as text; a node without one was down. `levels` are the final
    feature levels. `coordinator` is the node that coordinated the transaction, `leaders` are the nodes that led the
    partitions of the violation; None or empty where they are not known. `text` says all this in words.
    """

    at_ns: Int64
    stage: str
    releases: dict[str, str]
    levels: dict[str, Int64]
    text: str
    coordinator: Int64 | None = None
    leaders: tuple[Int64, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One concrete piece of wrongness; fields that do not apply are None.

    (process, operation, index) is a record's or transaction's identity; (topic, partition, offset) its place. In an upgrade
    a violation has `circumstances` where its time is known.
    """

    anomaly: str
    process: Int64 | None = None
    operation: Int64 | None = None
    index: Int64 | None = None
    topic: str | None = None
    partition: Int64 | None = None
    offset: Int64 | None = None
    observer: str | None = None
    detail: str = ""
    circumstances: Circumstances | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessPlace:
    """One place of a witness: its record in the log, the outcome of that record, and the readers that received it.

    `holds` is `record`, `commit marker`, `abort marker`, `other marker` or `nothing`; `outcome` is commit, abort or open.
    """

    topic: str
    partition: Int64
    offset: Int64
    holds: str
    outcome: str | None = None
    process: Int64 | None = None
    operation: Int64 | None = None
    index: Int64 | None = None
    producer_id: Int64 | None = None
    producer_epoch: Int64 | None = None
    given_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessOperation:
    """One operation of a witness with the answer to it; times are nanoseconds of the run's clock."""

    process: Int64
    operation: Int64
    action: str
    outcome: str
    invoked_ns: Int64
    told: str | None = None
    transactional_id: str | None = None
    records: Int64 = 0
    decided_ns: Int64 | None = None
    completed_ns: Int64 | None = None
    error_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The fewest places and operations that prove a finding's first example; `why` says why it is wrong."""

    why: str
    places: tuple[WitnessPlace, ...]
    operations: tuple[WitnessOperation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An anomaly, how often, the first examples (at most 32; all are in `findings/<anomaly>/`).

    `consequences` counts further violations that this finding explains; `explains` counts them by anomaly,
    and is empty in verdicts that were written before it existed. `known_bug` is the id of a
    known bug whose signature over the evidence matched; a finding without the signature stays unnamed. `witness` shows
    the first example; it is None in verdicts that were written before there were any. `reader` is the library, with its
    version, whose violations these are as a reader: live observers alone show them. It is empty for those of the subject.
    """

    anomaly: str
    count: Int64
    examples: tuple[Violation, ...]
    consequences: Int64 = 0
    explains: tuple[tuple[str, Int64], ...] = ()
    known_bug: str | None = None
    witness: Witness | None = None
    reader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementVerdict:
    """The verdict on one requirement by one run, with its reason in one sentence."""

    id: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioVerdict:
    """The judgement of one run. For a control, `convicted` says whether exactly the named anomalies were found.

    `crashed` names the checks that crashed, and why: their findings are unknown. `allowed` has the number of each anomaly
    that a claim of at-least-once allows; it is empty without such a claim.
    """

    scenario: str
    run: str
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]
    coverage: tuple[CoverageItem, ...]
    requirements: tuple[RequirementVerdict, ...]
    control: bool = False
    convicted: bool | None = None
    counts: tuple[tuple[str, Int64], ...] = ()
    judged_s: Float64 = 0.0
    crashed: tuple[str, ...] = ()
    allowed: tuple[tuple[str, Int64], ...] = ()


def without_findings(crashed: Sequence[str], coverage: Sequence[CoverageItem]) -> tuple[Verdict, str]:
    """The verdict of a run without its findings, with the reason; a pass has none."""
    if crashed:
        return Verdict.ERROR, "; ".join(crashed)
    if short := ", ".join(f"{each.text or each.name}: {each.have} of {each.need}" for each in coverage if not each.met):
        return Verdict.INCONCLUSIVE, f"too little was tried: {short}"
    return Verdict.PASS, ""


#: One of them, and several.
_ALLOWED_WORDS = {
    "duplicate": ("duplicate", "duplicates"),
    "output-without-offset": ("output ahead of its offset", "outputs ahead of their offsets"),
}


def allowance(allowed: Iterable[tuple[str, int]]) -> str:
    """The anomalies that a claim of at-least-once allows, in words; empty without such a claim."""
    said = (f"{count} {_ALLOWED_WORDS.get(anomaly, (anomaly, anomaly))[count != 1]}" for anomaly, count in allowed)
    return f"{found}, which at-least-once allows" if (found := " and ".join(said)) else ""


def exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code that wins among several; of none it is INCONCLUSIVE, because nothing was run."""
    present = set(codes)
    return next((code for code in PRECEDENCE if code in present), ExitCode.INCONCLUSIVE)


def code_of(verdict: Verdict) -> ExitCode:
    """The exit code that one subject's verdict asks for."""
    return {
        Verdict.NOT_APPLICABLE: ExitCode.CONFORMANT,
        Verdict.PASS: ExitCode.CONFORMANT,
        Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
        Verdict.ERROR: ExitCode.ENVIRONMENT,
        Verdict.FAIL: ExitCode.VIOLATION,
    }[verdict]


def decide(code: ExitCode, *, complete: bool) -> Decision:
    """GO needs exit code 0 of a complete profile; a violation that decides or a regression is NO-GO; else undecided.

    `verification.known_bugs.weight` says which violations decide; docs/decision.md has the whole rule.
    """
    if code in (ExitCode.VIOLATION, ExitCode.REGRESSION):
        return Decision.NO_GO
    return Decision.GO if code is ExitCode.CONFORMANT and complete else Decision.UNDECIDED
