"""The page of a trend in a real browser: as wide as the screen, readable, complete without styles, and inert."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports import trend as subject
from tests.reports.test_browser import probed
from tests.reports.trend.results import body, finding, plant, scenario
from tests.support.browser import JENKINS, needs_chromium, served, visit

pytestmark = [pytest.mark.browser, needs_chromium]

SCRIPT = (
    '</title></style></script><script>document.title="OWNED"</script><img src=x onerror="document.title=\'OWNED\'">'
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More nights than the page has columns, of two releases, with violations, flaky cases and hostile texts."""
    root = tmp_path_factory.mktemp("trend")
    for number in range(70):
        crash = scenario("crash", "FAIL", finding()) if number % 3 else scenario("crash")
        hostile = scenario(SCRIPT, "FAIL", finding(SCRIPT, SCRIPT))
        given = body(
            number,
            scenarios=[crash, hostile],
            requirements={"TXN-25": ("PASS", "FAIL", "ERROR")[number % 3], SCRIPT: "INCONCLUSIVE", "ISO-01": "PASS"},
            release="4.3.1" if number < 65 else SCRIPT,
            decision=("GO", "NO-GO", "UNDECIDED")[number % 3],
        )
        plant(root / "nights" / f"{number:02}", given)
    made = subject.of_paths([root / "nights", root / f"{SCRIPT[9:20]}"], root / "out")
    return subject.write(made, root / "out")


@pytest.mark.parametrize("width", [360, 1280, 1920])
def test_no_width_scrolls_the_page_sideways(page: Path, tmp_path: Path, width: int) -> None:
    """Sixty columns scroll in their own box."""
    assert probed(page, tmp_path / "profile", width=width)["wide"] is False


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast_and_every_part_a_name(page: Path, tmp_path: Path, dark: bool) -> None:
    """Contrast is 4.5:1 in light and dark."""
    found = probed(page, tmp_path / "profile", dark=dark)
    assert found["dark"] is dark
    assert found["texts"] > 500
    assert found["low"] == []
    assert found["unnamed"] == 0


def test_hostile_values_do_not_run(page: Path, tmp_path: Path) -> None:
    """A script in any field from outside neither runs nor writes to the console."""
    seen = visit(page.as_uri(), tmp_path / "profile")
    title = re.search(r"<title>(.*?)</title>", seen.dom, re.DOTALL)
    assert title is not None
    assert title[1] == "GO in the last of 70 runs"
    assert "<img" not in seen.dom
    assert seen.console == ()


def test_without_any_style_the_page_is_complete_and_ordered(page: Path, tmp_path: Path) -> None:
    """Under the policy of Jenkins only the inline style sheet is refused; text, order and charts stay."""
    with served(page.parent, JENKINS) as address:
        seen = visit(f"{address}/{page.name}", tmp_path / "profile")
    assert len(seen.console) == 1
    assert not re.search(r"\sstyle=|<script|data:", seen.dom)
    order = [seen.dom.index(f'id="{name}"') for name in ("violations", "flaky", "charts", "requirements", "runs")]
    assert order == sorted(order)
    for tag in ("path", "line"):
        shapes = re.findall(rf"<{tag} [^>]*>", seen.dom)
        assert shapes
        assert all("fill=" in each or "stroke=" in each for each in shapes)
