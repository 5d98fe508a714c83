"""Load the directory of one scenario as a `ScenarioReport`, also when its files are damaged.

Bad evidence raises no error. The verdict is the judge's, unless a later failure makes it worse: a scenario that was not
judged, or whose files do not fit together, is ERROR, or INCONCLUSIVE if the run was interrupted. A proven violation
stays FAIL. A violation that was accepted or does not decide covers only itself: a crash or an unmet floor of the same
scenario is shown and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from reports.deciding.acceptance import covers
from reports.loading import broker_log, conditions, finding_records, log_context
from reports.loading import examples as witnesses
from reports.loading import timeline_builder as timelines
from reports.loading.alerts import election_of, explained
from reports.loading.damage import damage_of
from reports.loading.examples import Context
from reports.loading.finding_records import FindingRecords
from reports.loading.log_context import LogContext
from reports.loading.moments import moments
from reports.loading.scenario_files import ScenarioFiles, read_files
from reports.loading.subject import protocol_of
from reports.loading.traces import of_scenario
from reports.loading.upgrade import upgrade_of
from reports.loading.warning_signs import warning_signs
from reports.model.findings import BrokerLine, FindingReport
from reports.model.report import Problem, ScenarioReport
from reports.model.run_record import Ended, Planned
from reports.model.vocabulary import Catalogue, bugs, definition_of, note_on
from reports.model.wording import counted
from verification.evidence.run_directory import RunDirectory
from verification.known_bugs import settings
from verification.known_bugs.signatures.facts import software
from verification.known_bugs.weight import weigh
from verification.vocabulary import verdict as verdicts
from verification.vocabulary.experiment import EFFECT, Experiment, ExperimentTopic
from verification.vocabulary.verdict import Finding, RequirementVerdict, ScenarioVerdict, Verdict

#: Begins the reason of a scenario without a verdict of the judge.
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Facts of the whole run that its scenarios need.

    `accepted` are the ids accepted on the day of the run. With `strict` every violation decides.
    """

    root: Path
    catalogue: Catalogue
    accepted: frozenset[str]
    cut_short: str
    strict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedScenario:
    """A scenario of the report, its experiment if known, and the problems found."""

    report: ScenarioReport
    experiment: Experiment | None
    problems: tuple[Problem, ...]


def load_scenario(
    directory: RunDirectory, around: RunContext, planned: Planned | None, ended: Ended | None
) -> LoadedScenario:
    """Read the directory of one scenario; `planned` is None for a scenario outside the plan."""
    files = read_files(directory, around.root)
    verdict, reason = _verdict(files, ended, directory, cut_short=around.cut_short)
    outputs = {each.name for each in files.experiment.topics if each.reference} if files.experiment else set()
    timeline = timelines.timeline(files.history, files.transaction_log, outputs=outputs) if files.history else None
    timeline = explained(timeline, directory.brokers) if timeline else None
    # A broken environment leaves signs that say nothing about the subject.
    signs = () if files.judged or (ended and ended.error) else warning_signs(files.history, timeline)
    rate = ended.rate if ended else ""
    reason = "; ".join([reason, *([f"warning signs: {', '.join(signs)}"] if signs else []), *([rate] if rate else [])])
    judged, known = files.judged, witnesses.context(files.history)
    records = _records(directory, judged)
    findings, damaged = _findings(files, around, directory, known, records)
    accepted = verdict is Verdict.FAIL and bool(findings) and all(each.accepted for each in findings)
    without_findings, missing = _without_findings(files, ended)
    report = ScenarioReport(
        key=directory.root.name,
        scenario=planned.scenario if planned else directory.root.name,
        claim=planned.claim if planned else "",
        verdict=verdict,
        reason=reason,
        rate=rate,
        control=_is_control(files, planned),
        convicted=judged.convicted if judged else None,
        accepted=accepted,
        without_findings=without_findings,
        client=planned.client if planned else "",
        requirements=_requirements(files, planned, verdict, reason),
        coverage=judged.coverage if judged else (),
        findings=findings,
        faults=(faults := timelines.fault_rows(files.history) if files.history else ()),
        counts=judged.counts if judged else (),
        allowed=judged.allowed if judged else (),
        timeline=timeline,
        evidence=files.evidence,
        expected_s=planned.expected_s if planned else None,
        actual_s=ended.seconds if ended else (timeline.end_s if timeline else None),
        judged_s=judged.judged_s if judged else None,
        replay=planned.replay if planned else "",
        judge=f"python -m verification {files.place or '.'}" if files.judged is None and files.history else "",
        moments=moments(faults, judged.findings if judged else (), known, timeline),
        damage=damage_of(judged.findings, records, known, files.ends) if judged else None,
    )
    report = replace(report, reason=reason_with(reason, report.aside, missing))
    if files.experiment is not None:
        traces = of_scenario(directory.brokers, files.experiment) if verdict is Verdict.PASS else ()
        report = replace(_as_tried(report, files.experiment), upgrade=upgrade_of(files, findings), traces=traces)
    return LoadedScenario(report=report, experiment=files.experiment, problems=(*files.problems, *damaged))


def missing_scenario(planned: Planned, ended: Ended | None, *, cut_short: str) -> LoadedScenario:
    """A planned scenario without a directory; it is reported anyway."""
    left = without_evidence(planned, ended, cut_short=cut_short)
    # A scenario that does not apply leaves its requirements untested.
    ids = () if left.verdict is Verdict.NOT_APPLICABLE else planned.requirements
    report = ScenarioReport(
        key=planned.key,
        scenario=planned.scenario,
        claim=planned.claim,
        verdict=left.verdict,
        reason=left.reason,
        control=planned.control,
        client=planned.client,
        requirements=claimed(ids, left.verdict, left.reason),
        expected_s=planned.expected_s,
        actual_s=ended.seconds if ended else None,
        replay=planned.replay,
    )
    return LoadedScenario(report=report, experiment=None, problems=left.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutEvidence:
    """The verdict on a planned scenario or case that left no evidence."""

    verdict: Verdict
    reason: str
    problems: tuple[Problem, ...] = ()


def without_evidence(planned: Planned, ended: Ended | None, *, cut_short: str) -> WithoutEvidence:
    """ERROR, unless it does not apply or the run was interrupted; without an explanation also a problem of the run."""
    if ended is not None and ended.inapplicable:
        return WithoutEvidence(verdict=Verdict.NOT_APPLICABLE, reason=ended.inapplicable)
    if ended is not None and ended.error:
        return WithoutEvidence(verdict=Verdict.ERROR, reason=ended.error)
    if cut_short and ended is None:
        return WithoutEvidence(verdict=Verdict.INCONCLUSIVE, reason=f"not run, because the run was {cut_short}")
    problem = Problem(
        place=f"runs/{planned.key}", text=f"the planned {'case' if planned.case else 'scenario'} left no directory"
    )
    return WithoutEvidence(verdict=Verdict.ERROR, reason="planned, but it left no evidence", problems=(problem,))


def _is_control(files: ScenarioFiles, planned: Planned | None) -> bool:
    if files.experiment is not None:
        return files.experiment.is_control
    return files.judged.control if files.judged else bool(planned and planned.control)


def _as_tried(report: ScenarioReport, experiment: Experiment) -> ScenarioReport:
    """The report with the facts of scenario.json."""
    return replace(
        report,
        scenario=experiment.scenario,
        claim=experiment.claim,
        expects=experiment.control_expects,
        run=experiment.run,
        seed=experiment.seed,
        client=experiment.client,
        protocol=protocol_of(experiment),
        cluster=experiment.cluster,
        workload=experiment.workload,
        schedule=experiment.schedule,
        transaction_timeout_s=experiment.transaction_timeout_s,
        topics=tuple(_topic(each, experiment.run) for each in experiment.topics),
        conditions=conditions.of_scenario(experiment, report.faults),
        configuration=tuple(sorted(experiment.configuration.items())),
        replay=experiment.replay or report.replay,
    )


def _topic(topic: ExperimentTopic, run: str) -> str:
    name = topic.name.removeprefix(f"{run}-")
    if topic.shape == EFFECT:
        return f"{name}: rows of a database, or calls of an endpoint"
    return (
        f"{name}: {counted(topic.partitions, 'partition')}, replication factor "
        f"{topic.replication}, min ISR {topic.min_in_sync}"
    )


def _verdict(
    files: ScenarioFiles, ended: Ended | None, directory: RunDirectory, *, cut_short: str
) -> tuple[Verdict, str]:
    error = ended.error if ended is not None else ""
    if files.judged is None:
        if cut_short and not error:
            return Verdict.INCONCLUSIVE, f"{NOT_JUDGED}: the run was {cut_short}"
        text = files.problems[-1].text if files.problems else NOT_JUDGED
        return Verdict.ERROR, error or (text if NOT_JUDGED in text else f"{NOT_JUDGED}: {text}")
    if cut_short and not error and _is_unfit(files.judged):
        unfit = files.judged.reason.replace(f"{directory.root}/", "")
        return Verdict.ERROR, f"the run was interrupted or killed during this scenario, so it cannot be judged: {unfit}"
    broken = error or (files.problems[0].text if files.problems else "")
    if broken and files.judged.verdict < Verdict.ERROR:
        return Verdict.ERROR, broken
    return files.judged.verdict, files.judged.reason


def _is_unfit(judged: ScenarioVerdict) -> bool:
    """Whether the judge refused the evidence: then nothing was counted, and no requirement was decided."""
    return judged.verdict is Verdict.ERROR and not (judged.counts or judged.coverage or judged.requirements)


def _without_findings(files: ScenarioFiles, ended: Ended | None) -> tuple[Verdict, str]:
    """The verdict on a scenario without its findings."""
    broken = (ended.error if ended is not None else "") or (files.problems[0].text if files.problems else "")
    if broken or files.judged is None:
        return Verdict.ERROR, broken
    return verdicts.without_findings(files.judged.crashed, files.judged.coverage)


def reason_with(reason: str, aside: str, missing: str) -> str:
    """The reason of a violation; where that does not decide (`aside`), with another failure of the scenario or case."""
    return f"{reason}; {aside}, but {missing}" if aside and missing else reason


def claimed(ids: tuple[str, ...], verdict: Verdict, reason: str) -> tuple[RequirementVerdict, ...]:
    """The requirements of a scenario or case, all with its verdict."""
    return tuple(RequirementVerdict(id=id_, verdict=verdict, reason=reason) for id_ in ids)


def _requirements(
    files: ScenarioFiles, planned: Planned | None, verdict: Verdict, reason: str
) -> tuple[RequirementVerdict, ...]:
    """The judge's verdicts on requirements; if the scenario's verdict became worse, none is better than that."""
    if files.judged is None:
        ids = files.experiment.requirements if files.experiment else (planned.requirements if planned else ())
        return claimed(ids, verdict, reason)
    if files.judged.verdict is verdict:
        return files.judged.requirements
    return tuple(
        RequirementVerdict(id=each.id, verdict=verdict, reason=reason) if each.verdict < verdict else each
        for each in files.judged.requirements
    )


def _findings(
    files: ScenarioFiles,
    around: RunContext,
    scenario: RunDirectory,
    known: Context,
    records: Mapping[str, FindingRecords],
) -> tuple[tuple[FindingReport, ...], tuple[Problem, ...]]:
    """The findings, and the problems of their files."""
    judged = files.judged
    if judged is None:
        return (), ()
    problems: list[Problem] = []
    experiment = files.experiment
    configuration = experiment.configuration if experiment else {}
    topics = {each.name.removeprefix(f"{experiment.run}-") for each in experiment.topics} if experiment else set()
    run_by = {experiment.release, *map(software, experiment.nodes.values())} if experiment else set()

    def finding_report(finding: Finding) -> FindingReport:
        directory = (f"{files.place}/" if files.place else "") + f"findings/{finding.anomaly}/"
        known_as = definition_of(finding.anomaly)
        entries = records[finding.anomaly]
        log = log_context.around(entries, finding.examples[0], judged.run) if finding.examples else LogContext()
        if log.problem:
            problems.append(Problem(place=files.place or scenario.root.name, text=log.problem))
        return FindingReport(
            anomaly=finding.anomaly,
            definition=known_as.definition if known_as else "",
            why_illegal=known_as.why_illegal if known_as else "",
            count=finding.count,
            consequences=finding.consequences,
            explains=finding.explains,
            known_bug=finding.known_bug,
            known_bug_note=note_on(finding.known_bug) if finding.known_bug else "",
            weight=weigh(bugs().get(finding.known_bug or ""), strict=around.strict),
            setting=settings.behind_finding(configuration, run_by, finding.anomaly, topics),
            accepted=covers(around.accepted, finding, judged.requirements, around.catalogue),
            witnesses=tuple(witnesses.witness(each, known, entries.entries) for each in finding.examples),
            evidence=directory if (around.root / directory).is_dir() else "",
            around=log.rows,
            around_count=log.count,
            around_brokers=() if judged.convicted else _brokers_around(scenario, finding, known),
            minimal=witnesses.minimal(finding.witness, known),
            reader=finding.reader,
        )

    return tuple(finding_report(each) for each in judged.findings), tuple(problems)


def _records(scenario: RunDirectory, judged: ScenarioVerdict | None) -> dict[str, FindingRecords]:
    """The log entries of each finding by its anomaly."""
    anomalies = [each.anomaly for each in judged.findings] if judged else []
    return {each: finding_records.read(scenario.findings / each / "records.jsonl") for each in anomalies}


def _brokers_around(scenario: RunDirectory, finding: Finding, known: Context) -> tuple[BrokerLine, ...]:
    """Broker log lines about the first example; empty where its operation is unknown."""
    if not finding.examples:
        return ()
    query = witnesses.broker_log_query(finding.examples[0], finding.witness, known)
    lines = () if query is None else broker_log.around(scenario.brokers, query)
    return tuple(replace(each, note=election_of(each.text) or "") for each in lines)
