"""The pages under external checkers: axe-core, the Nu Html Checker and a strict parser find nothing.

axe-core checks every page with everything unfolded, light and dark. Results that it cannot decide (`incomplete`) do not
count. Its rules of good practice are included. The content of charts is left out: thousands of shapes take half a
minute, and `page_probe.js` checks their texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from justhtml import JustHTML

from reports import diff, trend
from reports.comparing.results import dumps
from reports.formats import track_record_page
from reports.formats.write import write_all
from reports.loading.merge import merge
from reports.loading.run import BASELINE, load_run
from runner.regressions import matrix
from runner.regressions.track_record import reproductions
from tests.reports.trend.results import body, finding, plant, scenario
from tests.support.browser import needs_chromium, told
from tests.support.page_tools import AXE, faults_of, file_of
from tests.support.plans import EVERY_VERDICT, Plan
from tests.support.protocol_run_directories import EVERY_SCRIPT, make_protocol_run
from tests.support.rendered_runs import HOSTILE, hostile_run
from tests.support.run_directories import make_run

ASKED = """
onload = () => {
    document.querySelectorAll("details").forEach((each) => (each.open = true));
    axe.run({exclude: [["svg > *"]]}, {...OPTIONS, resultTypes: ["violations"]}).then((found) => {
        const told = found.violations.map((each) => [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200)]);
        document.title = "FOUND" + JSON.stringify({passes: found.passes.length, violations: told});
    });
};
"""
#: axe-core computes the background of every text: five seconds on a quiet core, a minute on a busy machine.
AXE_WITHIN_S = 240.0
#: Only these depend on colours and widths.
BY_LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """One page of each kind."""

    scenarios: Path
    hostile: Path
    protocol_run: Path
    merged: Path
    diff: Path
    track: Path
    trend: Path
    upgrade: Path

    @property
    def all(self) -> list[Path]:
        """All kinds of pages."""
        return [
            self.scenarios,
            self.hostile,
            self.protocol_run,
            self.merged,
            self.diff,
            self.track,
            self.trend,
            self.upgrade,
        ]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Runs with every verdict: compared, hostile, of protocol cases, merged and single."""
    root = tmp_path_factory.mktemp("judged")
    better = load_run(make_run(root / "before", tuple(replace(each, findings=()) for each in EVERY_VERDICT[:2])))
    run = make_run(root / "run", EVERY_VERDICT)
    protocol_run = make_protocol_run(root / "protocol_run", EVERY_SCRIPT)
    # Kept next to the evidence, so that the merged page has it too.
    (run / BASELINE).write_text(dumps(better), encoding="utf-8")
    write_all(load_run(run), run)
    write_all(load_run(protocol_run), protocol_run)
    write_all(merge([run, protocol_run, root / "missing"], root / "merged"), root / "merged")
    track = root / "track-record.html"
    track.write_text(track_record_page.render(matrix.as_track_record(matrix.read(), reproductions())), encoding="utf-8")
    return Pages(
        scenarios=run / "report.html",
        hostile=hostile_run(root / "hostile")[1] / "report.html",
        protocol_run=protocol_run / "report.html",
        merged=root / "merged" / "report.html",
        diff=diff.write(diff.of_paths(root / "before", run), root / "diff"),
        track=track,
        trend=trend_of(root),
        upgrade=upgrade_of(root),
    )


def upgrade_of(root: Path) -> Path:
    """The report of two upgrades with the figures of a baseline, one of them with hostile texts."""
    plans = (Plan(key="upgrade", upgrade=True), Plan(key="hostile", upgrade=True, noise=HOSTILE))
    run = make_run(root / "upgrade", plans)
    (run / BASELINE).write_text(dumps(load_run(run)), encoding="utf-8")
    return write_all(load_run(run), run).page


def trend_of(root: Path) -> Path:
    """A trend over the runs above, and planted ones with each state of a violation and with texts that are hostile."""
    bad, good = scenario("crash", "FAIL", finding()), scenario("crash")
    hostile = scenario("<b>", "FAIL", finding("<img src=x>", "&"))
    nights = (
        body(0, scenarios=[bad, hostile], profile="gone"),
        body(1, scenarios=[good], profile="gone"),
        body(2, scenarios=[bad], profile="open"),
        body(3, profile="open", partial="-k", decision="UNDECIDED"),
        body(4, scenarios=[good], profile="new", requirements={"TXN-25": "FAIL", "<i>": "NOT_APPLICABLE"}),
        body(5, scenarios=[bad], profile="new", release="<4>", requirements={"TXN-25": "ERROR"}),
        body(6, scenarios=[bad], profile="new"),
    )
    for number, each in enumerate(nights):
        plant(root / "nights" / f"night {number}", each)
    made = trend.of_paths([root, root / "nights", root / "missing"], root / "trend")
    return trend.write(made, root / "trend")


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, id="light"), pytest.param(True, id="dark-and-narrow", marks=pytest.mark.deep)],
)
@pytest.mark.parametrize(
    "kind",
    [
        "hostile",
        "merged",
        "diff",
        "track",
        "trend",
        "upgrade",
        # Both are part of the merged page.
        *(pytest.param(each, marks=pytest.mark.deep) for each in ("scenarios", "protocol_run")),
    ],
)
def test_an_accessibility_checker_finds_nothing(pages: Pages, kind: str, dark: bool, tmp_path: Path) -> None:
    """axe-core has no objection to a page with everything unfolded, and checked some rules."""
    options = {"runOnly": list(BY_LOOKS)} if dark else {}
    script = file_of(AXE).decode("utf-8") + ASKED.replace("OPTIONS", json.dumps(options))
    looks = {"dark": dark, "width": 360 if dark else 1280, "within_s": AXE_WITHIN_S}
    found = told(getattr(pages, kind), script, tmp_path / "profile", **looks)
    assert found["passes"] > (0 if dark else 20)
    assert found["violations"] == []


def test_a_validator_finds_nothing(pages: Pages, tmp_path: Path) -> None:
    """The Nu Html Checker has no error and no warning about any page, and finds a planted misplaced paragraph."""
    wrong = tmp_path / "wrong.html"
    text = pages.diff.read_text(encoding="utf-8")
    wrong.write_text(text.replace("</main>", "<ul><p>astray</p></ul></main>"), encoding="utf-8")
    (fault,) = faults_of([*pages.all, wrong], tmp_path)
    assert "wrong.html" in fault
    assert "not allowed as child of element “ul”" in fault


def test_every_page_is_parsed_without_an_error(pages: Pages) -> None:
    """A strict standard parser has no complaint; this needs no network."""
    for page in pages.all:
        assert JustHTML(page.read_text(encoding="utf-8"), collect_errors=True, sanitize=False).errors == [], page
