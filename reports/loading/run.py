"""Load a run directory as a `Report`.

A whole run has `run.json` and `runs/<scenario>/`, a protocol run `runs/<case>/`. The directory of a single scenario or
case is accepted too and gives a partial report. Only a path with neither is refused. Any other defect is reported: a
planned scenario without evidence, a directory outside the plan, a truncated file, a missing record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.comparing import baseline
from reports.comparing.compare import against
from reports.deciding import acceptance
from reports.deciding.decide import RunFacts, judge, judged
from reports.loading import subject
from reports.loading.case import LoadedCase, load_case, missing_case
from reports.loading.requirement_rows import rows
from reports.loading.scenario import LoadedScenario, RunContext, load_scenario, missing_scenario
from reports.model import run_record
from reports.model.errors import UnfitBaselineError, UnfitRunError, UnfitRunRecordError
from reports.model.protocol_case import Tried
from reports.model.report import Problem, Report
from reports.model.run_record import Ended, Planned, RunRecord, RunState
from reports.model.vocabulary import catalogue, titles
from verification.evidence.run_directory import (
    RUN_RECORD,
    RunDirectory,
    case_directories,
    run_record_of,
    scenario_directories,
)
from verification.evidence.run_rule import is_strict

#: A copy of the baseline results.json, so that a report that is rendered again says the same.
BASELINE = "baseline.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The input: the root, the record of the whole run if there is one, and whether it is a single scenario or case."""

    root: Path
    record: RunRecord | None
    problems: tuple[Problem, ...]
    alone: bool
    directories: tuple[RunDirectory, ...]
    cases: tuple[Path, ...]

    @property
    def cut_short(self) -> str:
        return "" if self.record is None or self.alone else self.record.state.cut_short


def load_run(path: Path, *, strict: bool = False) -> Report:
    """Read the directory of a run, scenario or case, and compare it with the baseline in it.

    Every violation decides with `strict`, and in a run that was made so.

    Raises UnfitRunError when the path is none of these. Defects inside it are in the report's problems.
    """
    source = _source(path.resolve())
    report = _report(source, strict=strict or is_strict(source.root))
    kept = source.root / BASELINE
    if source.alone or not kept.exists():
        return report
    try:
        return against(report, baseline.read(kept))
    except UnfitBaselineError as error:
        problem = Problem(place=BASELINE, text=str(error).replace(f"{source.root}/", ""))
        return judged(replace(report, problems=(*report.problems, problem)))


def _report(source: _Source, *, strict: bool) -> Report:
    record = source.record
    started = record.started if record else ""
    around = _run_context(source, started, strict=strict)
    loaded = _scenarios(source, around)
    scripted = _cases(source, around)
    reports = [each.report for each in loaded]
    cases = tuple(each.report for each in scripted)
    scenarios = tuple(each for each in reports if not each.control)
    controls = tuple(each for each in reports if each.control)
    met = (*(each.problems for each in loaded), *(each.problems for each in scripted))
    problems = (*source.problems, *(problem for each in met for problem in each), *_of_state(source))
    partial = _partial(source)
    experiments = [each.experiment for each in loaded if each.experiment is not None]
    tested = subject.of(record, experiments, [each.script for each in scripted if each.script is not None])
    facts = RunFacts(
        tried=(*scenarios, *cases),
        controls=controls,
        problems=problems,
        cut_short=source.cut_short,
        strict=strict,
        pipelines_only=bool(tested.pipelines),
        own=tested.own,
    )
    return Report(
        origin=source.root,
        judgement=judge(facts, partial=partial),
        cut_short=source.cut_short,
        partial=partial,
        subject=tested,
        seed=record.seed if record else next((each.seed for each in experiments), None),
        profile=record.profile if record else "",
        started=started or min((each.started for each in experiments), default=""),
        duration_s=_duration_s(source, (*reports, *cases)),
        expected_s=record.expected_s if record and not source.alone else 0.0,
        suite=record.suite if record else "",
        options=tuple(sorted(record.options.items())) if record else (),
        downloads=subject.downloads(record),
        scenarios=scenarios,
        controls=controls,
        cases=cases,
        requirements=rows(around.catalogue, (*scenarios, *cases), tested),
        families=tuple(titles().items()),
        acceptances=acceptance.rows(record.accepted, started, scenarios, cases) if record else (),
        problems=problems,
        replay=_replay(source, (*reports, *cases)),
        strict=strict,
    )


def _run_context(source: _Source, started: str, *, strict: bool) -> RunContext:
    accepted = source.record.accepted if source.record else ()
    return RunContext(
        root=source.root,
        catalogue=catalogue(),
        accepted=acceptance.holding(accepted, started),
        cut_short=source.cut_short,
        strict=strict,
    )


def _source(root: Path) -> _Source:
    if not root.is_dir():
        raise UnfitRunError(
            f"{root} is not a directory; give the directory of a run, or of a scenario or case below its runs/"
        )
    directories, cases = scenario_directories(root), case_directories(root)
    alone = directories == (RunDirectory(root),) or cases == (root,)
    of_run = run_record_of(root)
    record: RunRecord | None = None
    problems: tuple[Problem, ...] = ()
    try:
        record = run_record.read(of_run)
    except UnfitRunRecordError as error:
        text = str(error).replace(f"{of_run.parent}/", "")
        if not cases and not any(_holds_evidence(each) for each in directories):
            raise UnfitRunError(
                f"{root} is not a run directory: it has no evidence of a scenario or case, and {text}"
            ) from None
        # The directory of a scenario that was copied out of its run needs no record.
        problems = () if alone else (Problem(place=RUN_RECORD, text=text),)
    return _Source(root=root, record=record, problems=problems, alone=alone, directories=directories, cases=cases)


def _holds_evidence(directory: RunDirectory) -> bool:
    return any(each.exists() for each in (directory.experiment, directory.history, directory.verdicts))


def _scenarios(source: _Source, around: RunContext) -> list[LoadedScenario]:
    """Planned scenarios in the order of the plan, then other directories."""
    planned, ended = _planned(source, case=False), _ended(source)
    scripted = _planned(source, case=True)
    present = {each.root.name: each for each in source.directories if each.root.name not in scripted}
    keys = [*([] if source.alone else planned), *present]
    return [
        load_scenario(present[key], around, planned.get(key), ended.get(key))
        if key in present
        else missing_scenario(planned[key], ended.get(key), cut_short=source.cut_short)
        for key in dict.fromkeys(keys)
    ]


def _cases(source: _Source, around: RunContext) -> list[LoadedCase]:
    """Planned cases in the order of the plan, then other directories."""
    planned, ended = _planned(source, case=True), _ended(source)
    present = {each.name: each for each in source.cases}
    keys = [*([] if source.alone else planned), *present]
    return [
        load_case(present[key], around, planned.get(key), ended.get(key))
        if key in present
        else missing_case(planned[key], ended.get(key), cut_short=source.cut_short)
        for key in dict.fromkeys(keys)
    ]


def _planned(source: _Source, *, case: bool) -> dict[str, Planned]:
    """The planned cases or scenarios by key."""
    return {each.key: each for each in source.record.planned if each.case is case} if source.record else {}


def _ended(source: _Source) -> dict[str, Ended]:
    return {each.key: each for each in source.record.ended} if source.record else {}


def _of_state(source: _Source) -> tuple[Problem, ...]:
    """Problems that the run record shows."""
    record = source.record
    if record is None or source.alone:
        return ()
    problems = [Problem(place="run", text=each) for each in record.problems]
    if record.state is RunState.RUNNING:
        text = f"the run has not recorded its end: it was {record.state.cut_short}"
        problems.append(Problem(place=RUN_RECORD, text=text))
    planned = {each.key for each in record.planned}
    found = [
        *((each.root.name, "scenario") for each in source.directories),
        *((each.name, "case") for each in source.cases),
    ]
    problems += [
        Problem(place=f"runs/{name}", text=f"this {kind} was not planned in this run; it is reported anyway")
        for name, kind in found
        if name not in planned
    ]
    return tuple(problems)


def _partial(source: _Source) -> str:
    if source.alone:
        return "one case of a protocol run" if source.cases else "one scenario of a run"
    if source.record is None:
        return "the plan of the run is unknown"
    narrowed = f'narrowed to the selection "{source.record.narrowed_by}"' if source.record.narrowed_by else ""
    return "; ".join(each for each in (source.cut_short, narrowed) if each)


def _duration_s(source: _Source, reports: Sequence[Tried]) -> float:
    """The duration of the run; if it was not recorded, the sum of its scenarios and cases.

    A run that was killed recorded the time until its last experiment ended; it took at least as long as each of them.
    """
    if source.record is not None and source.record.state is RunState.RUNNING and not source.alone:
        return max([source.record.duration_s, *(each.actual_s or 0.0 for each in reports)])
    if source.record is not None and source.record.duration_s and not source.alone:
        return source.record.duration_s
    return sum(each.actual_s or 0.0 for each in reports)


def _replay(source: _Source, reports: Sequence[Tried]) -> str:
    if source.record is not None and not source.alone:
        return source.record.command
    return next((each.replay for each in reports if each.replay), "")
