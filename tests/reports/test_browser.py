"""The page in a real browser: complete without styles, quiet on the console, accessible, and inert."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.comparing.baseline import of_results
from reports.comparing.compare import against
from reports.comparing.results import results
from reports.formats.write import write_all
from reports.loading.run import load_run
from tests.support.browser import JENKINS, needs_chromium, served, told, visit
from tests.support.paths import ROOT
from tests.support.plans import EVERY_VERDICT, FAILED
from tests.support.rendered_runs import hostile_run
from tests.support.run_directories import make_run

pytestmark = [pytest.mark.browser, needs_chromium]

#: Pixels between the margins of the paper.
A4 = 718
PROBE = (ROOT / "tests/support/page_probe.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every verdict, compared with a better baseline."""
    root = tmp_path_factory.mktemp("browser")
    better = load_run(make_run(root / "before", tuple(replace(each, findings=()) for each in EVERY_VERDICT[:2])))
    directory = make_run(root / "run", EVERY_VERDICT)
    write_all(against(load_run(directory), of_results(results(better))), directory)
    return directory


def probed(page: Path, profile: Path, **options: Any) -> dict[str, Any]:
    """The findings of the probe in a copy of the page that may run it."""
    found: dict[str, Any] = told(page, PROBE, profile, **options)
    return found


def test_the_page_says_nothing_on_the_console(run: Path, tmp_path: Path) -> None:
    """Opened from a disk, it causes no error and no warning."""
    assert visit((run / "report.html").as_uri(), tmp_path / "profile").console == ()


def test_without_any_style_the_page_is_complete_and_ordered(run: Path, tmp_path: Path) -> None:
    """Under the policy of Jenkins only the inline style sheet is refused; text, order, charts and links stay."""
    with served(run, JENKINS) as address:
        seen = visit(f"{address}/report.html", tmp_path / "profile")
    assert len(seen.console) == 1
    assert "inline style" in seen.console[0]
    text = seen.dom
    assert not re.search(r"\sstyle=|<script|data:", text)
    order = [text.index(f'id="{name}"') for name in ("change", "scorecards", "scenarios", "controls", "requirements")]
    assert order == sorted(order)
    assert text.index("NO-GO") < order[0]
    # No shape depends on styles: each has its own colour.
    for tag in ("rect", "path", "line"):
        shapes = re.findall(rf"<{tag} [^>]*>", text)
        assert shapes
        assert all("fill=" in each or "stroke=" in each for each in shapes)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast_and_every_part_a_name(run: Path, tmp_path: Path, dark: bool) -> None:
    """Contrast is 4.5:1 in light and dark, charts and header cells are named, links can be reached with the keyboard."""
    found = probed(run / "report.html", tmp_path / "profile", dark=dark)
    assert found["dark"] is dark
    assert found["texts"] > 500
    assert found["low"] == []
    assert found["unnamed"] == 0


@pytest.mark.parametrize("width", [360, 1280, 1920])
def test_no_width_scrolls_the_page_sideways(run: Path, tmp_path: Path, width: int) -> None:
    """Only tables and charts scroll, each in its own box, on a telephone and on a wide screen."""
    assert probed(run / "report.html", tmp_path / "profile", width=width)["wide"] is False


def test_a_printed_page_is_as_wide_as_its_paper(run: Path, tmp_path: Path) -> None:
    """On A4 nothing scrolls: every table fits, folded parts are open, every text has contrast."""
    text = (run / "report.html").read_text(encoding="utf-8")
    paper = tmp_path / "paper.html"
    paper.write_text(text.replace("@media print", "@media all"), encoding="utf-8")
    assert "@media all" in paper.read_text(encoding="utf-8")
    folded = "document.querySelector('details.body > dl').getClientRects().length"
    script = f"onload = () => document.title = 'FOUND' + {folded}"
    assert told(paper, script, tmp_path / "first", width=A4) > 0
    found = probed(paper, tmp_path / "second", width=A4)
    assert found["wide"] is False
    assert found["low"] == []


def test_hostile_values_do_not_run(tmp_path: Path) -> None:
    """A script in any field from outside neither runs nor writes to the console."""
    script = (
        '</title></style></script><script>document.title="OWNED"</script><img src=x onerror="document.title=\'OWNED\'">'
    )
    _, directory = hostile_run(tmp_path, script)
    seen = visit((directory / "report.html").as_uri(), tmp_path / "profile")
    title = re.search(r"<title>(.*?)</title>", seen.dom, re.DOTALL)
    assert title is not None
    assert title[1] != "OWNED"
    assert "<img" not in seen.dom
    assert seen.console == ()


def test_a_deep_link_opens_a_folded_family(run: Path, tmp_path: Path) -> None:
    """`#2PC-01` leads into a family that is folded because it is untested."""
    opened = "document.getElementById('2PC-01').closest('details').open"
    script = f"onload = () => document.title = 'FOUND' + {opened}"
    assert told(run / "report.html", script, tmp_path / "profile", fragment="#2PC-01") is True


@pytest.mark.parametrize("fragment", ["", f"#{FAILED.key}"])
def test_a_verdict_can_be_hidden_and_a_link_still_leads_to_what_is_hidden(
    run: Path, tmp_path: Path, fragment: str
) -> None:
    """A verdict can be hidden without a script: its rows and sections vanish, all others and the linked one stay."""
    script = """
        const count = (verdict) => [...document.querySelectorAll(`[data-verdict=${verdict}]`)]
            .filter((e) => e.getClientRects().length).length;
        onload = () => {
            const before = ["fail", "pass"].map(count);
            document.getElementById("show-fail").click();
            document.title = "FOUND" + JSON.stringify([before, ["fail", "pass"].map(count)]);
        };
    """
    before, after = told(run / "report.html", script, tmp_path / "profile", fragment=fragment)
    assert before[0] > 3
    assert after == [1 if fragment else 0, before[1]]
