"""Several runs become one report, and no given directory is dropped silently."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from reports import __main__ as command
from reports.comparing import baseline, results
from reports.comparing.compare import against
from reports.formats import summary, terminal
from reports.formats.write import write_all
from reports.loading.merge import merge
from reports.loading.run import BASELINE, load_run
from reports.model.errors import UnfitRunError
from reports.model.report import Report
from reports.model.run_record import Acceptance
from tests.support.paths import ROOT
from tests.support.plans import CONTROL, FAILED, SMOKE, Plan
from tests.support.run_directories import make_run, record
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

LATER = "20261122T090000Z"


def release(plan: Plan, version: str) -> Plan:
    """The same scenario on another release, a day later."""
    return replace(plan, release=version, started=LATER)


def pair(tmp_path: Path) -> tuple[Path, Path]:
    """4.2.1 passes where 4.3.1 fails."""
    passing = replace(FAILED, verdict=Verdict.PASS, findings=())
    new = make_run(tmp_path / "new", (SMOKE, FAILED, CONTROL))
    old = [release(each, "4.2.1") for each in (SMOKE, passing, CONTROL)]
    return make_run(tmp_path / "old", old, release="4.2.1", started=LATER), new


def merged(tmp_path: Path, *runs: Path) -> Report:
    """The merged report, written to `out`."""
    report = merge(runs, tmp_path / "out")
    write_all(report, tmp_path / "out")
    return report


def test_two_releases_become_one_report(tmp_path: Path) -> None:
    """The scenarios of both subjects have the name of their run, the worst decides, and every link leads to a file."""
    report = merged(tmp_path, *pair(tmp_path))
    assert [each.name for each in report.parts] == ["4.3.1-local", "4.2.1-local"]
    assert {each.key for each in report.scenarios} >= {f"{FAILED.key}@4.3.1-local", f"{FAILED.key}@4.2.1-local"}
    assert report.judgement.decision is Decision.NO_GO
    row = next(each for each in report.requirements if each.id == "TXN-25")
    assert {verdict for _, verdict, _ in row.decided_by} == {Verdict.PASS, Verdict.FAIL}
    assert all((report.origin / file.path).exists() for each in report.scenarios for file in each.evidence)
    body = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(body, json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8")))


def test_the_order_of_naming_changes_nothing(tmp_path: Path) -> None:
    """The same set of runs gives the same bytes in any order."""
    first, second = pair(tmp_path)
    names = ("report.html", "results.json", "junit.xml", "summary.md")
    write_all(merge((first, second), tmp_path / "a"), tmp_path / "a")
    write_all(merge((second, first), tmp_path / "b"), tmp_path / "b")
    assert [(tmp_path / "a" / each).read_bytes() for each in names] == [
        (tmp_path / "b" / each).read_bytes() for each in names
    ]


def test_facts_of_several_runs_are_named_once(tmp_path: Path) -> None:
    """A value that one run had joined with another is not repeated for the other run."""
    mixed = make_run(tmp_path / "mixed", (SMOKE,), machine={"processors": "2 / 4", "memory": "8 GB"})
    plain = make_run(tmp_path / "plain", (release(SMOKE, "4.2.1"),), machine={"processors": "4"}, started=LATER)
    assert merge((mixed, plain), tmp_path / "out").subject.host == (("memory", "8 GB"), ("processors", "2 / 4"))


@pytest.mark.parametrize("damage", ["missing", "foreign", "newer", "cut"])
def test_what_cannot_be_read_is_named_and_no_go_without_it(tmp_path: Path, damage: str) -> None:
    """A missing, foreign, newer or truncated directory is in the report by name, and the report is not a GO."""
    good = make_run(tmp_path / "good", (SMOKE, CONTROL))
    bad = tmp_path / "bad"
    if damage == "foreign":
        bad.mkdir()
    if damage in ("newer", "cut"):
        make_run(bad, [release(SMOKE, "4.4.0")], started=LATER)
        text = (bad / "run.json").read_text(encoding="utf-8")
        (bad / "run.json").write_text(
            text.replace('"format": 1', '"format": 2') if damage == "newer" else text[:80], encoding="utf-8"
        )
    report = merged(tmp_path, good, bad)
    assert report.judgement.exit_code is ExitCode.ENVIRONMENT
    assert any("bad" in each.directory for each in report.parts)
    assert report.problems
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert report.problems[0].text.split(";")[0].split("'")[0][:30] in page


def test_a_duplicate_counts_once_and_is_named(tmp_path: Path) -> None:
    """A copy, a repeated path and the directory of a scenario add nothing, and are noted as not counted."""
    run = make_run(tmp_path / "run", (SMOKE, CONTROL))
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (tmp_path / "latest").symlink_to(run)
    mailed = Path(shutil.copytree(run / "runs" / SMOKE.key, tmp_path / "mailed"))
    report = merged(tmp_path, run, copy, tmp_path / "latest", run / "runs" / SMOKE.key, mailed)
    assert len(report.scenarios) == len(report.controls) == 1
    assert [bool(each.name) for each in report.parts] == [True, False, False, False, False]
    assert all("counted once" in each.note for each in report.parts[1:])
    assert report.judgement.decision is Decision.GO


def test_a_copy_that_says_something_else_is_a_problem(tmp_path: Path) -> None:
    """Two verdicts on the same evidence cannot both be used."""
    run = make_run(tmp_path / "run", (SMOKE,))
    other = make_run(tmp_path / "other", (replace(SMOKE, verdict=Verdict.INCONCLUSIVE),))
    report = merged(tmp_path, run, other)
    assert any("disagree" in each.text for each in report.problems)


def test_what_a_run_lost_against_its_own_baseline_still_counts(tmp_path: Path) -> None:
    """A regression of one of the runs is not lost by merging."""
    first, second = pair(tmp_path)
    passing = make_run(tmp_path / "passing", (SMOKE, CONTROL, Plan(key="gone")))
    write_all(load_run(passing), passing)
    (second / BASELINE).write_bytes((passing / "results.json").read_bytes())
    accepted = (Acceptance(id="KB-16", reason="known"),)
    record([SMOKE, FAILED, CONTROL], accepted=accepted).write(second / "run.json")
    report = merged(tmp_path, first, second)
    assert report.judgement.exit_code is ExitCode.REGRESSION
    assert f"gone@{report.parts[0].name}" in report.judgement.why
    page, kept, junit = (
        (tmp_path / "out" / each).read_text(encoding="utf-8") for each in ("report.html", "results.json", "junit.xml")
    )
    jsonschema.validate(json.loads(kept), json.loads((ROOT / "docs" / "results.schema.json").read_text("utf-8")))
    assert "<failure" in junit
    told = (page, kept, junit, summary.render(report).replace("\\", ""), terminal.render(report))
    assert all(f"gone@{report.parts[0].name}" in each for each in told)
    assert not re.search("^Profile.* seed", summary.render(replace(report, seed=None)), re.MULTILINE), (
        "of which of them?"
    )
    table = page[page.index("compared with its baseline</h3>") : page.index("Hosts and commands")]
    assert f'href="#first-{FAILED.key}-{report.parts[0].name}"' in table


def test_a_waiver_that_ran_out_in_one_of_the_runs_is_told_apart(tmp_path: Path) -> None:
    """A waiver covers the findings of the earlier run and has expired in the later one, in any order."""
    waiver = (Acceptance(id="KB-16", reason="known", until="2026-11-21"),)
    earlier = make_run(tmp_path / "earlier", (SMOKE, FAILED), accepted=waiver)
    later = make_run(
        tmp_path / "later", [release(each, "4.2.1") for each in (SMOKE, FAILED)], accepted=waiver, started=LATER
    )
    rows = merged(tmp_path, later, earlier).acceptances
    assert {(each.expired, each.findings) for each in rows} == {(False, len(FAILED.findings)), (True, 0)}


def test_merged_reports_are_compared_run_by_run(tmp_path: Path) -> None:
    """A release that has always failed does not hide that another one has begun to fail in the same way."""
    passing = replace(FAILED, verdict=Verdict.PASS, findings=())
    old = make_run(tmp_path / "old", [release(FAILED, "4.2.1")], release="4.2.1", started=LATER)
    before = merge((old, make_run(tmp_path / "a", [passing])), tmp_path / "out")
    now = merge((old, make_run(tmp_path / "b", [FAILED])), tmp_path / "out")
    comparison = against(now, baseline.of_results(json.loads(results.dumps(before)))).comparison
    assert comparison is not None
    assert [each.id for each in comparison.regressions] == [f"{FAILED.key}@4.3.1-local"]


def test_nothing_that_can_be_read_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only a set without any run is refused, with one sentence."""
    with pytest.raises(UnfitRunError):
        merge((tmp_path / "a", tmp_path / "b"), tmp_path / "out")
    assert command.main([str(tmp_path / "a"), str(tmp_path / "b")]) is ExitCode.USAGE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_merged_report_can_be_a_baseline_and_be_compared(tmp_path: Path) -> None:
    """Ids match without the name of the run: a later single run is compared with the worst of the merged ones."""
    first, second = pair(tmp_path)
    merged(tmp_path, first, second)
    before = baseline.read(tmp_path / "out")
    assert against(load_run(second), before).comparison.changes == ()  # type: ignore[union-attr]
    assert {each.kind.value for each in against(load_run(first), before).comparison.changes} == {"fixed"}  # type: ignore[union-attr]
    assert (
        command.main([str(first), str(second), "--out", str(tmp_path / "o"), "--baseline", str(tmp_path / "out")]) == 1
    )
