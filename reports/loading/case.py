"""Load the directory of one protocol case as a `ScriptCase`, also when its files are damaged.

The script is judged again: that takes microseconds, and a stored verdict could disagree. A script is an ERROR and a
problem of the run if it is unreadable, changed after it was written, or of another case.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from reports.deciding.acceptance import covers_case
from reports.loading import conditions
from reports.loading.exchange import exchange_row, statement_row
from reports.loading.scenario import RunContext, claimed, reason_with, without_evidence
from reports.loading.traces import of_script
from reports.model.protocol_case import KnownRow, ScriptCase
from reports.model.report import Problem
from reports.model.run_record import Ended, Planned
from reports.model.vocabulary import bugs, note_on
from verification.evidence.run_directory import SCRIPT
from verification.known_bugs import settings
from verification.known_bugs.catalogue import BugKind
from verification.known_bugs.script_matching import known_as
from verification.known_bugs.weight import weigh
from verification.scripts import script as scripts
from verification.scripts.script import Script, ScriptVerdict, UnfitScriptError
from verification.vocabulary.verdict import Verdict

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCase:
    """A case of the report, its script if it could be read, and the problems found."""

    report: ScriptCase
    script: Script | None
    problems: tuple[Problem, ...] = ()


def load_case(directory: Path, around: RunContext, planned: Planned | None, ended: Ended | None) -> LoadedCase:
    """Read the directory of one case; `planned` is None for a case outside the plan."""
    place = "" if directory == around.root else directory.relative_to(around.root).as_posix()
    path = f"{place}/{SCRIPT}" if place else SCRIPT
    try:
        script = _read(directory, named=bool(place))
    except UnfitScriptError as error:
        text = str(error).replace(f"{directory}/", "")
        problem = Problem(place=place or directory.name, text=text)
        return LoadedCase(report=_unfit(directory, planned, ended, text), script=None, problems=(problem,))
    report = _report_of(script, around, path)
    if ended is not None:
        report = _ended(report, ended, script)
    return LoadedCase(report=report, script=script)


def _read(directory: Path, *, named: bool) -> Script:
    """The script; in a protocol run the directory is named after its case."""
    script = scripts.read(directory / SCRIPT)
    if named and script.case != directory.name:
        raise UnfitScriptError(f"{directory / SCRIPT} belongs to the case {script.case!r}, not to {directory.name!r}")
    return script


def missing_case(planned: Planned, ended: Ended | None, *, cut_short: str) -> LoadedCase:
    """A planned case without a script; it is reported anyway."""
    left = without_evidence(planned, ended, cut_short=cut_short)
    report = ScriptCase(
        key=planned.key,
        claim=planned.claim,
        verdict=left.verdict,
        reason=left.reason,
        requirements=claimed(planned.requirements, left.verdict, left.reason),
        actual_s=ended.seconds if ended else None,
        replay=planned.replay,
    )
    return LoadedCase(report=report, script=None, problems=left.problems)


def _unfit(directory: Path, planned: Planned | None, ended: Ended | None, text: str) -> ScriptCase:
    return ScriptCase(
        key=directory.name,
        claim=planned.claim if planned else "",
        verdict=Verdict.ERROR,
        reason=text,
        requirements=claimed(planned.requirements if planned else (), Verdict.ERROR, text),
        actual_s=ended.seconds if ended else None,
        replay=planned.replay if planned else "",
    )


def _report_of(script: Script, around: RunContext, path: str) -> ScriptCase:
    judged = scripts.judge(script)
    known = _known(script, judged, strict=around.strict)
    accepted = judged.verdict is Verdict.FAIL and covers_case(around.accepted, known, judged.requirements)
    without_findings, missing = judged.without_findings
    began_ns = script.exchanges[0].sent_ns if script.exchanges else 0
    report = ScriptCase(
        key=script.case,
        claim=script.claim,
        verdict=judged.verdict,
        reason=judged.reason,
        accepted=accepted,
        without_findings=without_findings,
        requirements=judged.requirements,
        generation=script.generation,
        cluster=", ".join((script.cluster, *(f"{name}={value}" for name, value in script.configuration.items()))),
        levels=", ".join(f"{name} {level}" for name, level in sorted(script.features.items())),
        exchanges=tuple(exchange_row(each, began_ns) for each in script.exchanges),
        statements=tuple(map(statement_row, script.statements)),
        known=known,
        setting=_setting_behind(script, named=any(each.named for each in known)),
        broke=script.broke,
        script=path,
        run=hashlib.sha256(repr(script).encode("utf-8", "replace")).hexdigest()[:16],
        actual_s=_lasted_s(script, script.seconds) or None,
        replay=script.replay,
        traces=of_script(script) if judged.verdict is Verdict.PASS else (),
        conditions=conditions.of_script(script) if script.exchanges else None,
    )
    if report.setting:
        report = replace(report, reason=f"{report.reason}; {report.setting}")
    lacking = missing if without_findings > Verdict.PASS else ""
    return replace(report, reason=reason_with(report.reason, report.aside, lacking))


def _setting_behind(script: Script, *, named: bool) -> str:
    """The settings of the user that explain a violated case without a name, in sentences."""
    if named or not script.configuration or all(each.holds for each in script.statements):
        return ""
    shown_by = [bug.id for bug in bugs().values() if script.case in bug.cases]
    return settings.behind_case(script.configuration, script.release, shown_by)


def _lasted_s(script: Script, own_s: float) -> float:
    """How long a case lasted. Cases that share an outage take turns: their own time (`own_s`) lacks that of the others."""
    times = [each.answered_ns or each.sent_ns for each in script.exchanges]
    return max(own_s, (max(times) - script.exchanges[0].sent_ns) / NS_PER_S if times else 0.0)


def _ended(report: ScriptCase, ended: Ended, script: Script) -> ScriptCase:
    """The case with facts of the run record: the whole duration, and an error after the script."""
    reason = "; ".join(filter(None, [report.reason, ended.rate]))
    report = replace(report, actual_s=_lasted_s(script, ended.seconds), reason=reason, rate=ended.rate)
    if ended.error and report.aside and report.without_findings < Verdict.ERROR:
        reason = reason_with(report.reason, report.aside, ended.error)
        return replace(report, without_findings=Verdict.ERROR, reason=reason)
    if not ended.error or report.verdict >= Verdict.ERROR:
        return report
    return replace(
        report,
        verdict=Verdict.ERROR,
        reason=ended.error,
        requirements=claimed(tuple(each.id for each in report.requirements), Verdict.ERROR, ended.error),
    )


def _known(script: Script, judged: ScriptVerdict, *, strict: bool) -> tuple[KnownRow, ...]:
    return tuple(
        KnownRow(
            id=each.bug.id,
            note=note_on(each.bug.id),
            limitation=each.bug.kind is BugKind.LIMITATION,
            named=each.named,
            weight=weigh(each.bug if each.named else None, strict=strict),
        )
        for each in known_as(script, judged, bugs().values())
    )
