"""No two statements of a report contradict each other: of kept runs, of planted ones, and of any real run.

    ONCEPROOF_RUN=reports/out/latest tox -e fast -- tests/reports/deciding/test_consistency.py

looks at the report of that run, rendered anew in a copy. Each check is also seen to fail, on a page or a model in which the
contradiction was planted.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.loading.run import load_run
from reports.model.damage import Damage, HeldPartition
from reports.model.protocol_case import Trace
from reports.model.report import Report
from reports.model.timeline import FiredAlert, Period
from tests.reports.deciding import consistency
from tests.reports.deciding.consistency import Shown, contradictions, shown
from tests.reports.test_golden import golden
from tests.support.plans import EVERY_VERDICT, FAILED, SMOKE
from tests.support.protocol_run_directories import EVERY_SCRIPT, make_protocol_run
from tests.support.run_directories import make_run

#: A run that the caller names.
REAL = os.environ.get("ONCEPROOF_RUN", "")


def copied(run: Path, directory: Path) -> Report:
    """The report of a copy of a run."""
    shutil.copytree(run, directory / "run")
    return load_run(directory / "run")


@pytest.mark.parametrize("case", golden(), ids=lambda path: path.name)
def test_a_kept_run_contradicts_itself_nowhere(case: Path, tmp_path: Path) -> None:
    """Their histories were cut after they were judged, so their operations add up to less."""
    seen = shown(copied(case / "run", tmp_path))
    assert contradictions(seen, but=(consistency.operations_add_up,)) == []


def test_planted_runs_contradict_themselves_nowhere(tmp_path: Path) -> None:
    """Every verdict of scenarios, and every kind of protocol case; planted counts are not those of planted histories."""
    for name, run in (
        ("scenarios", make_run(tmp_path / "scenarios", EVERY_VERDICT)),
        ("cases", make_protocol_run(tmp_path / "cases", EVERY_SCRIPT)),
    ):
        assert contradictions(shown(load_run(run)), but=(consistency.operations_add_up,)) == [], name


@pytest.mark.skipif(not REAL, reason="ONCEPROOF_RUN names no run")
def test_a_real_run_contradicts_itself_nowhere(tmp_path: Path) -> None:
    """The report of a whole run has no contradiction at all."""
    assert contradictions(shown(copied(Path(REAL), tmp_path))) == []


def with_report(seen: Shown, **changes: Any) -> Shown:
    """The texts next to a changed model."""
    return replace(seen, report=replace(seen.report, **changes))


def page(old: str, new: str) -> Callable[[Shown], Shown]:
    """A page on which a text is another one; the text must be there."""

    def change(seen: Shown) -> Shown:
        changed = re.sub(old, new, seen.page, count=1, flags=re.DOTALL)
        assert changed != seen.page, old
        return replace(seen, page=changed)

    return change


def first_scenario(**changes: Any) -> Callable[[Shown], Shown]:
    """A model whose first scenario has other values."""
    return lambda seen: with_report(
        seen, scenarios=(replace(seen.report.scenarios[0], **changes), *seen.report.scenarios[1:])
    )


def first_case(**changes: Any) -> Callable[[Shown], Shown]:
    """A model whose first case has other values."""
    return lambda seen: with_report(seen, cases=(replace(seen.report.cases[0], **changes), *seen.report.cases[1:]))


def other_number(seen: Shown) -> Shown:
    """A headline that counts only the violations that decide."""
    why = seen.report.judgement.why.replace("2 of 6 cases proved a violation", "1 of 6 cases proved a violation")
    assert why != seen.report.judgement.why
    return with_report(seen, judgement=replace(seen.report.judgement, why=why))


def silent_impact(seen: Shown) -> Shown:
    """A case that gave a reader a record, next to an impact that denies it."""
    case = next(each for each in seen.report.cases if each.deciding)
    said = replace(
        case.deciding[0], what="what a reader is given", expected="nothing", observed='"a"', relation="equals"
    )
    cases = tuple(replace(each, statements=(said,)) if each is case else each for each in seen.report.cases)
    denied = f"**Impact**: 3 hit. No record reached a reader wrongly.\n{seen.summary}"
    return replace(with_report(seen, cases=cases), summary=denied)


def hidden_alert(seen: Shown) -> Shown:
    """An alert that holds to the end of a partition that is not held back."""
    alert = FiredAlert(
        name="stable-offset", text="lag", place="", shows=(), began_s=1.0, ended_s=None, to_the_end="orders-1, orders-2"
    )
    first = seen.report.scenarios[0]
    assert first.timeline is not None
    held = (HeldPartition(place="orders-1", last_stable_offset=3, high_watermark=9),)
    return first_scenario(timeline=replace(first.timeline, alerts=(alert,)), damage=Damage(held=held))(seen)


def visible_example(seen: Shown) -> Shown:
    """A record that every reader received, shown first for a transaction that hangs."""
    first = seen.report.scenarios[0]
    finding, row = first.findings[0], first.findings[0].around[0]
    seen_row = replace(row, place=finding.witnesses[0].place, committed="1", violates=True)
    return first_scenario(findings=(replace(finding, anomaly="hung-transaction", around=(seen_row,)),))(seen)


def lost_operation(seen: Shown) -> Shown:
    """Rows that lack one operation."""
    first = seen.report.scenarios[0]
    assert first.timeline is not None
    names = ("before", "during", "after")
    periods = tuple(Period(name=name, ok=1, fail=0, info=0, acknowledged=1) for name in names)
    return first_scenario(
        timeline=replace(first.timeline, periods=periods), counts=(("operations", 4),), coverage=(), damage=None
    )(seen)


def silent_pass(seen: Shown) -> Shown:
    """A passed case that shows a known bug, next to formats that do not say it."""
    trace = Trace(bug="KB-42", text="an id was issued twice")
    passed = next(number for number, each in enumerate(seen.report.cases) if each.verdict == 1)
    cases = [
        replace(each, traces=(trace,) if number == passed else ()) for number, each in enumerate(seen.report.cases)
    ]
    return with_report(seen, cases=tuple(cases))


#: Each check with a contradiction that it must see, planted into the run of cases or of scenarios.
PLANTED: tuple[tuple[Any, str, Callable[[Shown], Shown]], ...] = (
    (consistency.failures_add_up, "cases", other_number),
    (
        consistency.failures_add_up,
        "scenarios",
        page(r"<dt>Scenarios</dt><dd>\s*1 FAIL", "<dt>Scenarios</dt><dd>2 FAIL"),
    ),
    (consistency.impact_has_what_was_shown, "cases", silent_impact),
    (
        consistency.releases_agree,
        "cases",
        page("(<dt>Measured affected</dt>)", r"<dt>Not tried</dt><dd>4.3.1</dd>\g<1>"),
    ),
    (consistency.fixes_are_released, "cases", page("not fixed yet; a fix is announced for 4.5.0", "fixed in 4.5.0")),
    (
        consistency.risks_agree,
        "cases",
        page("(Records are at risk, [^<]*)", r"\g<1> Still no record is wrong."),
    ),
    (consistency.times_cover_exchanges, "cases", first_case(actual_s=0.001)),
    (consistency.times_cover_exchanges, "scenarios", first_scenario(actual_s=1e9)),
    (consistency.operations_add_up, "scenarios", lost_operation),
    (consistency.families_follow_their_rows, "cases", page("FAIL, standing risk</span> 1 FAIL", "FAIL</span> 1 FAIL")),
    (consistency.no_python_values, "cases", page("<p>", "<p>observed None, which {'over': 'Ongoing'}")),
    (consistency.known_bugs_are_explained, "scenarios", page("<p>", "<p>as in KB-42 ")),
    (consistency.passes_name_known_bugs, "cases", silent_pass),
    (consistency.alerts_agree, "scenarios", hidden_alert),
    (consistency.first_examples_are_victims, "scenarios", visible_example),
    (consistency.summary_agrees, "cases", lambda seen: replace(seen, summary=seen.summary.replace("proved", "showed"))),
    (consistency.plurals_fit, "cases", page("<p>", "<p>nothing tried of 1 families")),
)


@pytest.mark.parametrize(
    ("check", "kind", "plant"), PLANTED, ids=[f"{check.__name__}-{kind}" for check, kind, _ in PLANTED]
)
def test_a_planted_contradiction_is_noticed(
    check: Any, kind: str, plant: Callable[[Shown], Shown], tmp_path: Path
) -> None:
    """A check that never fails guards nothing."""
    make = {
        "cases": lambda: make_protocol_run(tmp_path, EVERY_SCRIPT),
        "scenarios": lambda: make_run(tmp_path, (FAILED, SMOKE)),
    }
    seen = shown(load_run(make[kind]()))
    assert list(check(plant(seen)))


def test_each_check_was_seen_to_fail() -> None:
    """A new check has a planted contradiction."""
    assert {check for check, _, _ in PLANTED} == set(consistency.CHECKS)
