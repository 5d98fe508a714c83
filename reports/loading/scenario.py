"""One scenario's directory → a `ScenarioReport`, whatever state the directory is in.

Nothing here raises for bad evidence. The verdict is the judge's, unless something that he could not know of makes it
worse: a scenario that was not judged, or whose files do not fit together, is ERROR, and INCONCLUSIVE when the run was
interrupted before it ended. A violation that was proven stays FAIL whatever else is broken; one that was accepted
covers nothing but itself, so a crash or an unmet floor beneath it is told and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from reports.deciding.acceptance import covers
from reports.loading import broker_log, log_context
from reports.loading import examples as witnesses
from reports.loading import timeline_builder as timelines
from reports.loading.examples import Context
from reports.loading.log_context import Around
from reports.loading.scenario_files import ScenarioFiles, read_files
from reports.loading.subject import protocol_of
from reports.model.findings import BrokerLine, Example, FindingReport
from reports.model.report import Problem, ScenarioReport
from reports.model.run_record import Ended, Planned
from reports.model.vocabulary import Catalogue, definition_of, note_on
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary import verdict as verdicts
from verification.vocabulary.experiment import Experiment
from verification.vocabulary.verdict import Finding, RequirementVerdict, Verdict, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a scenario's report takes from the whole run; `accepted` are the ids that hold on its day."""

    root: Path
    catalogue: Catalogue
    accepted: frozenset[str]
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedScenario:
    """A scenario as it can be told, what was tried if that is known, and the problems that were met."""

    report: ScenarioReport
    experiment: Experiment | None
    problems: tuple[Problem, ...]


def load_scenario(
    directory: RunDirectory, around: RunContext, planned: Planned | None, ended: Ended | None
) -> LoadedScenario:
    """Read one scenario's directory; `planned` is None for one that nobody planned."""
    files = read_files(directory, around.root)
    verdict, reason = _verdict(files, ended, interrupted=around.interrupted)
    timeline = timelines.timeline(files.history, files.transaction_log) if files.history else None
    findings, damaged = _findings(files, around, directory)
    judged = files.judged
    accepted = verdict is Verdict.FAIL and bool(findings) and all(each.accepted for each in findings)
    without_findings, missing = _without_findings(files, ended) if accepted else (Verdict.PASS, "")
    report = ScenarioReport(
        key=directory.root.name,
        scenario=planned.scenario if planned else directory.root.name,
        claim=planned.claim if planned else "",
        verdict=verdict,
        reason=reason_with(reason, missing),
        control=_is_control(files, planned),
        convicted=judged.convicted if judged else None,
        accepted=accepted,
        without_findings=without_findings,
        client=planned.client if planned else "",
        requirements=_requirements(files, planned, verdict, reason),
        coverage=judged.coverage if judged else (),
        findings=findings,
        faults=timelines.fault_rows(files.history) if files.history else (),
        counts=judged.counts if judged else (),
        timeline=timeline,
        evidence=files.evidence,
        expected_s=planned.expected_s if planned else None,
        actual_s=ended.seconds if ended else (timeline.end_s if timeline else None),
        judged_s=judged.judged_s if judged else None,
        replay=planned.replay if planned else "",
    )
    if files.experiment is not None:
        report = _as_tried(report, files.experiment)
    return LoadedScenario(report=report, experiment=files.experiment, problems=(*files.problems, *damaged))


def missing_scenario(planned: Planned, ended: Ended | None, *, interrupted: bool) -> LoadedScenario:
    """A planned scenario that left no directory; it is reported all the same."""
    left = nothing_of(planned, ended, interrupted=interrupted)
    # A scenario that was passed over says nothing about its requirements: they are untested.
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
class Nothing:
    """What it means that something planned left no evidence."""

    verdict: Verdict
    reason: str
    problems: tuple[Problem, ...] = ()


def nothing_of(planned: Planned, ended: Ended | None, *, interrupted: bool) -> Nothing:
    """An error, unless it was passed over or an interruption explains it; unexplained, a problem of the run as well."""
    if ended is not None and ended.inapplicable:
        return Nothing(verdict=Verdict.NOT_APPLICABLE, reason=ended.inapplicable)
    if ended is not None and ended.error:
        return Nothing(verdict=Verdict.ERROR, reason=ended.error)
    if interrupted and ended is None:
        return Nothing(verdict=Verdict.INCONCLUSIVE, reason="not run: the run was interrupted before it")
    problem = Problem(
        place=f"runs/{planned.key}", text=f"the planned {'case' if planned.case else 'scenario'} left no directory"
    )
    return Nothing(verdict=Verdict.ERROR, reason="it was planned, but it left no evidence", problems=(problem,))


def _is_control(files: ScenarioFiles, planned: Planned | None) -> bool:
    if files.experiment is not None:
        return files.experiment.is_control
    return files.judged.control if files.judged else bool(planned and planned.control)


def _as_tried(report: ScenarioReport, experiment: Experiment) -> ScenarioReport:
    """The report with what scenario.json alone knows."""
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
        configuration=tuple(sorted(experiment.configuration.items())),
        replay=experiment.replay or report.replay,
    )


def _verdict(files: ScenarioFiles, ended: Ended | None, *, interrupted: bool) -> tuple[Verdict, str]:
    error = ended.error if ended is not None else ""
    if files.judged is None:
        if interrupted and not error:
            return Verdict.INCONCLUSIVE, "the run was interrupted before this scenario was judged"
        return Verdict.ERROR, error or (files.problems[-1].text if files.problems else "it was not judged")
    broken = error or (files.problems[0].text if files.problems else "")
    if broken and files.judged.verdict < Verdict.ERROR:
        return Verdict.ERROR, broken
    return files.judged.verdict, files.judged.reason


def _without_findings(files: ScenarioFiles, ended: Ended | None) -> tuple[Verdict, str]:
    """What is left of a scenario when what was found is set aside."""
    broken = (ended.error if ended is not None else "") or (files.problems[0].text if files.problems else "")
    if broken or files.judged is None:
        return Verdict.ERROR, broken
    return verdicts.without_findings(files.judged.crashed, files.judged.coverage)


def reason_with(reason: str, missing: str) -> str:
    """The reason of an accepted violation, with what is missing besides."""
    return f"{reason}; accepted, but {missing}" if missing else reason


def claimed(ids: tuple[str, ...], verdict: Verdict, reason: str) -> tuple[RequirementVerdict, ...]:
    """Requirements of which nothing is known but how the whole ended."""
    return tuple(RequirementVerdict(id=id_, verdict=verdict, reason=reason) for id_ in ids)


def _requirements(
    files: ScenarioFiles, planned: Planned | None, verdict: Verdict, reason: str
) -> tuple[RequirementVerdict, ...]:
    """The judge's verdicts on requirements; none of them is better than what is left of the scenario's own."""
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
    files: ScenarioFiles, around: RunContext, scenario: RunDirectory
) -> tuple[tuple[FindingReport, ...], tuple[Problem, ...]]:
    """What was found, and what is wrong with the files that show it."""
    judged = files.judged
    if judged is None:
        return (), ()
    known = witnesses.context(files.history)
    problems: list[Problem] = []

    def told(finding: Finding) -> FindingReport:
        directory = (f"{files.place}/" if files.place else "") + f"findings/{finding.anomaly}/"
        known_as = definition_of(finding.anomaly)
        told_of = tuple(witnesses.witness(each, known) for each in finding.examples)
        log = _log_around(scenario, finding, told_of, judged.run)
        if log.problem:
            problems.append(Problem(place=files.place or scenario.root.name, text=log.problem))
        return FindingReport(
            anomaly=finding.anomaly,
            definition=known_as.definition if known_as else "",
            why_illegal=known_as.why_illegal if known_as else "",
            count=finding.count,
            consequences=finding.consequences,
            known_bug=finding.known_bug,
            known_bug_note=note_on(finding.known_bug) if finding.known_bug else "",
            accepted=covers(around.accepted, finding, judged.requirements, around.catalogue),
            witnesses=told_of,
            evidence=directory if (around.root / directory).is_dir() else "",
            around=log.rows,
            around_count=log.count,
            around_brokers=() if judged.convicted else _brokers_around(scenario, finding, told_of, known),
            minimal=witnesses.minimal(finding.witness, known),
        )

    return tuple(told(each) for each in judged.findings), tuple(problems)


def _log_around(scenario: RunDirectory, finding: Finding, told_of: tuple[Example, ...], run: str) -> Around:
    """The log around the example that began first, because what follows may be its consequence."""
    first = _first(finding, told_of)
    if first is None:
        return Around()
    return log_context.around(scenario.findings / finding.anomaly / "records.jsonl", first, run)


def _first(finding: Finding, told_of: tuple[Example, ...]) -> Violation | None:
    """The example that began first; the first of all where no operation is known, None without any example."""
    timed = [(each.at_s, place) for place, each in enumerate(told_of) if each.at_s is not None]
    return finding.examples[min(timed)[1] if timed else 0] if finding.examples else None


def _brokers_around(
    scenario: RunDirectory, finding: Finding, told_of: tuple[Example, ...], known: Context
) -> tuple[BrokerLine, ...]:
    """What brokers logged about the example that began first; nothing where its operation is not known."""
    first = _first(finding, told_of)
    if first is None:
        return ()
    # The judge's witness is that of the first example, which need not be the one that began first.
    asked = witnesses.asked_of_brokers(first, finding.witness if first is finding.examples[0] else None, known)
    return () if asked is None else broker_log.around(scenario.brokers, asked)
