"""The model of a report, from which every output format is made.

An output format (HTML, JSON, JUnit, Markdown, terminal) reads a `Report` and nothing else. It opens no file and computes
no verdict, so two formats cannot disagree. All values are frozen. Times are seconds since the first entry of a
scenario's history. Unreadable files are in `problems` by name: a report never drops a directory.

The evidence of scenarios and controls is a history; that of protocol cases is a script (`reports.model.protocol_case`).

A requirement that the run did not check has no verdict (`None`, shown as *untested*). This differs from NOT_APPLICABLE,
which a scenario decided.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reports.model.change import BaselineComparison, Change
from reports.model.conditions import NOT_RECORDED, Conditions
from reports.model.damage import Damage
from reports.model.findings import Example, FindingReport
from reports.model.protocol_case import Proven, ScriptCase, Trace, Tried, word_aside
from reports.model.run_judgement import RunJudgement
from reports.model.timeline import FiredAlert, Timeline
from reports.model.upgrade import UpgradeReport, title_of
from verification.known_bugs.weight import Weight, heaviest
from verification.vocabulary.experiment import AT_LEAST_ONCE, FEATURE
from verification.vocabulary.verdict import CoverageItem, RequirementVerdict, Verdict

FORMAT = 1
#: The topic of a place such as `orders-0@17, 18`.
_TOPIC = re.compile(r"(.+)-[0-9]+@")
#: The facts about a host that say how large it is.
SHAPE = ("processors", "memory")

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUnderTest:
    """A client under test: its library with version, and the transaction version that it used."""

    name: str
    library: str
    protocol: str

    @property
    def recorded(self) -> bool:
        """Whether the evidence says anything about it."""
        return {self.library, self.protocol} != {NOT_RECORDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject and its host: release and runtime of the brokers, clients, versions, digests.

    `upgraded_from` is the release from which a run upgrades its clusters to `release`, empty for other runs. `pipelines`
    is the number of pipelines where nothing else was tried, else 0; so many of them claim no more than at-least-once.
    """

    release: str
    runtime: str
    clients: tuple[ClientUnderTest, ...]
    versions: Pairs
    digests: Pairs
    host: Pairs
    upgraded_from: str = ""
    pipelines: int = 0
    at_least_once: int = 0

    @property
    def beyond_release(self) -> str:
        """The subject where it is not a release alone: what was upgraded, or pipelines; else empty."""
        if self.upgraded_from:
            return title_of(self.upgraded_from, self.release)
        noun = "pipeline" if self.pipelines == 1 else "pipelines"
        weaker = "" if self.at_least_once == self.pipelines else f"{self.at_least_once} of them "
        claim = f", {weaker}{AT_LEAST_ONCE}" if self.at_least_once else ""
        return f"{self.pipelines} {noun} on Kafka {self.release}{claim}" if self.pipelines else ""

    @property
    def title(self) -> str:
        """The subject as a heading."""
        return self.beyond_release or f"Kafka {self.release}"

    @property
    def own(self) -> bool:
        """Whether the brokers are a cluster of the user."""
        return self.runtime == "given"

    @property
    def place(self) -> str:
        """Where the brokers ran."""
        return "a cluster of your own" if self.own else f"runtime {self.runtime or 'unknown'}"

    @property
    def levels(self) -> Pairs:
        """The finalized feature levels of the brokers."""
        return tuple((name.removeprefix(FEATURE), level) for name, level in self.versions if name.startswith(FEATURE))

    @property
    def fingerprint(self) -> str:
        """One short digest of all digests: if it is equal, two runs used the same files."""
        text = "\n".join(f"{name} {digest}" for name, digest in self.digests)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def shape(self) -> str:
        """Processors and memory of the host, as far as they were recorded."""
        return ", ".join(f"{name.lower()} {value}" for name, value in self.host if name.lower() in SHAPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A defect of the evidence: where, and one sentence."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRow:
    """A violation that the user accepted: whether it had expired on the day of the run, and how many findings it covers."""

    id: str
    reason: str
    until: str
    expired: bool
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One step of the schedule as it happened; `proof` is the observation that the fault took effect."""

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
    """Whether the suite found the defect of a control."""

    DETECTED = "DETECTED"
    MISSED = "MISSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """A file or directory of evidence; `path` is relative to the loaded directory."""

    path: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioReport:
    """One scenario or control of the run.

    `key` names its directory and its anchor. `accepted` is True when every finding of a FAIL is accepted.
    `without_findings` is the verdict without findings that do not decide. `convicted` says whether a control was detected,
    None where it was not judged and for a subject; `expects` are the anomalies that must be found in a control. `part` is
    the name of its run in a merged report. `topics` have partitions, replication factor and min ISR of each topic.
    `judge` is the command that judges evidence without a verdict, from the directory of the report.
    `moments` are the faults and what happened meanwhile, in seconds from the start. `upgrade` is None where no release
    changes. `allowed` is that of the verdict (`ScenarioVerdict`). `rate` says how often a violation was
    seen that was repeated.
    """

    key: str
    scenario: str
    claim: str
    verdict: Verdict
    reason: str
    rate: str = ""
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
    evidence: tuple[EvidenceFile, ...] = ()
    expected_s: float | None = None
    actual_s: float | None = None
    judged_s: float | None = None
    replay: str = ""
    part: str = ""
    topics: tuple[str, ...] = ()
    judge: str = ""
    moments: tuple[tuple[float, str], ...] = ()
    damage: Damage | None = None
    upgrade: UpgradeReport | None = None
    allowed: tuple[tuple[str, int], ...] = ()
    traces: tuple[Trace, ...] = ()
    conditions: Conditions | None = None

    @property
    def named_topics(self) -> tuple[str, ...]:
        """The topics that the examples of its findings name."""
        examples = (example for finding in self.findings for example in finding.witnesses)
        return tuple(dict.fromkeys(found[1] for each in examples if (found := _TOPIC.match(each.place))))

    @property
    def weights(self) -> tuple[tuple[str, Weight], ...]:
        """The known bugs that name findings which were not accepted."""
        return tuple((each.known_bug, each.weight) for each in self.findings if each.known_bug and not each.accepted)

    @property
    def aside(self) -> str:
        """The word for its violation where that does not decide."""
        weight = heaviest(each.weight for each in self.findings if not each.accepted)
        return word_aside(self.verdict, weight, accepted=self.accepted)

    @property
    def counts_as(self) -> Verdict:
        """The verdict for the exit code: without the findings, where they do not decide."""
        return self.without_findings if self.aside else self.verdict

    @property
    def proven(self) -> tuple[Proven, ...]:
        """The anomalies that were found, with their known bugs."""
        return tuple((each.known_bug or "", each.anomaly) for each in self.findings)

    def alerts_on(self, finding: FindingReport) -> tuple[FiredAlert, ...] | None:
        """The alerts that can reveal such a finding and fired after its first example began; None without metrics."""
        fired = self.timeline.alerts if self.timeline else None
        if fired is None:
            return None
        since_s = finding.first.at_s if finding.first else None
        return tuple(
            each
            for each in fired
            if finding.anomaly in each.shows and (since_s is None or each.ended_s is None or each.ended_s >= since_s)
        )

    @property
    def first_violation(self) -> tuple[FindingReport, Example] | None:
        """The first example of the first finding whose operation is known, with its finding."""
        firsts = ((finding, first) for finding in self.findings if (first := finding.first) is not None)
        return next(firsts, None)

    @property
    def control_result(self) -> ControlResult | None:
        """DETECTED or MISSED; None where it did not apply, run or could not be judged, which its verdict says."""
        if self.convicted is None and self.verdict in (Verdict.NOT_APPLICABLE, Verdict.INCONCLUSIVE, Verdict.ERROR):
            return None
        return ControlResult.DETECTED if self.convicted else ControlResult.MISSED

    @property
    def clear(self) -> bool:
        """Whether it needs no attention: it passed, does not apply, or is a detected control."""
        applied = self.verdict is not Verdict.NOT_APPLICABLE
        return bool(self.convicted) if self.control and applied else self.verdict <= Verdict.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementRow:
    """A requirement of the catalogue with the verdict of this run.

    `verdict` is None when nothing tested it; `untested` then says why. `applies` is False where the requirement does not
    apply to the release under test. `protects` says what a violation puts at risk, empty for an unknown requirement.
    `aside` is the word for its violations where none of them decides, `seen` that for known bugs that its passes show.
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
    protects: str = ""
    aside: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRun:
    """One directory of a merged report: a run, or a note that says why the directory is not counted.

    `name` is the end of the keys of its scenarios (`…@name`), empty for a directory that is not counted. `directory` is
    relative to the merged report's origin. `comparison` is the comparison of this run with its own baseline.
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
    comparison: BaselineComparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a run of scenarios, a protocol run, or a single scenario or case.

    `cut_short` says that the run was interrupted, or killed (`RunState.cut_short`), empty when it was neither.
    `partial` says why this is not a complete profile, empty when it is. `origin` is the loaded directory; evidence paths
    are relative to it. `families` are the catalogue's families with their titles. With `strict` every violation decides.
    `parts` are the directories of a merged report, empty for a single run.
    """

    origin: Path
    judgement: RunJudgement
    cut_short: str
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
    strict: bool = False
    comparison: BaselineComparison | None = None
    parts: tuple[MergedRun, ...] = ()
    cases: tuple[ScriptCase, ...] = ()
    format: int = FORMAT

    @property
    def interrupted(self) -> bool:
        """Whether it was interrupted or killed."""
        return bool(self.cut_short)

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Everything that was tried on the subject."""
        return (*self.scenarios, *self.cases)

    @property
    def comparisons(self) -> tuple[tuple[str, BaselineComparison], ...]:
        """The comparisons with a baseline: of the whole report, or of each merged run by its name."""
        if self.comparison is not None:
            return (("", self.comparison),)
        return tuple((each.name, each.comparison) for each in self.parts if each.comparison is not None)

    @property
    def regressions(self) -> tuple[tuple[str, Change], ...]:
        """The regressions, with the name of the run where the runs were compared one by one."""
        return tuple((name, change) for name, each in self.comparisons for change in each.regressions)

    @property
    def is_protocol_run(self) -> bool:
        """Whether it has protocol cases and nothing else."""
        return bool(self.cases) and not self.scenarios and not self.controls

    @property
    def cases_worst_first(self) -> tuple[ScriptCase, ...]:
        """The protocol cases, worst verdict first; equals stay in the order of the plan."""
        return tuple(sorted(self.cases, key=_worst_first))

    @property
    def worst_first(self) -> tuple[ScenarioReport, ...]:
        """The scenarios, worst verdict first; equals stay in the order of the plan."""
        return tuple(sorted(self.scenarios, key=_worst_first))


def _worst_first(tried: Tried) -> tuple[int, bool, bool]:
    """A violation that decides comes first, an accepted one last."""
    return (-tried.verdict, tried.accepted, bool(tried.aside))
