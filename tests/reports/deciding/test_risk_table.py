"""The table of risks: which bugs are in it, their order, the release of today, and the filter of the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from reports.deciding.risk_table import CHOICES, Risk, release_of_today, risks
from reports.formats import html
from reports.loading.run import load_run
from reports.model.report import Report
from reports.model.vocabulary import bugs
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run
from verification.known_bugs.catalogue import BugKind, affects
from verification.requirements.catalogue import Protects


def report_of(tmp_path: Path, release: str, *, today: str = "") -> tuple[Report, Path]:
    """A run in which KB-16 shows, as of a release; `today` is where an upgrade begins."""
    run = tmp_path / "run"
    if not run.exists():
        make_run(run, [SMOKE, FAILED])
    report = load_run(run)
    return replace(report, subject=replace(report.subject, release=release, upgraded_from=today)), run


def rows(tmp_path: Path, release: str, **more: str) -> dict[str, Risk]:
    """The rows by the ids of their bugs."""
    return {each.id: each for each in risks(report_of(tmp_path, release, **more)[0])}


def test_every_bug_of_the_release_is_a_row_and_the_gravest_comes_first(tmp_path: Path) -> None:
    """Controls are none; a bug that the run showed is one also on a release that should not have it."""
    found = rows(tmp_path, "4.4.0")
    expected = {each.id for each in bugs().values() if each.kind is not BugKind.CONTROL and affects(each, "4.4.0")}
    assert set(found) == expected
    order = [tuple(Protects).index(Protects(each.at_risk)) for each in found.values()]
    assert order == sorted(order)
    assert (found["KB-16"].seen, found["KB-16"].place) == ("decides: 1 test fails", FAILED.key)
    assert (found["KB-43"].seen, found["KB-43"].place) == ("not seen", "")
    # Of the bugs with equal harm the one that decides is the first, whatever its number.
    equal = [each.id for each in found.values() if (each.at_risk, each.likely) == ("records", "ordinary")]
    assert equal[0] == "KB-16"
    assert "KB-05" in equal
    assert "KB-16" in rows(tmp_path, "4.2.1")
    assert "KB-43" not in rows(tmp_path, "4.9.0")


def test_the_release_of_today_is_compared(tmp_path: Path) -> None:
    """It has a bug, does not have it, or was not run; without it nothing is said."""
    found = rows(tmp_path, "4.4.0", today="4.2.1")
    assert (found["KB-16"].today, found["KB-43"].today) == ("no, measured", "yes")
    assert rows(tmp_path, "4.4.0", today="4.2.2")["KB-16"].today == "not run"
    # Fixed on its own line; 2.8.2 has a fix that 3.0.1 does not.
    assert rows(tmp_path, "3.1.0", today="3.2.3")["KB-06"].today == "no, by its fix"
    assert rows(tmp_path, "3.1.0", today="3.0.1")["KB-06"].today == "not run"
    assert release_of_today(report_of(tmp_path, "4.4.0")[0]) == ""
    assert {each.today for each in rows(tmp_path, "4.4.0").values()} == {""}


def test_the_page_filters_without_a_script(tmp_path: Path) -> None:
    """For Java, TV2 and three replicas KB-16, KB-43, KB-22 and KB-24 stay, unfolded; each choice has its rule of style."""
    report, run = report_of(tmp_path, "4.4.0")
    page = html.render(report, run)
    table = page[page.index('<section id="risks">') : page.index("</section>", page.index('<section id="risks">'))]
    assert "<details" not in table
    shown = {each[2] for each in re.findall(r'<tr class="([^"]*)"><th scope="row">(<a [^>]*>)?(KB-[0-9]+)', table)}
    assert shown == {each.id for each in risks(report)}
    left = {each.id for each in risks(report) if not {"not-java", "not-tv2"} & set(each.hidden_by)}
    assert {"KB-16", "KB-43", "KB-22", "KB-24", "KB-30", "KB-19"} <= left
    assert not {"KB-03", "KB-04", "KB-05", "KB-17", "KB-18", "KB-26", "KB-41"} & left
    hides = {each for row in risks(report) for each in row.hidden_by}
    for identity, _, words, hidden in CHOICES:
        assert f'id="risk-{identity}"' in table
        assert words in table
        assert not hidden or f"body:has(#risk-{identity}:checked) .{hidden}" in page
    assert hides <= {hidden for *_, hidden in CHOICES}
