"""The trend over 1,000 runs: each result is looked at once, in a few seconds, and the page stays below 2 MB."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reports import trend as subject
from reports.comparing import run_outcomes
from reports.formats.charts.runs import draw_durations
from reports.formats.trend_page import RUNS_SHOWN
from reports.loading import result_files
from tests.reports.trend.results import body, case, finding, plant, scenario
from tests.reports.trend.test_trend import written

RUNS, SCENARIOS, CASES, REQUIREMENTS = 1_000, 30, 300, 200
PAGE_MAX = 2_000_000
#: Two quiet cores take three seconds. A busy machine takes several times as long; a quadratic algorithm takes hours.
WITHIN_S = 60.0
#: Fields of a real file that a trend does not read.
IGNORED = {"claim": "Once the cluster has recovered, no transaction is visible in part.", "counts": {"log": 1200}}


def night(number: int) -> dict[str, Any]:
    """A night in which something is new, gone, flaky or untested."""
    scenarios = [
        scenario(f"scenario-{each}", "FAIL", finding(f"anomaly-{each % 7}"), seed=number % 3, **IGNORED)
        if (number * 7 + each) % 41 == 0
        else scenario(
            f"scenario-{each}", "INCONCLUSIVE" if (number + each) % 17 == 0 else "PASS", seed=number % 3, **IGNORED
        )
        for each in range(SCENARIOS)
    ]
    cases = [
        {**case(f"case-{each}", "FAIL" if (number + each) % 97 == 0 else "PASS"), **IGNORED} for each in range(CASES)
    ]
    words = ("PASS", "FAIL", "INCONCLUSIVE", "UNTESTED")
    return body(
        number,
        scenarios=scenarios,
        cases=cases,
        requirements={f"REQ-{each}": words[(number + each) % 4] for each in range(REQUIREMENTS)},
        release=f"4.{number // 250}.0",
    )


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand nights."""
    directory = tmp_path_factory.mktemp("nights")
    for number in range(RUNS):
        plant(directory / f"night-{number:04}", night(number))
    return directory


def test_a_thousand_runs_take_seconds_and_a_small_page(nights: Path, tmp_path: Path) -> None:
    """The page shows the last runs, the JSON all of them; neighbouring verdicts differ everywhere, the worst case."""
    began = time.monotonic()
    files = written([nights], tmp_path / "out")
    assert time.monotonic() - began < WITHIN_S
    assert len(files["trend.html"].encode()) < PAGE_MAX
    assert len(files["trend.md"].encode()) < 50_000
    made = json.loads(files["trend.json"])
    assert len(made["runs"]) == RUNS
    assert {len(each["verdicts"]) for each in made["requirements"]} == {RUNS}
    assert len(made["requirements"]) == REQUIREMENTS
    assert made["flaky"]
    assert {each["state"] for each in made["violations"]} >= {"new", "gone"}
    page = files["trend.html"]
    assert page.count('<tr id="run-') == RUNS_SHOWN
    assert f'href="#run-{RUNS - RUNS_SHOWN}"' not in page
    assert f"The last {RUNS_SHOWN} of {RUNS} runs" in page


def test_each_file_is_read_once_and_nothing_else(nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is decoded once, and by the fast decoder: the slow one is for files with faults."""
    read: list[Path] = []
    bytes_of = Path.read_bytes

    def counting(path: Path) -> bytes:
        read.append(path)
        return bytes_of(path)

    monkeypatch.setattr(Path, "read_bytes", counting)
    monkeypatch.setattr(run_outcomes, "_slowly", lambda file: pytest.fail(f"{file} was read by the slow decoder"))
    found, unread = result_files.read_all([nights], tmp_path)
    assert len(found) == RUNS
    assert not unread
    assert sorted(read) == sorted(nights.glob("*/results.json"))


def test_hostile_names_do_not_make_the_page_large(tmp_path: Path) -> None:
    """A hundred nights with long names everywhere, each character of which needs five bytes when escaped."""
    long = "&" * 2_000
    for number in range(100):
        given = body(
            number,
            scenarios=[
                scenario(f"{long}{each}", "FAIL", finding(f"{each}{long}", long)) for each in range(number, number + 30)
            ],
            requirements={f"{each}{long}": ("PASS", "INCONCLUSIVE")[(number + each) % 2] for each in range(600)},
            release=long,
            runtime=long,
            profile=long,
        )
        plant(tmp_path / "nights" / f"night-{number}-{'&' * 200}", given)
    (tmp_path / "bad").mkdir()
    for number in range(500):
        (tmp_path / "bad" / f"{number}{'&' * 200}.json").write_text("&", encoding="utf-8")
    files = written([tmp_path / "nights", *(tmp_path / "bad").iterdir()], tmp_path / "out")
    assert len(files["trend.html"].encode()) < PAGE_MAX
    assert len(files["trend.md"].encode()) < 50_000


def test_charts_of_a_single_run_and_of_runs_without_a_duration(tmp_path: Path) -> None:
    """The axis has a height even if every value is 0."""
    trend = subject.of_paths([plant(tmp_path / "run", body(duration_s=0.0))], tmp_path)
    drawing = draw_durations(trend.runs)
    assert drawing.paths[0].kind == "ok"
    assert [each.text for each in drawing.texts] == ["0", "0.5", "1", "s", "#1"]
