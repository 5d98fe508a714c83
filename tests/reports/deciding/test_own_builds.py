"""A build of your own in every format: no reader takes it for a release, and its version and commit are named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema

from reports.comparing.results import results
from reports.deciding.own_builds import build_note
from reports.formats import html, summary, terminal
from reports.loading.run import load_run
from tests.support.paths import ROOT
from tests.support.plans import FAILED, SMOKE
from tests.support.run_directories import make_run

BUILD = "4.3.1-SNAPSHOT+own.0123abcd"
NOTE = (
    f"Kafka {BUILD} is a build of your own and no release (version 4.3.1-SNAPSHOT, commit c0ffee); "
    "known bugs are those of 4.3.1."
)


def test_every_format_names_the_build(tmp_path: Path) -> None:
    """Terminal, page, summary and results.json say it; a known bug keeps its name."""
    plans = [replace(each, release=BUILD) for each in (SMOKE, FAILED)]
    versions = {"kafka": BUILD, "kafka commit": "c0ffee"}
    report = load_run(make_run(tmp_path, plans, release=BUILD, versions=versions))
    for text in (terminal.render(report), html.render(report, tmp_path), summary.render(report)):
        assert NOTE in text.replace("\\", "").replace("`", "")
    body = json.loads(json.dumps(results(report)))
    assert body["subject"]["own_build"] == {"version": "4.3.1-SNAPSHOT", "commit": "c0ffee"}
    jsonschema.validate(body, json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8")))
    as_release = load_run(make_run(tmp_path / "release", [SMOKE, FAILED]))
    assert [each.applies for each in report.requirements] == [each.applies for each in as_release.requirements]
    assert build_note(as_release.subject) == ""
    assert "own_build" not in results(as_release)["subject"]
