"""`results.json`: the report for programs. Its schema is `docs/results.schema.json`; `format` changes with it.

Verdicts are words (`"INCONCLUSIVE"`), an untested requirement is `"UNTESTED"`, times are in seconds. Scenarios and
protocol cases are in the order of the plan, requirements in the order of the catalogue. Findings have at most 32
examples; every violation is in the evidence directory that the finding names.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from reports.deciding.own_builds import commit_of, own_builds
from reports.deciding.risk_table import Risk, risks
from reports.deciding.scorecards import cards
from reports.deciding.trust import trust
from reports.model.change import BaselineComparison
from reports.model.findings import FindingReport
from reports.model.protocol_case import ScriptCase, Tried
from reports.model.report import (
    FORMAT,
    ClientUnderTest,
    MergedRun,
    Pairs,
    Report,
    RequirementRow,
    ScenarioReport,
    Subject,
)
from reports.model.upgrade import UpgradeReport
from reports.model.wording import UNTESTED
from verification.scripts.script import FORMAT as SCRIPT_FORMAT
from verification.vocabulary.releases import stated_version


def results(report: Report) -> dict[str, Any]:
    """The object that `results.json` holds."""
    judgement = report.judgement
    return {
        "format": FORMAT,
        "verdict": judgement.verdict.name,
        "decision": judgement.decision.value,
        "exit_code": int(judgement.exit_code),
        "why": judgement.why,
        "strict": judgement.strict,
        "standing_risks": list(judgement.risks),
        "deviations": list(judgement.deviations),
        "risks": [_risk(each) for each in risks(report)],
        "interrupted": report.interrupted,
        "partial": report.partial,
        "subject": _subject(report),
        "run": _run(report),
        **({} if report.is_protocol_run else {"guarantees": _guarantees(report)}),
        **({"trust": asdict(found)} if (found := trust(report)) is not None else {}),
        "scenarios": [_scenario(each) for each in report.scenarios],
        "controls": [
            {
                **_scenario(each),
                "convicted": bool(each.convicted),
                "result": each.control_result or each.verdict.name,
                "expects": list(each.expects),
            }
            for each in report.controls
        ],
        **({"cases": [_case(each) for each in report.cases]} if report.cases else {}),
        "requirements": [_requirement(each) for each in report.requirements],
        "accepted": [asdict(each) for each in report.acceptances],
        "problems": [asdict(each) for each in report.problems],
        **({"parts": [_part(each) for each in report.parts]} if report.parts else {}),
        **({"comparison": _comparison(report.comparison)} if report.comparison else {}),
    }


def dumps(report: Report) -> str:
    """The text of the file; equal reports give equal bytes."""
    return json.dumps(results(report), indent=1, ensure_ascii=True) + "\n"


def _part(part: MergedRun) -> dict[str, Any]:
    return {
        "name": part.name,
        "directory": part.directory,
        "note": part.note,
        "subject": part.subject,
        "started": part.started,
        "profile": part.profile,
        "seed": part.seed,
        "verdict": part.verdict.name if part.verdict is not None else "",
        "decision": part.decision,
        "duration_s": round(part.duration_s, 3),
        "host": _mapping(part.host),
        "replay": part.replay,
        **({"comparison": _comparison(part.comparison)} if part.comparison else {}),
    }


def _comparison(comparison: BaselineComparison) -> dict[str, Any]:
    return {
        "baseline": asdict(comparison.baseline),
        "regressions": len(comparison.regressions),
        "unchanged": comparison.unchanged,
        "changes": [asdict(each) for each in comparison.changes],
    }


def _mapping(pairs: Pairs) -> dict[str, str]:
    return dict(pairs)


def _client(client: ClientUnderTest) -> dict[str, str]:
    return asdict(client)


def _subject(report: Report) -> dict[str, Any]:
    subject = report.subject
    return {
        "release": subject.release,
        **({"upgraded_from": subject.upgraded_from} if subject.upgraded_from else {}),
        **({"own_build": _own_build(subject, own_builds(subject)[0])} if own_builds(subject) else {}),
        "runtime": subject.runtime,
        "clients": [_client(each) for each in subject.clients],
        "versions": _mapping(subject.versions),
        "digests": _mapping(subject.digests),
        "host": _mapping(subject.host),
    }


def _own_build(subject: Subject, name: str) -> dict[str, str]:
    return {"version": stated_version(name), "commit": commit_of(subject)}


def _run(report: Report) -> dict[str, Any]:
    return {
        "started": report.started,
        "duration_s": round(report.duration_s, 3),
        "expected_s": round(report.expected_s, 3),
        "seed": report.seed,
        "profile": report.profile,
        "suite": report.suite,
        "options": _mapping(report.options),
        "replay": report.replay,
    }


def _scenario(scenario: ScenarioReport) -> dict[str, Any]:
    return {
        "id": scenario.key,
        "scenario": scenario.scenario,
        "claim": scenario.claim,
        "verdict": scenario.verdict.name,
        "accepted": scenario.accepted,
        "aside": scenario.aside,
        "reason": scenario.reason,
        "run": scenario.run,
        "seed": scenario.seed,
        "client": scenario.client,
        "protocol": scenario.protocol,
        "workload": scenario.workload,
        "schedule": list(scenario.schedule),
        "requirements": [
            {"id": each.id, "verdict": each.verdict.name, "reason": each.reason} for each in scenario.requirements
        ],
        "coverage": [{**asdict(each), "met": each.met} for each in scenario.coverage],
        "faults": [asdict(each) for each in scenario.faults],
        "findings": [_finding(asdict(each)) | _silent(scenario, each) for each in scenario.findings],
        "availability": _availability(scenario),
        **({"upgrade": _upgrade(scenario.upgrade)} if scenario.upgrade is not None else {}),
        **_alerts(scenario),
        "counts": dict(scenario.counts),
        **({"allowed": dict(scenario.allowed)} if scenario.allowed else {}),
        "topics": list(scenario.topics),
        **_conditions(scenario),
        **({"damage": asdict(scenario.damage)} if scenario.damage is not None else {}),
        "seconds": {"expected": scenario.expected_s, "actual": scenario.actual_s, "judged": scenario.judged_s},
        "evidence": [asdict(each) for each in scenario.evidence],
        "replay": scenario.replay,
        **_traces(scenario),
        **({"part": scenario.part} if scenario.part else {}),
    }


def _traces(tried: Tried) -> dict[str, Any]:
    """The known bugs that a pass shows."""
    return {"traces": [asdict(each) for each in tried.traces]} if tried.traces else {}


def _guarantees(report: Report) -> list[dict[str, str]]:
    return [
        {
            "title": each.title,
            "verdict": UNTESTED if each.verdict is None else each.verdict.name,
            "aside": each.aside,
            "fact": each.fact,
        }
        for each in cards(report)
        if not each.measured
    ]


def _case(case: ScriptCase) -> dict[str, Any]:
    """One case with its deciding statements; all exchanges are in its script."""
    return {
        "id": case.key,
        "claim": case.claim,
        "verdict": case.verdict.name,
        "accepted": case.accepted,
        "aside": case.aside,
        "reason": case.reason,
        "generation": case.generation,
        "cluster": case.cluster,
        **_conditions(case),
        "requirements": [
            {"id": each.id, "verdict": each.verdict.name, "reason": each.reason} for each in case.requirements
        ],
        "deciding": [asdict(each) for each in case.deciding],
        "counts": {"exchanges": len(case.exchanges), "statements": len(case.statements), "claims": case.claims},
        "known": [asdict(each) for each in case.known],
        "seconds": case.actual_s,
        "script": {"path": case.script, "format": SCRIPT_FORMAT},
        "replay": case.replay,
        **_traces(case),
        **({"part": case.part} if case.part else {}),
    }


def _risk(risk: Risk) -> dict[str, str]:
    """A row of the table of risks, without what only the page needs."""
    return {name: value for name, value in asdict(risk).items() if name != "hidden_by"}


def _conditions(tried: Tried) -> dict[str, str]:
    """On what it was shown, in words; nothing without evidence."""
    return {"conditions": str(tried.conditions)} if tried.conditions is not None else {}


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding without the log around its example and without its witness, which are in the evidence."""
    kept = {name: value for name, value in finding.items() if not name.startswith(("around", "minimal"))}
    kept["witnesses"] = [_example(each) for each in kept["witnesses"]]
    return {("examples" if name == "witnesses" else name): value for name, value in kept.items()}


def _example(example: dict[str, Any]) -> dict[str, Any]:
    """An example without the step by number, which `fault` has in words, and with its circumstances if it has any."""
    kept = {name: value for name, value in example.items() if name not in ("when", "circumstances")}
    if (found := example["circumstances"]) is not None:
        kept["circumstances"] = {name: value for name, value in found.items() if name != "at_ns"}
    return kept


def _alerts(scenario: ScenarioReport) -> dict[str, Any]:
    """The alerts that would have fired; nothing where no metrics were sampled."""
    fired = scenario.timeline.alerts if scenario.timeline else None
    if fired is None:
        return {}
    # The history has the values.
    return {"alerts": [{name: value for name, value in asdict(each).items() if name != "values"} for each in fired]}


def _silent(scenario: ScenarioReport, finding: FindingReport) -> dict[str, bool]:
    """Whether no alert shows the finding; nothing where no metrics were sampled."""
    fired = scenario.alerts_on(finding)
    return {} if fired is None else {"silent": not fired}


def _availability(scenario: ScenarioReport) -> list[dict[str, Any]]:
    faults = scenario.timeline.unavailability if scenario.timeline else ()
    return [
        {
            "step": each.step,
            "longest_gap_s": round(each.gap_s, 3),
            "first_commit_after_heal_s": each.recovered_s,
            "commit_latency": {name: asdict(getattr(each, name)) for name in ("before", "during", "after")},
        }
        for each in faults
    ]


def _upgrade(upgrade: UpgradeReport) -> dict[str, Any]:
    """The upgrade with the names of verdicts, and with the figures of a baseline only where there is one."""
    return {
        "source": upgrade.source,
        "target": upgrade.target,
        "nodes": [asdict(each) for each in upgrade.nodes],
        "features": [asdict(each) for each in upgrade.features],
        "stages": [
            {
                "name": stage.name,
                "began_s": stage.began_s,
                "ended_s": stage.ended_s,
                "verdict": stage.verdict.name,
                "violations": dict(stage.violations),
                "steps": [{**asdict(each), "verdict": each.verdict.name} for each in stage.steps],
                "clients": [_without_none(asdict(each), "baseline") for each in stage.clients],
            }
            for stage in upgrade.stages
        ],
        "unplaced": upgrade.unplaced,
        **({"baseline": upgrade.baseline} if upgrade.baseline else {}),
    }


def _without_none(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name or value is not None}


def _requirement(row: RequirementRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "level": row.level,
        "protects": row.protects,
        "text": row.text,
        "source": list(row.source),
        "verdict": UNTESTED if row.verdict is None else row.verdict.name,
        "untested": row.untested,
        "applies": row.applies,
        "accepted": row.accepted,
        "aside": row.aside,
        **({"seen": row.seen} if row.seen else {}),
        "decided_by": [
            {"id": key, "verdict": verdict.name, "reason": reason} for key, verdict, reason in row.decided_by
        ],
    }
