"""Merge several run directories into one report, for instance of several hosts, releases or nights.

Every given directory is in the report: counted, or with a note that says why it is not. A directory that is missing,
foreign, truncated or of a newer format is a problem, so the report cannot be GO. A copy of another directory counts
once, with a note. The runs are sorted by start, not by the order of the arguments, so the same set gives the same bytes.

The key of a scenario or protocol case gets the name of its run as a suffix (`…@4.3.1-local`). The decision is made anew
from all scenarios, cases, controls and problems; it is never better than that of the worst run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.deciding.decide import judged
from reports.loading.requirement_rows import rows
from reports.loading.run import load_run
from reports.loading.subject import JOINED
from reports.model.change import BaselineComparison, CaseKind
from reports.model.errors import ReportError, UnfitRunError
from reports.model.protocol_case import ScriptCase, Tried
from reports.model.report import (
    AcceptanceRow,
    ClientUnderTest,
    MergedRun,
    Pairs,
    Problem,
    Report,
    ScenarioReport,
    Subject,
)
from reports.model.vocabulary import catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """A directory with its report, or with a note and whether that is a problem."""

    directory: str
    report: Report | None
    note: str = ""
    problem: bool = False


def merge(runs: Sequence[Path], target: Path, *, strict: bool = False) -> Report:
    """One report of several directories; `target` is where it will be written, so it is not counted.

    If every violation decides in one of them, it does so in all.

    Raises UnfitRunError when none of them can be read.
    """
    paths = [each.resolve() for each in runs]
    origin = Path(os.path.commonpath([str(each) for each in paths]))
    loaded = sorted(_load_all(paths, origin, target.resolve(), strict=strict), key=_order)
    if not strict and any(each.report.strict for each in loaded if each.report is not None):
        return merge(runs, target, strict=True)
    whole = list(_counted_once(loaded))
    counted = [each for each in whole if each.report is not None]
    if not counted:
        raise UnfitRunError("; ".join(each.note for each in whole))
    parts = tuple(_parts(whole))
    named = [part.name for part in parts if part.name]
    reports = [_as_part(each, name) for each, name in zip(counted, named, strict=True)]
    problems = [Problem(place=each.directory, text=each.note) for each in whole if each.problem]
    return judged(_put_together(reports, origin, parts, problems))


def _load_all(paths: Sequence[Path], origin: Path, target: Path, *, strict: bool) -> Iterator[_Loaded]:
    taken: set[Path] = set()
    for path in paths:
        directory = os.path.relpath(path, origin)
        if path in taken:
            yield _Loaded(directory=directory, report=None, note="given twice, counted once")
        elif path == target:
            yield _Loaded(directory=directory, report=None, note="the output directory of this report, not counted")
        else:
            taken.add(path)
            yield _load(path, directory, origin, strict=strict)


def _load(path: Path, directory: str, origin: Path, *, strict: bool) -> _Loaded:
    try:
        return _Loaded(directory=directory, report=load_run(path, strict=strict))
    except ReportError as error:
        return _Loaded(directory=directory, report=None, note=str(error).replace(f"{origin}/", ""), problem=True)


def _order(loaded: _Loaded) -> tuple[bool, str, str]:
    """By start; directories that are not counted come last."""
    return (loaded.report is None, loaded.report.started if loaded.report else "", loaded.directory)


def _counted_once(loaded: Iterable[_Loaded]) -> Iterator[_Loaded]:
    """The evidence of each scenario or case counts once; a copy with another verdict is a problem."""
    seen: dict[str, tuple[str, Tried]] = {}
    for each in loaded:
        if each.report is None:
            yield each
            continue
        twice = [(seen[id_], one) for id_, one in _identities(each.report) if id_ in seen]
        kept = {id_: (each.directory, one) for id_, one in _identities(each.report) if id_ not in seen}
        seen.update(kept)
        yield each if not twice else _without(each, twice, everything=not kept)


def _identities(report: Report) -> Iterator[tuple[str, Tried]]:
    """Scenarios, cases and controls by the id of their execution, which a copy shares."""
    for one in (*report.tried, *report.controls):
        if one.run:
            yield one.run, one


def _without(loaded: _Loaded, twice: Sequence[tuple[tuple[str, Tried], Tried]], *, everything: bool) -> _Loaded:
    report = loaded.report
    assert report is not None, "only a report has scenarios that can be copies"
    where = ", ".join(sorted({directory for (directory, _), _ in twice}))
    differs = [copy.key for (_, first), copy in twice if first.verdict is not copy.verdict]
    noun = "case" if report.is_protocol_run else "scenario"
    copied = f"every {noun} is" if everything else f"{len(twice)} of its {noun}s are"
    note = f"{copied} also in {where}; counted once"
    if differs:
        note += f"; the copies disagree about {', '.join(differs)}"
    copies = {copy.key for _, copy in twice}
    rest = replace(
        report,
        scenarios=tuple(each for each in report.scenarios if each.key not in copies),
        controls=tuple(each for each in report.controls if each.key not in copies),
        cases=tuple(each for each in report.cases if each.key not in copies),
    )
    return replace(loaded, report=None if everything else rest, note=note, problem=bool(differs))


def _parts(whole: Sequence[_Loaded]) -> Iterator[MergedRun]:
    """The merged runs; a name has release and runtime, `-protocol` for a protocol run, and a number if needed."""
    titles = [_title(each.report) for each in whole if each.report is not None]
    often, used = Counter(titles), Counter[str]()
    remaining = iter(titles)
    for each in whole:
        report = each.report
        if report is None:
            yield MergedRun(name="", directory=each.directory, note=each.note)
            continue
        title = next(remaining)
        used[title] += 1
        name = f"{title}-{used[title]}" if often[title] > 1 else title
        yield MergedRun(
            name=name,
            directory=each.directory,
            note=each.note,
            subject=f"Apache Kafka {report.subject.release}, {report.subject.runtime}",
            started=report.started,
            profile=report.profile,
            seed=report.seed,
            decision=report.judgement.decision.value,
            verdict=report.judgement.verdict,
            duration_s=report.duration_s,
            host=report.subject.host,
            replay=report.replay,
            comparison=_compared(report.comparison, name),
        )


def _compared(comparison: BaselineComparison | None, name: str) -> BaselineComparison | None:
    """The changes of one run, with the case ids of the merged report."""
    if comparison is None:
        return None
    return replace(
        comparison,
        changes=tuple(
            each if each.case is CaseKind.REQUIREMENT else replace(each, id=f"{each.id}@{name}")
            for each in comparison.changes
        ),
    )


def _title(report: Report) -> str:
    subject = report.subject
    title = f"{subject.release or 'unknown'}-{subject.runtime or 'unknown'}".replace(" ", "")
    return f"{title}-protocol" if report.is_protocol_run else title


def _as_part(loaded: _Loaded, name: str) -> Report:
    """The report with the keys and paths of the merged one."""
    report, prefix = loaded.report, loaded.directory
    assert report is not None, "only counted directories become parts"
    return replace(
        report,
        scenarios=tuple(_named(each, name, prefix) for each in report.scenarios),
        controls=tuple(_named(each, name, prefix) for each in report.controls),
        cases=tuple(_case_named(each, name, prefix) for each in report.cases),
        problems=tuple(replace(each, place=f"{name}: {each.place}") for each in report.problems),
        partial=f"{name}: {report.partial}" if report.partial else "",
    )


def _below(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if path and prefix != "." else path


def _judge_below(prefix: str, command: str) -> str:
    begin, _, path = command.rpartition(" ")
    return f"{begin} {_below(prefix, path)}" if begin else ""


def _named(scenario: ScenarioReport, name: str, prefix: str) -> ScenarioReport:
    return replace(
        scenario,
        key=f"{scenario.key}@{name}",
        part=name,
        evidence=tuple(replace(each, path=_below(prefix, each.path)) for each in scenario.evidence),
        judge=_judge_below(prefix, scenario.judge),
        findings=tuple(replace(each, evidence=_below(prefix, each.evidence)) for each in scenario.findings),
    )


def _case_named(case: ScriptCase, name: str, prefix: str) -> ScriptCase:
    return replace(case, key=f"{case.key}@{name}", part=name, script=_below(prefix, case.script))


def _put_together(
    reports: Sequence[Report], origin: Path, parts: tuple[MergedRun, ...], problems: Sequence[Problem]
) -> Report:
    first = reports[0]
    scenarios = tuple(each for report in reports for each in report.scenarios)
    cases = tuple(each for report in reports for each in report.cases)
    tested = _subject([each.subject for each in reports])
    seeds = {each.seed for each in reports}
    return replace(
        first,
        origin=origin,
        cut_short=next((each.cut_short for each in reports if each.cut_short), ""),
        partial="; ".join(each.partial for each in reports if each.partial),
        subject=tested,
        seed=first.seed if len(seeds) == 1 else None,
        profile=_joined(each.profile for each in reports),
        duration_s=sum(each.duration_s for each in reports),
        expected_s=sum(each.expected_s for each in reports),
        suite=_joined(each.suite for each in reports),
        options=(),
        downloads=_pairs(each.downloads for each in reports),
        scenarios=scenarios,
        controls=tuple(each for report in reports for each in report.controls),
        cases=cases,
        requirements=rows(catalogue(), (*scenarios, *cases), tested),
        acceptances=_acceptances(reports),
        problems=(*problems, *(each for report in reports for each in report.problems)),
        replay="",
        comparison=None,
        parts=parts,
    )


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(each for each in texts if each))


def _pairs(groups: Iterable[Pairs]) -> Pairs:
    values: dict[str, list[str]] = {}
    for group in groups:
        for name, value in group:
            # A run with several values has joined them in the same way.
            values.setdefault(name, []).extend(value.split(JOINED))
    return tuple((name, JOINED.join(dict.fromkeys(each))) for name, each in sorted(values.items()))


def _subject(subjects: Sequence[Subject]) -> Subject:
    clients: dict[ClientUnderTest, None] = {client: None for each in subjects for client in each.clients}
    return Subject(
        release=_joined(each.release for each in subjects),
        runtime=_joined(each.runtime for each in subjects),
        clients=tuple(clients),
        versions=_pairs(each.versions for each in subjects),
        digests=_pairs(each.digests for each in subjects),
        host=_pairs(each.host for each in subjects),
        upgraded_from=_joined(each.upgraded_from for each in subjects),
        pipelines=max((each.pipelines for each in subjects), default=0)
        if all(each.pipelines for each in subjects)
        else 0,
    )


def _acceptances(reports: Sequence[Report]) -> tuple[AcceptanceRow, ...]:
    """The acceptances of all runs, each waiver once with the findings of all runs.

    A waiver that had expired in some of the runs has two rows.
    """
    covered: Counter[AcceptanceRow] = Counter()
    for each in (row for report in reports for row in report.acceptances):
        covered[replace(each, findings=0)] += each.findings
    return tuple(replace(each, findings=findings) for each, findings in covered.items())
