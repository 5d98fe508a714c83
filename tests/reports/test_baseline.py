"""Comparison with a baseline: regressions, harmless changes, and vanished cases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from reports import __main__ as command
from reports.comparing import baseline, results
from reports.comparing.baseline import Outcomes
from reports.comparing.compare import against
from reports.formats import summary, terminal
from reports.formats.write import write_all
from reports.loading.run import BASELINE, load_run
from reports.model.change import ChangeKind
from reports.model.errors import UnfitBaselineError
from reports.model.report import Report
from reports.model.run_record import Acceptance
from tests.support.paths import ROOT
from tests.support.plans import BROKEN, CONTROL, FAILED, INAPPLICABLE, SMOKE, UNDECIDED, Plan, found
from tests.support.run_directories import make_run
from verification.vocabulary.verdict import Decision, ExitCode, Verdict

OTHER = Plan(key="coordinator-crash", requirements=("COORD-11",))
BOTH = (SMOKE, OTHER, CONTROL)


def outcomes(report: Report) -> Outcomes:
    """A report as a baseline, through its file format."""
    return baseline.of_results(json.loads(results.dumps(report)))


def compared(tmp_path: Path, before: tuple[Plan, ...], now: tuple[Plan, ...], **changes: object) -> Report:
    """A run of `now` compared with a baseline of `before`."""
    old = outcomes(load_run(make_run(tmp_path / "before", before)))
    return against(load_run(make_run(tmp_path / "now", now, **changes)), old)


def kinds(report: Report, id_: str) -> list[ChangeKind]:
    """The change of one case."""
    assert report.comparison is not None
    return [each.kind for each in report.comparison.changes if each.id == id_]


def test_an_unchanged_run_is_a_go(tmp_path: Path) -> None:
    """The same run compared with itself has no changes."""
    report = compared(tmp_path, BOTH, BOTH)
    assert report.comparison is not None
    assert report.comparison.changes == ()
    # Two scenarios, one control, two requirements.
    assert report.comparison.unchanged == 5
    assert report.judgement.decision is Decision.GO


@pytest.mark.parametrize(
    ("before", "now", "kind", "code"),
    [
        (Verdict.PASS, Verdict.FAIL, ChangeKind.REGRESSED, ExitCode.VIOLATION),
        (Verdict.INCONCLUSIVE, Verdict.FAIL, ChangeKind.REGRESSED, ExitCode.VIOLATION),
        (Verdict.PASS, Verdict.INCONCLUSIVE, ChangeKind.NEWLY_INCONCLUSIVE, ExitCode.INCONCLUSIVE),
        (Verdict.PASS, Verdict.ERROR, ChangeKind.NEWLY_INCONCLUSIVE, ExitCode.ENVIRONMENT),
        (Verdict.FAIL, Verdict.PASS, ChangeKind.FIXED, ExitCode.CONFORMANT),
        (Verdict.ERROR, Verdict.PASS, ChangeKind.FIXED, ExitCode.CONFORMANT),
        (Verdict.PASS, Verdict.NOT_APPLICABLE, ChangeKind.NO_LONGER_APPLICABLE, ExitCode.CONFORMANT),
        (Verdict.NOT_APPLICABLE, Verdict.PASS, ChangeKind.NEW, ExitCode.CONFORMANT),
    ],
)
def test_each_change_has_its_kind_and_its_code(
    tmp_path: Path, before: Verdict, now: Verdict, kind: ChangeKind, code: ExitCode
) -> None:
    """A case that fails and did not is regressed; a decided case that is now open is newly inconclusive."""
    old = replace(OTHER, verdict=before, findings=(found(),) if before is Verdict.FAIL else ())
    new = replace(OTHER, verdict=now, findings=(found(),) if now is Verdict.FAIL else ())
    report = compared(tmp_path, (SMOKE, old), (SMOKE, new))
    assert kinds(report, OTHER.key) == [kind]
    assert kinds(report, "COORD-11") == [kind]
    assert report.judgement.exit_code is code


def test_a_vanished_case_is_a_regression(tmp_path: Path) -> None:
    """A scenario or control that is missing now gives exit code 3 and NO-GO, and is named."""
    report = compared(tmp_path, BOTH, (SMOKE,))
    assert kinds(report, OTHER.key) == kinds(report, CONTROL.key) == kinds(report, "COORD-11") == [ChangeKind.VANISHED]
    assert report.judgement.exit_code is ExitCode.REGRESSION
    assert report.judgement.decision is Decision.NO_GO
    assert OTHER.key in report.judgement.why


def test_a_missed_control_is_a_regression(tmp_path: Path) -> None:
    """A control that was detected before and is missed now is a regression."""
    missed = replace(CONTROL, verdict=Verdict.PASS, convicted=False, findings=())
    report = compared(tmp_path, BOTH, (SMOKE, OTHER, missed))
    assert kinds(report, CONTROL.key) == [ChangeKind.REGRESSED]
    assert report.judgement.exit_code is ExitCode.REGRESSION


def test_an_accepted_violation_is_shown_and_does_not_count(tmp_path: Path) -> None:
    """An accepted violation is no regression, and is still in the list."""
    passing = replace(FAILED, verdict=Verdict.PASS, findings=())
    report = compared(tmp_path, (SMOKE, passing), (SMOKE, FAILED), accepted=(Acceptance(id="KB-16", reason="known"),))
    assert kinds(report, FAILED.key) == [ChangeKind.REGRESSED]
    assert report.judgement.exit_code is ExitCode.CONFORMANT


def test_a_second_anomaly_in_a_failing_scenario_is_a_regression(tmp_path: Path) -> None:
    """A scenario that failed before has regressed when it fails in a new way, but not when it shows the same bug."""
    worse = replace(FAILED, findings=(*FAILED.findings, found("lost-write")))
    report = compared(tmp_path, (FAILED,), (worse,))
    assert report.comparison is not None
    (change,) = report.comparison.changes
    assert change.kind is ChangeKind.REGRESSED
    assert "lost-write" in change.reason
    torn = replace(FAILED, findings=(found("torn-transaction", known_bug="KB-16"),))
    assert compared(tmp_path / "bug", (FAILED,), (torn,)).comparison.changes == ()  # type: ignore[union-attr]
    assert compared(tmp_path / "same", (FAILED,), (FAILED,)).comparison.changes == ()  # type: ignore[union-attr]


def seeded(plan: Plan, seed: int, **changes: object) -> Plan:
    """A plan as the directory of one seed; planted scenarios have client `confluent` and seed 7."""
    return replace(plan, key=f"{plan.key}-confluent-{seed}", seed=seed, **changes)  # type: ignore[arg-type]


def test_other_seeds_are_the_same_case(tmp_path: Path) -> None:
    """Where seeds differ, the worst results of a scenario are compared; where they agree, each seed separately."""
    bad = {"verdict": Verdict.FAIL, "findings": (found(),)}
    other = compared(tmp_path / "a", (seeded(OTHER, 7),), (seeded(OTHER, 8), seeded(OTHER, 9)))
    assert other.comparison is not None
    assert other.comparison.changes == ()
    worse = compared(tmp_path / "b", (seeded(OTHER, 7),), (seeded(OTHER, 8), seeded(OTHER, 9, **bad)))
    assert kinds(worse, "coordinator-crash-confluent-9") == [ChangeKind.REGRESSED]
    pair = (seeded(OTHER, 7), seeded(OTHER, 8, **bad))
    each = compared(tmp_path / "c", pair, (seeded(OTHER, 7, **bad), seeded(OTHER, 8)))
    assert kinds(each, "coordinator-crash-confluent-7") == [ChangeKind.REGRESSED]
    assert kinds(each, "coordinator-crash-confluent-8") == [ChangeKind.FIXED]


def test_a_seed_that_is_not_tried_any_more_vanished(tmp_path: Path) -> None:
    """A finding of another seed hides neither a new finding of the same seed nor a missing seed."""
    bad = {"verdict": Verdict.FAIL, "findings": (found(),)}
    report = compared(tmp_path, (seeded(OTHER, 7), seeded(OTHER, 8, **bad)), (seeded(OTHER, 7, **bad),))
    assert kinds(report, "coordinator-crash-confluent-7") == [ChangeKind.REGRESSED]
    assert kinds(report, "coordinator-crash-confluent-8") == [ChangeKind.VANISHED]


def test_every_output_format_names_the_changes(tmp_path: Path) -> None:
    """Page, summary, results and terminal name the regression, and the file still follows its schema."""
    report = compared(tmp_path, (SMOKE, OTHER, UNDECIDED, INAPPLICABLE), (SMOKE, BROKEN, replace(UNDECIDED)))
    write_all(report, tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.index('id="change"') < page.index('id="scenarios"')
    for text in (page, summary.render(report).replace("\\", ""), terminal.render(report)):
        assert "since the baseline" in text
        assert OTHER.key in text
        assert "vanished" in text
    body = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(body, json.loads((ROOT / "docs" / "results.schema.json").read_text(encoding="utf-8")))
    assert body["comparison"]["regressions"] == 2


def test_a_kept_baseline_is_compared_with_again(tmp_path: Path) -> None:
    """A run directory keeps its baseline; a truncated copy of it is a problem."""
    before = make_run(tmp_path / "before", BOTH)
    now = make_run(tmp_path / "now", (SMOKE, CONTROL))
    write_all(load_run(before), before)
    (now / BASELINE).write_bytes((before / "results.json").read_bytes())
    assert load_run(now).judgement.exit_code is ExitCode.REGRESSION
    (now / BASELINE).write_text("{", encoding="utf-8")
    assert load_run(now).judgement.exit_code is ExitCode.ENVIRONMENT


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 2, "scenarios": [], "requirements": []}'])
def test_a_baseline_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    """Missing, truncated, foreign and newer files are refused with one sentence, never compared as empty."""
    file = tmp_path / "results.json"
    if text:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UnfitBaselineError) as told:
        baseline.read(file)
    assert "\n" not in str(told.value)


def test_the_commands_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--baseline` and `diff` return 3 for a regression, 0 or the code of the run without one, 4 without a baseline."""
    before, now = make_run(tmp_path / "before", BOTH), make_run(tmp_path / "now", (SMOKE, CONTROL))
    assert command.main([str(before)]) is ExitCode.CONFORMANT
    assert command.main([str(now), "--baseline", str(before / "results.json")]) is ExitCode.REGRESSION
    assert command.main([str(now), "--baseline", str(tmp_path / "no.json")]) is ExitCode.USAGE
    capsys.readouterr()
    assert command.main(["diff", str(before), str(now), "--out", str(tmp_path / "out")]) is ExitCode.REGRESSION
    assert "vanished" in capsys.readouterr().out
    assert "REGRESSION" in (tmp_path / "out" / "diff.html").read_text(encoding="utf-8")
    assert command.main(["diff", str(now / "results.json"), str(before)]) is ExitCode.CONFORMANT
    assert command.main(["diff", str(now), str(tmp_path / "no.json")]) is ExitCode.USAGE


def test_a_directory_of_faces_alone_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The results.json in the directory of `--out` is enough for CI; a directory without one is refused."""
    run = make_run(tmp_path / "run", BOTH)
    assert command.main([str(run), "--out", str(tmp_path / "kept")]) is ExitCode.CONFORMANT
    assert command.main(["diff", str(tmp_path / "kept"), str(run)]) is ExitCode.CONFORMANT
    assert "0 regressed, 0 vanished" in capsys.readouterr().out
    (tmp_path / "kept" / "results.json").unlink()
    assert command.main(["diff", str(tmp_path / "kept"), str(run)]) is ExitCode.USAGE
