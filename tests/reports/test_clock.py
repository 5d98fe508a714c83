"""Start times: any text in the evidence is either a time or shown unchanged, and none stops a report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.clock import instant, later, moment
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run

#: The first and the last time of Python's calendar, in zones that put them outside of it in UTC.
BEFORE_ALL, AFTER_ALL = "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("20261122T131845Z", "2026-11-22 13:18 UTC"),
        ("2026-11-22T13:18:45+05:00", "2026-11-22 08:18 UTC"),
        ("2026-11-22T13:18:45", "2026-11-22 13:18 UTC"),
        ("yesterday", "yesterday"),
        ("", ""),
        (BEFORE_ALL, BEFORE_ALL),
        (AFTER_ALL, AFTER_ALL),
    ],
)
def test_a_moment_is_of_utc_and_what_is_none_stays(text: str, told: str) -> None:
    """Of any time zone."""
    assert moment(text) == told


def test_a_time_beyond_the_calendar_is_not_known() -> None:
    """A text whose distance exceeds every duration is no time either."""
    last = datetime.max.replace(tzinfo=UTC)
    assert later(last, -1_000) is not None
    assert later(last, 1_000) is None
    assert later(last, 10**30) is None
    assert instant(AFTER_ALL) is None


@pytest.mark.parametrize("anchor", [BEFORE_ALL, AFTER_ALL, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "noon"])
def test_no_date_ends_a_report(anchor: str, tmp_path: Path) -> None:
    """A run and a history at the end of the calendar appear in every output format, and the decision stays."""
    run = make_run(tmp_path / "run", (SMOKE, FAILED), started=anchor)
    for history in (run / "runs").glob("*/history.jsonl"):
        header, *lines = history.read_text(encoding="utf-8").splitlines()
        first = json.dumps({**json.loads(header), "wall_clock_anchor": anchor})
        history.write_text("\n".join([first, *lines]) + "\n", encoding="utf-8")
    report = load_run(run)
    write_all(report, run)
    assert int(report.judgement.exit_code) == 1
