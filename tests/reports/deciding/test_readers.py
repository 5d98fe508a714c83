"""A violation of a reader alone is a NO-GO in which every sentence names the reader and not the release."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from reports.comparing.results import results
from reports.deciding.answer import answer
from reports.deciding.impact import impact
from reports.deciding.readers import reader_of, title_of
from reports.deciding.reasons import reasons
from reports.formats import badge, html, summary, terminal
from reports.loading.run import load_run
from reports.model.report import Report
from tests.support.plans import FAILED, SMOKE, found
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Decision, Finding

GO = "kafka-go 0.4.51"


def shown(reader: str) -> Finding:
    """Records of aborted transactions that were shown, by that reader alone unless it is empty."""
    return replace(found("aborted-read"), reader=reader)


def of(directory: Path, *findings: Finding) -> Report:
    """The report of a run with these findings."""
    return load_run(make_run(directory, (SMOKE, replace(FAILED, findings=findings))))


def test_the_headline_the_impact_and_the_subject_name_the_reader(tmp_path: Path) -> None:
    """The decision stays NO-GO; no sentence says that the release shows aborted records."""
    report = of(tmp_path, shown(GO))
    said = answer(report)
    assert report.judgement.decision is Decision.NO_GO
    assert reader_of(report) == GO
    assert title_of(report) == f"{GO} as a reader, on Kafka 4.3.1"
    assert said.harm.startswith(f"{GO} as a reader can return records of aborted transactions")
    assert said.forward.startswith(f"Do not read with {GO}")
    assert "Use that release" not in said.todo
    assert "Stay on the release" not in said.todo
    assert f"{GO} as a reader alone shows aborted-read" in report.judgement.why
    assert f"{GO} as a reader received 3 records that it must not have" in impact(report)
    (reason,) = reasons(report)
    assert reason.text.startswith(f"Only {GO} as a reader shows it")
    (finding,) = (one for each in results(report)["scenarios"] for one in each["findings"])
    assert finding["reader"] == GO
    assert GO in json.loads(badge.dumps(report))["message"]
    for text in (html.render(report, tmp_path), summary.render(report), terminal.render(report)):
        assert f"{GO} as a reader" in text


def test_the_release_is_named_where_the_capture_shows_it_too(tmp_path: Path) -> None:
    """The same finding without a reader is the release's."""
    report = of(tmp_path, shown(""))
    assert reader_of(report) == ""
    assert title_of(report) == "Kafka 4.3.1"
    assert answer(report).harm.startswith("Kafka 4.3.1 can show records of aborted transactions")
    assert "Readers received 3 records that they must not have." in impact(report)
    assert "as a reader" not in html.render(report, tmp_path)


def test_next_to_a_violation_of_the_release_each_has_its_own_sentence(tmp_path: Path) -> None:
    """The title is the release, and the first sentences name both."""
    report = of(tmp_path, found("lost-write"), shown(GO))
    harm = answer(report).harm
    assert reader_of(report) == ""
    assert "Kafka 4.3.1 can lose records" in harm
    assert f"{GO} as a reader can return" in harm


def test_a_client_that_stood_still_is_named_and_not_the_release(tmp_path: Path) -> None:
    """Another client worked on the same cluster; next to another violation the release is named."""
    said = answer(of(tmp_path / "a", found("no-progress")))
    assert said.harm == "The client confluent on Kafka 4.3.1 can stop without an error while others work."
    assert said.forward.startswith("Do not rely on the client confluent on Kafka 4.3.1")
    assert said.todo.startswith("Find out why it stood still")
    assert answer(of(tmp_path / "b", found("no-progress"), found("lost-write"))).harm.startswith("Kafka 4.3.1 can")
    assert answer(of(tmp_path / "c", found("no-progress", known_bug="KB-16"))).harm.startswith("Kafka 4.3.1 can")
