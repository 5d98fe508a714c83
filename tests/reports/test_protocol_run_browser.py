"""The page of a protocol run in a real browser: complete without styles, quiet, accessible, folded and inert."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.formats.write import write_all
from reports.loading.run import load_run
from tests.reports.test_browser import probed
from tests.support.browser import JENKINS, needs_chromium, served, told, visit
from tests.support.protocol_run_directories import EVERY_SCRIPT, PASSED, VIOLATED, make_protocol_run, said

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def protocol_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol run with every verdict, in which one case has a very long value."""
    long = replace(VIOLATED, case="idempotence-long", statements=(said(2, "the log " * 9, ["a" * 300], ["b" * 300]),))
    directory = make_protocol_run(tmp_path_factory.mktemp("browser") / "run", (*EVERY_SCRIPT, long))
    write_all(load_run(directory), directory)
    return directory


def test_without_any_style_the_page_is_complete_and_ordered(protocol_run: Path, tmp_path: Path) -> None:
    """Under the policy of Jenkins only the inline style sheet is refused; decision, cases and requirements stay in order."""
    with served(protocol_run, JENKINS) as address:
        seen = visit(f"{address}/report.html", tmp_path / "profile")
    assert len(seen.console) == 1
    assert "inline style" in seen.console[0]
    text = seen.dom
    assert not re.search(r"\sstyle=|<script|data:", text)
    order = [text.index(f'id="{name}"') for name in ("cases", "families", "details", "requirements", "passed", "about")]
    assert order == sorted(order)
    assert text.index("NO-GO") < order[0]


def test_the_page_says_nothing_on_the_console(protocol_run: Path, tmp_path: Path) -> None:
    """Opened from a disk, it causes no error and no warning."""
    assert visit((protocol_run / "report.html").as_uri(), tmp_path / "profile").console == ()


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast_and_every_part_a_name(protocol_run: Path, tmp_path: Path, dark: bool) -> None:
    """Contrast is 4.5:1 in light and dark with everything unfolded, header cells are named, links can be reached."""
    found = probed(protocol_run / "report.html", tmp_path / "profile", dark=dark)
    assert found["dark"] is dark
    assert found["texts"] > 500
    assert found["low"] == []
    assert found["unnamed"] == 0


@pytest.mark.parametrize("width", [360, 1920])
def test_no_width_scrolls_the_page_sideways(protocol_run: Path, tmp_path: Path, width: int) -> None:
    """Scripts scroll in their own box, however long their values are."""
    assert probed(protocol_run / "report.html", tmp_path / "profile", width=width)["wide"] is False


def test_a_case_that_passed_is_a_line_and_a_link_leads_to_it(protocol_run: Path, tmp_path: Path) -> None:
    """The line has its claim and the name that repeats it, and no script; its requirement links to it."""
    case = f"document.getElementById('{PASSED.case}')"
    asked = f"JSON.stringify([{case}.tagName, {case}.textContent, {case}.querySelectorAll('table, details').length])"
    page = protocol_run / "report.html"
    tag, line, parts = told(page, f"onload = () => document.title = 'FOUND' + {asked}", tmp_path / "profile")
    assert (tag, parts) == ("LI", 0)
    assert PASSED.claim in line
    assert line.rstrip().endswith(PASSED.case)
    text = page.read_text(encoding="utf-8")
    row = text[text.index('<tr id="IDEMP-07"') :]
    assert f'href="#{PASSED.case}"' in row[: row.index("</tr>")]
