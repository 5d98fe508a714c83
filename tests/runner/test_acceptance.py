"""The acceptance matrix: which results are acceptable, which runs are made again, and the table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fixtures.clusters.locks.releases import default_release
from runner import acceptance
from runner.acceptance import MATRIX, AcceptanceRun, main, objections, outstanding, render
from runner.pytest_process import OverdueRunError
from verification.vocabulary.verdict import ExitCode

RUN = AcceptanceRun(release="4.3.1", runtime="local", client="confluent", seed=1)


def row(verdict: str, *known_bugs: str, convicted: bool | None = None) -> dict[str, Any]:
    """One scenario or control of a run."""
    return {"key": "a", "verdict": verdict, "convicted": convicted, "known_bugs": list(known_bugs), "seconds": 12.3}


def line(
    *scenarios: dict[str, Any],
    control: dict[str, Any] | None = None,
    cell: AcceptanceRun = RUN,
    commit: str = "c0ffee",
    end: tuple[int, str] = (1, "NO-GO"),
    cases: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The stored line of a run."""
    return {
        **asdict(cell),
        "commit": commit,
        "date": "2026-01-02",
        "exit_code": end[0],
        "seconds": 700,
        "decision": end[1],
        "scenarios": list(scenarios) or [row("PASS")],
        "controls": [control or row("FAIL", "", convicted=True)],
        "case_verdicts": dict(Counter(each["verdict"] for each in cases)),
        "cases": list(cases),
    }


@pytest.mark.parametrize(
    ("ran", "complaint"),
    [
        (line(), None),
        (line(row("FAIL", "KB-16")), None),
        (line(row("FAIL")), "a fails without a known bug of 4.3.1"),
        (line(row("FAIL", "KB-16", "")), "a fails without a known bug of 4.3.1"),
        (line(row("FAIL", "KB-06")), "a fails without a known bug of 4.3.1"),
        (line(row("INCONCLUSIVE")), "a is INCONCLUSIVE"),
        (line(row("ERROR")), "a is ERROR"),
        (line(control=row("PASS", convicted=False)), "control a was not detected"),
        (line(cases=[row("PASS"), row("FAIL", "KB-16")]), None),
        (line(cases=[row("FAIL")]), "a fails without a known bug of 4.3.1"),
        (line(cases=[row("ERROR")]), "a is ERROR"),
        (line(end=(0, "GO")), None),
        (line(end=(0, "UNDECIDED")), "the run ended with exit code 0 and UNDECIDED"),
        (line(end=(5, "UNDECIDED")), "the run ended with exit code 5 and UNDECIDED"),
        (line(end=(2, "UNDECIDED")), "the run ended with exit code 2 and UNDECIDED"),
    ],
)
def test_only_known_bugs_of_the_release_are_acceptable(ran: dict[str, Any], complaint: str | None) -> None:
    """A violation needs the name of a bug of the release; nothing may be undecided, and no control missed.

    A run that broke outside of any scenario shows it by its exit code alone.
    """
    assert objections(ran) == ([] if complaint is None else [complaint])


def test_a_name_that_no_bug_has_any_more_is_a_sentence() -> None:
    """A stored line may name a bug that was renamed since: it explains no violation, and does not end the command."""
    assert objections(line(row("FAIL", "KB-99"))) == [
        "a is named KB-99, which no known bug is called",
        "a fails without a known bug of 4.3.1",
    ]


def test_what_has_an_answer_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Acceptable results stay valid; others only at the commit of their run."""
    monkeypatch.setattr(acceptance, "LINES", tmp_path / "acceptance.jsonl")

    def left(*lines: dict[str, Any]) -> list[AcceptanceRun]:
        acceptance.LINES.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        return outstanding(acceptance.read(), "c0ffee")

    assert outstanding(acceptance.read(), "c0ffee") == list(MATRIX)
    rest = [run for run in MATRIX if run != RUN]
    assert left(line(commit="0ld")) == rest
    assert left(line(row("ERROR"))) == rest
    assert left(line(row("ERROR"), commit="0ld")) == list(MATRIX)


def test_the_table_says_which_rows_are_of_other_commits_and_which_are_missing() -> None:
    """A reader sees which rows are of other commits and which runs are missing."""
    other = MATRIX[1]
    text = render([line(commit="0ld"), line(cell=other)])
    assert "The newest row is of commit c0ffee. Of other commits: Kafka 4.3.1, local, confluent, seed 1 (0ld)." in text
    assert "Not run yet: Kafka 4.4.0, local, confluent, seed 2; " in text
    whole = render([line(cell=cell) for cell in MATRIX])
    assert "Of other commits" not in whole
    assert "Not run yet" not in whole


def test_the_default_release_is_in_the_matrix() -> None:
    """The release that the README's command tests has an acceptance run of its own."""
    assert str(default_release()) in {cell.release for cell in MATRIX}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[AcceptanceRun]:
    """The runs that are made from here on, at commit c0ffee; files are in a directory of the test."""
    cells: list[AcceptanceRun] = []

    def run(cell: AcceptanceRun) -> dict[str, Any]:
        cells.append(cell)
        return line(cell=cell)

    monkeypatch.setattr(acceptance, "LINES", tmp_path / "acceptance.jsonl")
    monkeypatch.setattr(acceptance, "TABLE", tmp_path / "acceptance.md")
    monkeypatch.setattr(acceptance, "perform", run)
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    return cells


def test_a_run_that_hangs_is_no_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with the exit code of the environment and a sentence; a traceback would end with the code of a violation."""

    def hang(_: Sequence[str], *, within_s: float) -> int:
        raise OverdueRunError(f"The run did not end within {within_s:.0f} s.")

    monkeypatch.setattr(acceptance, "LINES", tmp_path / "acceptance.jsonl")
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    monkeypatch.setattr("runner.matrix_run.run_pytest", hang)
    assert main(["--only", RUN.name]) == ExitCode.ENVIRONMENT
    assert f"{RUN.name} did not end within 3000 s" in capsys.readouterr().err


def test_running_one_cell_again_keeps_the_others(ran: list[AcceptanceRun]) -> None:
    """`--rerun --only X` replaces the result of X; the table still has every other cell."""
    kept = [line(cell=cell, commit="0ld") for cell in MATRIX]
    acceptance.LINES.write_text("".join(json.dumps(each) + "\n" for each in kept), encoding="utf-8")
    assert main(["--rerun", "--only", RUN.name]) == ExitCode.CONFORMANT
    assert ran == [RUN]
    lines = [json.loads(each) for each in acceptance.LINES.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == len(MATRIX)
    assert [each["commit"] for each in lines].count("0ld") == len(MATRIX) - 1


def test_rendering_runs_nothing(ran: list[AcceptanceRun]) -> None:
    """The page is written from the stored results alone."""
    acceptance.LINES.write_text(json.dumps(line(cases=[row("FAIL", "KB-16")])) + "\n", encoding="utf-8")
    assert main(["--render-only"]) == ExitCode.CONFORMANT
    assert ran == []
    assert "Protocol cases: 1 FAIL. Known bugs: KB-16." in acceptance.TABLE.read_text(encoding="utf-8")


def test_lines_are_written_as_a_whole(ran: list[AcceptanceRun], monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of a full disk the file has all earlier results, not half of them."""
    before = json.dumps(line(commit="0ld")) + "\n"
    acceptance.LINES.write_text(before, encoding="utf-8")
    write_bytes = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        write_bytes(self, content[:10])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        main(["--rerun", "--only", RUN.name])
    assert acceptance.LINES.read_text(encoding="utf-8") == before


def test_a_matrix_with_holes_is_not_accepted(ran: list[AcceptanceRun], capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is missing is named, and the exit code is inconclusive."""
    assert main(["--only", RUN.name]) == ExitCode.INCONCLUSIVE
    assert ran == [RUN]
    assert f"{MATRIX[1].name} was never run" in capsys.readouterr().err
    assert main([]) == ExitCode.CONFORMANT
    assert ran == list(MATRIX)


def test_the_table_names_bugs_of_subjects_and_not_of_controls() -> None:
    """The violation of a control was planted."""
    text = render([line(row("FAIL", "KB-16"), row("FAIL", ""))])
    assert "commit c0ffee, 2026-01-02: **NO-GO**, exit code 1, 700 s. a fails without a known bug of 4.3.1." in text
    assert "| a | FAIL | KB-16 | 12 |" in text
    assert "| a | FAIL | unnamed | 12 |" in text
    assert "| a | detected |  | 12 |" in text


def test_the_table_counts_protocol_cases_and_names_their_bugs() -> None:
    """Three hundred rows would hide the scenarios."""
    page = render([line(cases=[row("PASS"), row("PASS"), row("FAIL", "KB-31"), row("NOT_APPLICABLE")])])
    assert "Protocol cases: 2 PASS, 1 FAIL, 1 NOT_APPLICABLE. Known bugs: KB-31." in page
