"""The one model that every face of a report is made from.

A face (HTML, JSON, JUnit, Markdown, terminal) reads a `Report` and nothing else: it opens no file, decides nothing and
computes no verdict, so two faces cannot disagree. Everything is a frozen value; times are seconds since the first
entry of a scenario's history. What could not be read is in `problems`, by name: a report never drops a directory.

Scenarios and controls have their evidence in histories; protocol cases have scripts (`reports.model.protocol_case`).

A requirement that no scenario or case of the run decided has no verdict at all (`None`, shown as *untested*); this differs
from NOT_APPLICABLE, which a scenario said.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reports.model.change import Change, Comparison
from reports.model.findings import Example, FindingReport
from reports.model.protocol_case import Proven, ScriptCase, Tried
from reports.model.timeline import Timeline
from verification.vocabulary.experiment import FEATURE
from verification.vocabulary.verdict import CoverageItem, Decision, ExitCode, RequirementVerdict, Verdict

FORMAT = 1
#: Stands for what no evidence says.
NOT_RECORDED = "not recorded"
#: The facts about a host that say how large it is.
SHAPE = ("processors", "memory")

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client under test: its library as it named itself, and the transaction protocol that it really spoke."""

    name: str
    library: str
    protocol: str

    @property
    def recorded(self) -> bool:
        """Whether it said anything of itself."""
        return {self.library, self.protocol} != {NOT_RECORDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was tested: release and runtime of the brokers, clients, versions, digests, shape of the host."""

    release: str
    runtime: str
    clients: tuple[Client, ...]
    versions: Pairs
    digests: Pairs
    host: Pairs

    @property
    def levels(self) -> Pairs:
        """The finalized feature levels that the brokers named."""
        return tuple((name.removeprefix(FEATURE), level) for name, level in self.versions if name.startswith(FEATURE))

    @property
    def fingerprint(self) -> str:
        """One short digest of all digests: two runs with the same one had the same files."""
        text = "\n".join(f"{name} {digest}" for name, digest in self.digests)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def shape(self) -> str:
        """Processors and memory of the host, as far as they were recorded."""
        return ", ".join(f"{name.lower()} {value}" for name, value in self.host if name.lower() in SHAPE)


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


class ControlResult(StrEnum):
    """What a control proved about this suite."""

    DETECTED = "DETECTED"
    MISSED = "MISSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A file or directory of evidence; `path` is relative to the directory that was loaded."""

    path: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioReport:
    """One scenario or control of the run.

    `key` names its directory and its anchor. `accepted` is True when every finding of a FAIL is accepted;
    `without_findings` is then what is left without them. `convicted` is None for a subject; `expects` are the anomalies
    that a control must show. `part` is the run that it belongs to in a merged report.
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
    without_findings: Verdict = Verdict.PASS
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
    part: str = ""

    @property
    def counts_as(self) -> Verdict:
        """The verdict, or what lies beneath a violation that was accepted."""
        return self.without_findings if self.accepted else self.verdict

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The anomalies that were found, with the known bugs that they are."""
        return tuple((each.known_bug or "", each.anomaly) for each in self.findings)

    @property
    def first_violation(self) -> tuple[FindingReport, Example] | None:
        """The earliest violation whose operation is known, with its finding."""
        firsts = [(finding, first) for finding in self.findings if (first := finding.first) is not None]
        return min(firsts, key=lambda each: each[1].at_s or 0.0, default=None)

    @property
    def standing(self) -> ControlResult:
        """A control that was not judged has not been convicted."""
        return ControlResult.DETECTED if self.convicted else ControlResult.MISSED

    @property
    def clear(self) -> bool:
        """Whether nothing about it asks for attention: a pass, something not applicable, or a convicted control."""
        return bool(self.convicted) if self.control else self.verdict <= Verdict.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementRow:
    """A sentence of the catalogue with the verdict of this run.

    `verdict` is None when nothing tested it, and `untested` then says why; `applies` is False where the sentence does
    not speak about the release under test.
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
    applies: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from all of it; `why` is one sentence."""

    verdict: Verdict
    decision: Decision
    exit_code: ExitCode
    why: str

    @property
    def accepted(self) -> bool:
        """Whether every violation was accepted beforehand; one that was not decides the exit code."""
        return self.verdict is Verdict.FAIL and self.exit_code is not ExitCode.VIOLATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several directories that were merged: a run, or the sentence that says why it is not counted.

    `name` ends the keys of its scenarios (`…@name`) and is empty for a directory that is not counted; `directory` is
    relative to the merged report's origin; `comparison` is what the run itself had been compared with.
    """

    name: str
    directory: str
    note: str = ""
    subject: str = ""
    started: str = ""
    profile: str = ""
    seed: int | None = None
    decision: str = ""
    verdict: Verdict | None = None
    duration_s: float = 0.0
    host: Pairs = ()
    replay: str = ""
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run or sweep, or the directory of one scenario or case seen as a run.

    `partial` says why this is not a complete profile, empty when it is. `origin` is the directory that was loaded;
    evidence paths are relative to it. `families` are the catalogue's families with their titles. `parts` are the
    directories of a merged report, none of a single run.
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
    comparison: Comparison | None = None
    parts: tuple[Part, ...] = ()
    cases: tuple[ScriptCase, ...] = ()
    format: int = FORMAT

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Everything that was tried on the subject."""
        return (*self.scenarios, *self.cases)

    @property
    def comparisons(self) -> tuple[tuple[str, Comparison], ...]:
        """With what it was compared: as a whole, or of several runs each with its own baseline, by the run's name."""
        if self.comparison is not None:
            return (("", self.comparison),)
        return tuple((each.name, each.comparison) for each in self.parts if each.comparison is not None)

    @property
    def regressions(self) -> tuple[tuple[str, Change], ...]:
        """What got worse, with the name of the run where it was compared by itself."""
        return tuple((name, change) for name, each in self.comparisons for change in each.regressions)

    @property
    def is_sweep(self) -> bool:
        """Whether it has protocol cases and nothing else."""
        return bool(self.cases) and not self.scenarios and not self.controls

    @property
    def cases_worst_first(self) -> tuple[ScriptCase, ...]:
        """The protocol cases in the order in which a reader needs them; equals stay in the order of the plan."""
        return tuple(sorted(self.cases, key=lambda each: (-each.verdict, each.accepted)))

    @property
    def worst_first(self) -> tuple[ScenarioReport, ...]:
        """The scenarios in the order in which a reader needs them; equals stay in the order of the plan."""
        return tuple(sorted(self.scenarios, key=lambda each: (-each.verdict, each.accepted)))
