"""The one model that every face of a report is made from.

A face (HTML, JSON, JUnit, Markdown, terminal) reads a `Report` and nothing else: it opens no file, decides nothing and
computes no verdict, so two faces cannot disagree. Everything is a frozen value; times are seconds since the first
entry of a scenario's history. What could not be read is in `problems`, by name: a report never drops a directory.

A requirement that no scenario of the run decided has no verdict at all (`None`, shown as *untested*); this differs
from NOT_APPLICABLE, which a scenario said.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verification.verdict import CoverageItem, Decision, ExitCode, RequirementVerdict, Verdict

FORMAT = 1

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client under test: its library as it named itself, and the transaction protocol that it really spoke."""

    name: str
    library: str
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was tested: release and runtime of the brokers, clients, versions, digests, shape of the host."""

    release: str
    runtime: str
    clients: tuple[Client, ...]
    versions: Pairs
    digests: Pairs
    host: Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that keeps this report from being whole: where, and one sentence."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRow:
    """A violation that the user accepted: whether it held on the day of the run, and how many findings it covers."""

    id: str
    reason: str
    until: str
    expired: bool
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Operations that completed in one time bin, by outcome."""

    at_s: float
    ok: int
    fail: int
    info: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A fault window; `healed_s` is None when it never healed, `confirmed_s` when it was not seen to take hold."""

    step: int
    label: str
    began_s: float
    confirmed_s: float | None
    healed_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWindow:
    """A phase of the experiment."""

    name: str
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """High watermark − last stable offset in records, the worst partition at that time."""

    at_s: float
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What happened when; `bin_s` is the width of one bin."""

    bin_s: float
    end_s: float
    bins: tuple[Bin, ...]
    windows: tuple[Window, ...]
    phases: tuple[PhaseWindow, ...]
    lags: tuple[Lag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One step of the schedule as it went; `proof` is the observation that it took hold."""

    step: int
    fault: str
    description: str
    target: str
    began_s: float
    confirmed_s: float | None
    healed_s: float | None
    proof: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One example of a finding, with what the history knows about its operation; empty means not known or not so."""

    record: str
    transaction: str
    place: str
    producer: str
    told: str
    observer: str
    fault: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReport:
    """An anomaly that was found, what it is, why it is illegal, and its worst examples.

    `evidence` is the directory with every violation, empty when there is none.
    """

    anomaly: str
    definition: str
    why_illegal: str
    count: int
    consequences: int
    known_bug: str | None
    known_bug_note: str
    accepted: bool
    witnesses: tuple[Witness, ...]
    evidence: str


class Standing(StrEnum):
    """What a control proved about this suite."""

    CONVICTED = "CONVICTED"
    NOT_CONVICTED = "NOT CONVICTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A file or directory of evidence; `path` is relative to the directory that was loaded."""

    path: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioReport:
    """One scenario or control of the run.

    `key` names its directory and its anchor. `accepted` is True when every finding of a FAIL is accepted.
    `convicted` is None for a subject; `expects` are the anomalies that a control must show.
    """

    key: str
    scenario: str
    claim: str
    verdict: Verdict
    reason: str
    control: bool = False
    convicted: bool | None = None
    expects: tuple[str, ...] = ()
    accepted: bool = False
    run: str = ""
    seed: int | None = None
    client: str = ""
    protocol: str = ""
    cluster: str = ""
    workload: str = ""
    schedule: tuple[str, ...] = ()
    transaction_timeout_s: float = 0.0
    requirements: tuple[RequirementVerdict, ...] = ()
    coverage: tuple[CoverageItem, ...] = ()
    findings: tuple[FindingReport, ...] = ()
    faults: tuple[FaultRow, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    timeline: Timeline | None = None
    configuration: Pairs = ()
    evidence: tuple[Evidence, ...] = ()
    expected_s: float | None = None
    actual_s: float | None = None
    judged_s: float | None = None
    replay: str = ""

    @property
    def standing(self) -> Standing:
        """A control that was not judged has not been convicted."""
        return Standing.CONVICTED if self.convicted else Standing.NOT_CONVICTED

    @property
    def clear(self) -> bool:
        """Whether nothing about it asks for attention: a pass, something not applicable, or a convicted control."""
        return bool(self.convicted) if self.control else self.verdict <= Verdict.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementRow:
    """A sentence of the catalogue with the verdict of this run.

    `verdict` is None when nothing tested it, and `untested` then says why.
    """

    id: str
    family: str
    level: str
    text: str
    observable: str
    limitation: str
    source: tuple[str, ...]
    verdict: Verdict | None
    untested: str
    accepted: bool
    decided_by: tuple[tuple[str, Verdict, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from all of it; `why` is one sentence."""

    verdict: Verdict
    decision: Decision
    exit_code: ExitCode
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run, or one scenario's directory seen as a run.

    `partial` says why this is not a complete profile, empty when it is. `origin` is the directory that was loaded;
    evidence paths are relative to it. `families` are the catalogue's families with their titles.
    """

    origin: Path
    judgement: Judgement
    interrupted: bool
    partial: str
    subject: Subject
    seed: int | None
    profile: str
    started: str
    duration_s: float
    expected_s: float
    suite: str
    options: Pairs
    downloads: Pairs
    scenarios: tuple[ScenarioReport, ...]
    controls: tuple[ScenarioReport, ...]
    requirements: tuple[RequirementRow, ...]
    families: Pairs
    acceptances: tuple[AcceptanceRow, ...]
    problems: tuple[Problem, ...]
    replay: str
    format: int = FORMAT

    @property
    def worst_first(self) -> tuple[ScenarioReport, ...]:
        """The scenarios in the order in which a reader needs them; equals stay in the order of the plan."""
        return tuple(sorted(self.scenarios, key=lambda each: (-each.verdict, each.accepted)))

    def count(self, verdict: Verdict) -> int:
        """How many scenarios (controls aside) have this verdict."""
        return sum(1 for each in self.scenarios if each.verdict is verdict)
