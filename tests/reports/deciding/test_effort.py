"""How much was tried behind a pass: seeds, faults, operations during them, and the narrowest floor."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema

from reports.deciding.effort import effort, effort_together
from reports.formats import html, summary, terminal
from reports.formats.glossary import GLOSSARY
from reports.formats.write import write_all
from reports.loading.run import load_run
from reports.model.report import ScenarioReport
from tests.support.paths import ROOT
from tests.support.plans import SMOKE
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import CoverageItem, Verdict


def scenario(*coverage: tuple[str, int, int]) -> ScenarioReport:
    """A scenario that passed, with floors: name, counted, needed."""
    items = tuple(CoverageItem(name=name, have=have, need=need, text="") for name, have, need in coverage)
    return ScenarioReport(key="a", scenario="a", claim="", verdict=Verdict.PASS, reason="", seed=7, coverage=items)


def test_the_narrowest_floor_is_the_one_with_the_least_share() -> None:
    """Floors such as one fault have no share; one that was missed is always named."""
    items = (("faults_confirmed", 1, 1), ("records", 11_000, 10_000), ("attempted_during", 28, 10))
    assert effort(scenario(*items)) == (
        "seed 7; 28 operations during faults (10 needed); "
        "closest to its minimum: 11\u202f000 records, 10\u202f000 needed"
    )
    assert "closest to its minimum: 0 faults_confirmed, 1 needed" in effort(
        scenario(("faults_confirmed", 0, 1), *items[1:])
    )
    assert effort(scenario()) == "seed 7"


def test_seeds_and_faults_of_several_are_together(tmp_path: Path) -> None:
    """Seeds are named once each; scenarios without a fault add none."""
    report = load_run(make_run(tmp_path, [SMOKE, replace(SMOKE, key="b"), replace(SMOKE, key="c", seed=9)]))
    assert effort_together(report.scenarios) == "seeds 7, 9; 3 faults, 540 operations during them"
    assert effort_together([scenario()]) == "seed 7"
    assert effort_together(()) == ""


def test_the_effort_stands_next_to_a_pass(tmp_path: Path) -> None:
    """In the table of scenarios of the page and of the summary."""
    run = make_run(tmp_path, [SMOKE])
    report = load_run(run)
    said = effort(report.scenarios[0])
    assert "1 of 1 fault confirmed; 180 operations during faults (50 needed)" in said
    assert said in html.render(report, run)
    assert "180 operations during faults" in summary.render(report)


def test_the_page_names_the_program_and_explains_its_words(tmp_path: Path) -> None:
    """Version and commit are next to the command; a dozen words are one click away, each once."""
    run = make_run(tmp_path, [SMOKE], suite="Onceproof 0.1.0, commit abc1234")
    page = html.render(load_run(run), run)
    assert page.index("Onceproof 0.1.0, commit abc1234") < page.index("Repeat this run")
    assert page.index('href="#words"') < page.index('id="words"')
    words = [word for word, _ in GLOSSARY]
    assert len(set(words)) == len(words) in range(12, 24)
    assert all(f"<dt>{word}</dt>" in page for word in words)


def test_a_pass_of_at_least_once_reads_so_in_every_format(tmp_path: Path) -> None:
    """Its word has the claim, and the page and the summary count the duplicates; results.json has their number."""
    run = make_run(tmp_path, [replace(SMOKE, allowed=(("duplicate", 12),)), replace(SMOKE, key="b")])
    report = load_run(run)
    write_all(report, run)
    page, short = ((run / name).read_text(encoding="utf-8") for name in ("report.html", "summary.md"))
    said = "12 duplicates, which at-least-once allows"
    for text in (page, short, terminal.render(report)):
        assert text.count("PASS (at-least-once)") >= 1
    assert f"{said}; no other violation under" in page
    assert said in short
    body = json.loads((run / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(body, json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8")))
    assert [each.get("allowed") for each in body["scenarios"]] == [{"duplicate": 12}, None]


def test_what_was_not_tested_is_one_list_with_commands(tmp_path: Path) -> None:
    """Each untested requirement is in it once, with the command that decides it or the reason why none does."""
    run = make_run(tmp_path, [SMOKE])
    report = load_run(run)
    page = html.render(report, run)
    listed = page[page.index('id="untested"') :]
    listed = listed[: listed.index("</table>")]
    untested = [each.id for each in report.requirements if each.verdict is None]
    assert len(untested) > 100
    assert sorted(re.findall(r'<a href="#([A-Z0-9]+-[0-9]+)">', listed)) == sorted(untested)
    assert (
        "<code>tox -e pipelines -- --kafka 4.3.1 --profile nightly -k test_requests_before_the_transaction</code>"
        in listed
    )
    assert "Kafka ships no remote storage" in listed
    assert page.index('href="#untested"') < page.index('id="untested"') < page.index('id="family-TXN"')
    card = page[page.index("<h3>Producers survive</h3>") :]
    assert (
        "<code>tox -e conformance -- --kafka 4.3.1 --profile nightly -k test_late_duplicate</code>"
        in card[: card.index("</li>")]
    )
    few = tuple(each for each in report.requirements if each.id in ("ISO-24", "TXN-25"))
    assert "`ISO-24`: Kafka ships no remote storage" in summary.render(replace(report, requirements=few))
