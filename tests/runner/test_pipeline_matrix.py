"""The matrix of pipelines: which runs are made again, what counts as expected, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner import pipeline_matrix as command
from runner.pipeline_matrix import MATRIX, PipelineRun, main, objections, render
from verification.vocabulary.verdict import ExitCode


def row(scenario: str, verdict: str = "PASS", *, convicted: bool | None = None, **found: int) -> dict[str, Any]:
    return {
        "key": f"pipelines-{scenario}-confluent-1",
        "verdict": verdict,
        "convicted": convicted,
        "known_bugs": [""] * len(found),
        "seconds": 40.0,
        "scenario": scenario,
        "pipeline": f"copier-{scenario}",
        "claim": f"Claim of {scenario}.",
        "inputs": 900,
        "outputs": 912,
        "faults": ["KillInstance", "CrashBroker", "KillInstance"],
        "gap_s": 4.25 if verdict == "PASS" else None,
        "found": {name.replace("_", "-"): count for name, count in found.items()},
    }


#: A right way that fails by a known bug of the broker.
KNOWN = row("right", "FAIL", duplicate=32) | {"known_bugs": ["KB-16"]}
GOOD, BAD = row("right"), row("mistake", "FAIL", convicted=True, duplicate=12)


def line(*rows: dict[str, Any], run: PipelineRun = MATRIX[0], commit: str = "c0ffee") -> dict[str, Any]:
    return {
        "release": run.release,
        "seed": run.seed,
        "commit": commit,
        "date": "2026-11-25",
        "exit_code": 0,
        "seconds": 240,
        "decision": "GO",
        "rows": list(rows or (GOOD, BAD)),
    }


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PipelineRun]:
    """The runs that are made from here on, at commit c0ffee; files are in a directory of the test."""
    runs: list[PipelineRun] = []

    def run(which: PipelineRun, words: str = "") -> dict[str, Any]:
        runs.append(which)
        return line(row("new"), run=which) if words else line(run=which)

    monkeypatch.setattr(command, "LINES", tmp_path / "pipelines.jsonl")
    monkeypatch.setattr(command, "TABLE", tmp_path / "pipelines.md")
    monkeypatch.setattr(command, "perform", run)
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    return runs


@pytest.mark.parametrize(
    ("rows", "objection"),
    [
        ((GOOD, BAD), None),
        ((row("right", "FAIL", lost_write=1),), "pipelines-right-confluent-1 is FAIL"),
        ((KNOWN, BAD), None),
        ((KNOWN | {"known_bugs": ["KB-16", ""]},), "pipelines-right-confluent-1 is FAIL"),
        ((row("right", "INCONCLUSIVE"),), "pipelines-right-confluent-1 is INCONCLUSIVE"),
        ((GOOD, row("mistake", "PASS", convicted=False)), "pipelines-mistake-confluent-1 was not detected"),
    ],
    ids=[
        "as expected",
        "a right way fails",
        "by a known bug",
        "not by it alone",
        "nothing decided",
        "a mistake is missed",
    ],
)
def test_a_right_way_must_pass_and_a_mistake_be_detected(
    rows: tuple[dict[str, Any], ...], objection: str | None
) -> None:
    """Each other end is an objection that names the scenario."""
    assert objections(line(*rows)) == ([] if objection is None else [objection])


def test_the_page_has_a_column_for_each_run_and_counts_what_was_found() -> None:
    """A pipeline that a run did not have is not run there, and is no pass."""
    page = render([line(GOOD, BAD), line({**GOOD, "seconds": 43.0}, run=MATRIX[3])])
    begun = "Claim of {0}. | 2 KillInstance, 1 CrashBroker | {1} s |"
    mistake = f"| copier-mistake | {begun.format('mistake', 40)} detected: 12 duplicate; 900 in, 912 out | not run |"
    right = f"| copier-right | {begun.format('right', 42)}{' PASS; 900 in, 912 out; 4.2 s |' * 2}"
    assert mistake in page
    assert right in page
    assert f"2 of {len(MATRIX)} runs were made." in page
    assert "| FAIL: 32 duplicate (KB-16); 900 in, 912 out |" in render([line(KNOWN)])


def test_a_run_before_a_fault_was_added_says_so() -> None:
    """The faults of a row are those of the run that had the most; a right way that a run did not have is counted."""
    fewer = {**GOOD, "faults": ["KillInstance"]}
    page = render([line(GOOD, row("other"), BAD), line(fewer, run=MATRIX[1])])
    assert (
        "| 2 KillInstance, 1 CrashBroker | 40 s | PASS; 900 in, 912 out; 4.2 s | PASS; 900 in, 912 out; 4.2 s; " in page
    )
    assert "4.2 s; without 1 KillInstance; without 1 CrashBroker |" in page
    assert "| 4.3.1, seed 2 | as expected; 1 not run |" in page


def test_a_pass_of_at_least_once_counts_its_duplicates() -> None:
    """So that it does not read like one of exactly-once."""
    assert "| PASS; 12 duplicates, which at-least-once allows; 900 in, 912 out; 4.2 s |" in render(
        [line({**GOOD, "allowed": {"duplicate": 12}})]
    )


def test_a_run_that_is_as_expected_is_not_made_again(ran: list[PipelineRun]) -> None:
    """Also at another commit; one with an objection is made again there."""
    wrong = line(row("right", "FAIL"), run=MATRIX[1], commit="0ld")
    kept = [wrong, *(line(run=run, commit="0ld") for run in MATRIX if run != MATRIX[1])]
    command.LINES.write_text("".join(json.dumps(each) + "\n" for each in kept), encoding="utf-8")
    assert main([]) == ExitCode.CONFORMANT
    assert ran == [MATRIX[1]]
    assert command.TABLE.read_text(encoding="utf-8").startswith("# Pipelines")


def test_single_pipelines_are_added_to_a_stored_run(ran: list[PipelineRun], monkeypatch: pytest.MonkeyPatch) -> None:
    """They replace rows of their own names, and none of another scenario that still exists; both commits are named."""
    monkeypatch.setattr(command, "scenarios", lambda: {"new", "right"})
    rows = (row("new", "FAIL"), GOOD, row("renamed"))
    command.LINES.write_text(json.dumps(line(*rows, run=MATRIX[1], commit="0ld")) + "\n")
    main(["--only", MATRIX[1].name, "-k", "new"])
    assert ran == [MATRIX[1]]
    (stored,) = map(json.loads, command.LINES.read_text(encoding="utf-8").splitlines())
    assert [(each["scenario"], each["verdict"]) for each in stored["rows"]] == [("right", "PASS"), ("new", "PASS")]
    assert (stored["commit"], stored["seconds"]) == ("0ld, c0ffee", 480)


def test_stored_rows_are_of_scenarios_that_exist() -> None:
    """The names are found in the sources; a stored row of another name is of a scenario that was renamed."""
    stored = [json.loads(each) for each in command.LINES.read_text(encoding="utf-8").splitlines()]
    assert {each["scenario"] for line in stored for each in line["rows"]} <= command.scenarios()


def test_single_pipelines_are_no_run(ran: list[PipelineRun], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a stored run nothing is performed: its few rows would count as all of them."""
    assert main(["--only", MATRIX[1].name, "-k", "new"]) == ExitCode.USAGE
    assert ran == []
    assert "no stored run to which -k could add" in capsys.readouterr().err


def test_a_missing_run_and_an_objection_have_their_exit_codes(
    ran: list[PipelineRun], capsys: pytest.CaptureFixture[str]
) -> None:
    """2 as long as a run is missing; 1 for a right way that did not pass, whose scenario is named."""
    assert main(["--only", MATRIX[0].name]) == ExitCode.INCONCLUSIVE
    assert ran == [MATRIX[0]]
    command.LINES.write_text(json.dumps(line(row("right", "FAIL"))) + "\n", encoding="utf-8")
    assert main(["--only", MATRIX[0].name]) == ExitCode.VIOLATION
    assert f"{MATRIX[0].name}: pipelines-right-confluent-1 is FAIL" in capsys.readouterr().err


def test_a_name_that_no_run_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing would run, and that would look like success."""
    assert main(["--only", "seed 9"]) == ExitCode.USAGE
    assert f"No run has seed 9 in its name, such as {MATRIX[0].name}." in capsys.readouterr().err
