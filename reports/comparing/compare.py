"""Two sides → what changed, and a report that says so.

Cases are matched by kind and id: each seed, and each run of a merged report, by itself, and one that is only in the
baseline has vanished. Where this side has a seed or a run that the baseline has not, ids cannot match, and the worst
ending of all of them is compared instead: a seed that the baseline never tried is no new scenario. A case is
*decided* when it passed, failed or was convicted. A scenario that failed and still fails has regressed when it shows an
anomaly that the baseline's did not: one accepted bug must not hide the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from reports.comparing import results
from reports.comparing.baseline import Case, Outcomes, of_results
from reports.deciding import decide
from reports.model.change import CaseKind, Change, ChangeKind, Comparison
from reports.model.report import Report

#: How bad an ending is. A verdict keeps its place in the lattice, an escaped control is as bad as a violation.
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


def compare(before: Outcomes, now: Outcomes) -> Comparison:
    """What changed from `before` to `now`, the worst first."""
    old, new = _matched(before.cases, now.cases)
    changes = [change for key in {**old, **new} if (change := _change(old.get(key), new.get(key))) is not None]
    known = [key for key in {**old, **new} if _rank(old.get(key)) or _rank(new.get(key))]
    return Comparison(
        baseline=before.side,
        current=now.side,
        changes=tuple(sorted(changes, key=lambda each: (_ORDER[each.kind], each.accepted, _CASES[each.case]))),
        unchanged=len(known) - len(changes),
    )


def against(report: Report, baseline: Outcomes) -> Report:
    """The report with what changed since the baseline; its decision then counts regressions."""
    comparison = compare(baseline, of_results(results.results(report)))
    return decide.judged(replace(report, comparison=comparison))


def _matched(before: Iterable[Case], now: Iterable[Case]) -> tuple[dict[Key, Case], dict[Key, Case]]:
    """Both sides by a key that names the same case on each."""
    old, new = _by_stem(before), _by_stem(now)
    whole = {key for key in old.keys() & new.keys() if _each_by_itself(old[key], new[key])}
    return _flat(old, whole), _flat(new, whole)


def _by_stem(cases: Iterable[Case]) -> dict[Key, list[Case]]:
    stems: dict[Key, list[Case]] = defaultdict(list)
    for case in cases:
        stems[case.kind, case.stem].append(case)
    return stems


def _each_by_itself(old: list[Case], new: list[Case]) -> bool:
    """Whether the baseline has every seed and run of this side, each once."""
    before, now = {_one(each) for each in old}, {_one(each) for each in new}
    return now <= before and (len(before), len(now)) == (len(old), len(new))


def _one(case: Case) -> tuple[str, str]:
    return case.part, case.seed


def _flat(stems: dict[Key, list[Case]], whole: set[Key]) -> dict[Key, Case]:
    """One case per id where ids can match, else the worst of a stem."""
    flat: dict[Key, Case] = {}
    for (kind, stem), cases in stems.items():
        if (kind, stem) in whole:
            flat.update({(kind, f"{stem} {each.part} {each.seed}"): each for each in cases})
        else:
            flat[kind, stem] = _worst(cases)
    return flat


def _worst(cases: list[Case]) -> Case:
    """The worst ending; what any of them found stays found, and only all of them together are accepted."""
    worst = max(cases, key=lambda each: (_rank(each), not each.accepted))
    return replace(worst, found=frozenset().union(*(each.found for each in cases)))


def _rank(case: Case | None) -> int:
    # An ending that this version does not know is compared as undecided: it is neither a pass nor a violation.
    return 0 if case is None else _RANK.get(case.word, 2)


def _change(old: Case | None, new: Case | None) -> Change | None:
    kind = _kind(old, new)
    if kind is None:
        return None
    shown = new or old
    assert shown is not None, "a key comes from one of the sides"
    reason = shown.reason
    if kind is ChangeKind.REGRESSED and old is not None and new is not None and _rank(old) == _BAD:
        reason = f"found {', '.join(sorted(new.found - old.found))} in addition"
    return Change(
        kind=kind,
        case=shown.kind,
        id=shown.id,
        before=old.word if old else "",
        now=new.word if new else "",
        reason=reason if new else "it is not part of this run",
        accepted=bool(new and new.accepted),
    )


def _kind(old: Case | None, new: Case | None) -> ChangeKind | None:
    before, now = _rank(old), _rank(new)
    if before == 0:
        # A new case's violation has its own exit code; nothing says that it was better before.
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
