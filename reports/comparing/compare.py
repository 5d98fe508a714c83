"""Compare two runs, and add the changes to a report.

Cases are matched by kind and id: each seed, and each run of a merged report, separately. A case that is only in the
baseline has vanished. If this run has a seed or part that the baseline lacks, ids cannot match, so the worst results of
both are compared: another seed is not a new scenario. A case is *decided* when it passed, failed or was detected. A
scenario that failed and still fails has regressed when it shows a new anomaly: an accepted bug must not hide the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from reports.comparing import results
from reports.comparing.baseline import ComparedCase, Outcomes, of_results
from reports.comparing.upgrade_figures import with_figures
from reports.deciding import decide
from reports.model.change import BaselineComparison, CaseKind, Change, ChangeKind
from reports.model.report import Report

#: How bad a result is. Verdicts keep their order; a missed control is as bad as a violation.
_RANK = {
    "UNTESTED": 0,
    "NOT_APPLICABLE": 0,
    "PASS": 1,
    "DETECTED": 1,
    "INCONCLUSIVE": 2,
    "ERROR": 3,
    "FAIL": 4,
    "MISSED": 4,
}
_PASSING, _UNDECIDED, _BAD = 1, (2, 3), 4
_ORDER = {kind: place for place, kind in enumerate(ChangeKind)}
_CASES = {kind: place for place, kind in enumerate(CaseKind)}
Key = tuple[CaseKind, str]


def compare(before: Outcomes, now: Outcomes) -> BaselineComparison:
    """The changes from `before` to `now`, the worst first."""
    old, new = _matched(before.cases, now.cases)
    changes = [change for key in {**old, **new} if (change := _change(old.get(key), new.get(key))) is not None]
    known = [key for key in {**old, **new} if _rank(old.get(key)) or _rank(new.get(key))]
    return BaselineComparison(
        baseline=before.side,
        current=now.side,
        changes=tuple(sorted(changes, key=lambda each: (_ORDER[each.kind], each.accepted, _CASES[each.case]))),
        unchanged=len(known) - len(changes),
    )


def against(report: Report, baseline: Outcomes) -> Report:
    """The report with the changes since the baseline, and with its figures of upgrades.

    The decision then counts regressions.
    """
    comparison = compare(baseline, of_results(results.results(report)))
    scenarios = tuple(with_figures(each, baseline) for each in report.scenarios)
    return decide.judged(replace(report, scenarios=scenarios, comparison=comparison))


def _matched(
    before: Iterable[ComparedCase], now: Iterable[ComparedCase]
) -> tuple[dict[Key, ComparedCase], dict[Key, ComparedCase]]:
    """The cases of both runs, by a key that names the same case in each."""
    old, new = _by_stem(before), _by_stem(now)
    whole = {key for key in old.keys() & new.keys() if _matches_one_to_one(old[key], new[key])}
    return _flat(old, whole), _flat(new, whole)


def _by_stem(cases: Iterable[ComparedCase]) -> dict[Key, list[ComparedCase]]:
    stems: dict[Key, list[ComparedCase]] = defaultdict(list)
    for case in cases:
        stems[case.kind, case.stem].append(case)
    return stems


def _matches_one_to_one(old: list[ComparedCase], new: list[ComparedCase]) -> bool:
    """Whether the baseline has every seed and part of this run, each once."""
    before, now = {_one(each) for each in old}, {_one(each) for each in new}
    return now <= before and (len(before), len(now)) == (len(old), len(new))


def _one(case: ComparedCase) -> tuple[str, str]:
    return case.part, case.seed


def _flat(stems: dict[Key, list[ComparedCase]], whole: set[Key]) -> dict[Key, ComparedCase]:
    """One case per id where ids match, else the worst case of a stem."""
    flat: dict[Key, ComparedCase] = {}
    for (kind, stem), cases in stems.items():
        if (kind, stem) in whole:
            flat.update({(kind, f"{stem} {each.part} {each.seed}"): each for each in cases})
        else:
            flat[kind, stem] = _worst(cases)
    return flat


def _worst(cases: list[ComparedCase]) -> ComparedCase:
    """The worst case, with the findings of all of them; it is accepted only if all of them are."""
    worst = max(cases, key=lambda each: (_rank(each), not each.accepted))
    return replace(worst, found=frozenset().union(*(each.found for each in cases)))


def _rank(case: ComparedCase | None) -> int:
    # An unknown result counts as undecided: it is neither a pass nor a violation.
    return 0 if case is None else _RANK.get(case.word, 2)


def _change(old: ComparedCase | None, new: ComparedCase | None) -> Change | None:
    kind = _kind(old, new)
    if kind is None:
        return None
    shown = new or old
    assert shown is not None, "a key comes from one of the runs"
    reason = shown.reason
    if kind is ChangeKind.REGRESSED and old is not None and new is not None and _rank(old) == _BAD:
        reason = f"new: {', '.join(sorted(new.found - old.found))}"
    return Change(
        kind=kind,
        case=shown.kind,
        id=shown.id,
        before=old.word if old else "",
        now=new.word if new else "",
        reason=reason if new else "not part of this run",
        accepted=bool(new and new.accepted),
    )


def _kind(old: ComparedCase | None, new: ComparedCase | None) -> ChangeKind | None:
    before, now = _rank(old), _rank(new)
    if before == 0:
        # The violation of a new case has its own exit code; it is no regression.
        return ChangeKind.NEW if now else None
    if now == 0:
        explained = new is not None and (new.word == "NOT_APPLICABLE" or not new.applies)
        return ChangeKind.NO_LONGER_APPLICABLE if explained else ChangeKind.VANISHED
    if now == _BAD:
        more = old is not None and new is not None and bool(new.found - old.found)
        return ChangeKind.REGRESSED if before != _BAD or more else None
    if now == _PASSING:
        return ChangeKind.FIXED if before != _PASSING else None
    return ChangeKind.NEWLY_INCONCLUSIVE if before not in _UNDECIDED else None
