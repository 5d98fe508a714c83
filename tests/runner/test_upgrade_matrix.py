"""The matrix of upgrades: its paths, which results are as expected, what is run again, and the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.clusters.locks.releases import Release, default_release, supported_releases
from runner import upgrade_matrix as command
from runner.matrix_run import chosen, row_of
from runner.pytest_process import OverdueRunError
from runner.upgrade_matrix import MatrixPath, main, matrix, objections, outstanding, read, render
from runner.upgrades.path import UpgradePath
from verification.known_bugs.catalogue import load as load_known_bugs
from verification.known_bugs.settings import load as load_effects
from verification.vocabulary.verdict import Decision, ExitCode

GOOD = MatrixPath(source="4.1.2", target="4.2.1")
BAD = MatrixPath(source="4.1.2", target="4.2.0", decision="NO-GO", bugs=("KB-10",))


def line(
    path: MatrixPath = GOOD,
    *bugs: str,
    verdict: str = "PASS",
    decision: str = "GO",
    commit: str = "c0ffee",
    convicted: bool = True,
) -> dict[str, Any]:
    """The stored line of a path."""
    return {
        "name": path.name,
        "commit": commit,
        "date": "2026-01-02",
        "exit_code": 0,
        "seconds": 150,
        "decision": decision,
        "scenarios": [{"key": "a", "verdict": verdict, "convicted": None, "known_bugs": list(bugs)}],
        "controls": [{"key": "c", "verdict": "FAIL", "convicted": convicted, "known_bugs": [""]}],
    }


def test_the_paths_are_possible_and_cover_the_supported_releases() -> None:
    """At least twenty; every step from line 3, every adjacent pair of supported releases, and controls."""
    paths = matrix()
    own = {name.partition(": ")[2] for effect in load_effects() for name in effect.settings}
    assert len(paths) >= 20
    assert len({path.name for path in paths}) == len(paths)
    for path in paths:
        UpgradePath(source=Release.parse(path.source), target=Release.parse(path.target))
        assert path.decision in set(Decision)
        for name in (*path.bugs, *path.without):
            assert name in load_known_bugs() or name.partition("=")[0] in own
        assert path.why
    pairs = {(path.source, path.target) for path in paths}
    line_3, *line_4 = map(str, supported_releases())
    assert {(line_3, each) for each in line_4} <= pairs
    assert set(zip([line_3, *line_4], line_4, strict=False)) <= pairs
    assert sum(1 for source, target in pairs if source == target) >= 3
    assert str(default_release()) in {path.target for path in paths}


@pytest.mark.parametrize(
    ("path", "ran", "complaints"),
    [
        (GOOD, line(), []),
        (GOOD, line(GOOD, "KB-16", verdict="FAIL"), []),
        (GOOD, line(GOOD, verdict="FAIL"), ["a fails without a known bug"]),
        (GOOD, line(GOOD, "KB-16", "", verdict="FAIL"), ["a fails without a known bug"]),
        (
            GOOD,
            line(verdict="INCONCLUSIVE", decision="UNDECIDED"),
            ["it ended UNDECIDED and not GO", "a is INCONCLUSIVE"],
        ),
        (GOOD, line(verdict="ERROR"), ["a is ERROR"]),
        (GOOD, line(convicted=False), ["control c was not detected"]),
        (BAD, line(BAD, "KB-10", verdict="FAIL", decision="NO-GO"), []),
        (replace(GOOD, without=("KB-10",)), line(GOOD, "KB-10", verdict="FAIL"), ["KB-10 was found"]),
        (BAD, line(BAD), ["it ended GO and not NO-GO", "KB-10 was not found"]),
    ],
)
def test_a_path_must_end_as_expected(path: MatrixPath, ran: dict[str, Any], complaints: list[str]) -> None:
    """Decision and bugs of the data file; nothing undecided, unnamed or missed."""
    assert objections(path, ran) == complaints


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are run from here on, at commit c0ffee; files are in a directory of the test."""
    names: list[str] = []

    def run(path: MatrixPath) -> dict[str, Any]:
        names.append(path.name)
        return line(path, *path.bugs, verdict="FAIL" if path.bugs else "PASS", decision=path.decision)

    monkeypatch.setattr(command, "LINES", tmp_path / "upgrades.jsonl")
    monkeypatch.setattr(command, "TABLE", tmp_path / "upgrades.md")
    monkeypatch.setattr(command, "RECORD", tmp_path / "track-record.md")
    command.RECORD.write_text(f"# Before\n{command.BEGIN}\n{command.END}\nAfter\n", encoding="utf-8")
    monkeypatch.setattr(command, "perform", run)
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    return names


def test_a_matrix_goes_on_where_it_stopped(ran: list[str], tmp_path: Path) -> None:
    """Each path is run once; with `--rerun` again; the page is written after each."""
    assert main(["--paths", "4.1.2-to-4.2.1"]) == ExitCode.CONFORMANT
    assert ran == ["4.1.2-to-4.2.1-confluent-1"]
    assert main(["--paths", "4.1.2-to-4.2"]) == ExitCode.CONFORMANT
    assert ran[1:] == ["4.1.2-to-4.2.0-confluent-1", "4.1.2-to-4.2.0-java-1"]
    assert main(["--paths", "4.1.2-to-4.2.1", "--rerun"]) == ExitCode.CONFORMANT
    assert len(ran) == 4
    page = (tmp_path / "upgrades.md").read_text(encoding="utf-8")
    assert f"3 of {len(matrix())} paths were run." in page
    before, _, after = (tmp_path / "track-record.md").read_text(encoding="utf-8").partition("| KB-12 |")
    assert (
        "| 4.1.2 → 4.2.0, confluent: as expected, NO-GO<br>4.1.2 → 4.2.0, java: as expected, NO-GO<br>4.0.2" in before
    )
    assert "| 4.1.2 → 4.2.1, confluent: as expected, GO<br>4.0.2 → 4.2.1, confluent: not run yet |" in before
    assert after.endswith("After\n")


def test_what_has_an_answer_is_not_run_again(ran: list[str]) -> None:
    """A result as expected stays valid at any commit, another one only at its own."""
    path = chosen(matrix(), ["4.1.2-to-4.2.1"])

    def left(each: dict[str, Any]) -> int:
        command.LINES.write_text(json.dumps(each) + "\n", encoding="utf-8")
        return len(outstanding(read(), path, "c0ffee", rerun=False))

    assert len(outstanding(read(), path, "c0ffee", rerun=False)) == 1
    assert left(line(path[0], commit="0ld")) == 0
    assert left(line(path[0], verdict="ERROR")) == 0
    assert left(line(path[0], verdict="ERROR", commit="0ld")) == 1
    assert ran == []


def test_rendering_runs_nothing(ran: list[str], tmp_path: Path) -> None:
    """The page is written from the stored results alone."""
    assert main(["--render-only"]) == ExitCode.CONFORMANT
    assert ran == []
    assert "| not run yet |" in (tmp_path / "upgrades.md").read_text(encoding="utf-8")


def test_the_page_shows_what_was_not_expected() -> None:
    """A reader sees the complaint next to the decision."""
    path = next(each for each in matrix() if each.bugs)
    assert f"| NO-GO {path.bugs[0]} | **GO**: it ended GO and not NO-GO; {path.bugs[0]} was not found |" in render(
        [line(path)]
    )


def test_a_name_that_no_path_has_is_a_sentence(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the exit code of a wrong option, and an example."""
    assert main(["--paths", "9.9.9"]) == ExitCode.USAGE
    assert "No run has 9.9.9 in its name, such as 3.9.2-to-4.0.2-confluent-1." in capsys.readouterr().err
    assert ran == []


def test_a_path_that_hangs_is_no_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence and the exit code of the environment."""

    def hang(_: Sequence[str], *, within_s: float) -> int:
        raise OverdueRunError(f"The run did not end within {within_s:.0f} s.")

    monkeypatch.setattr(command, "LINES", tmp_path / "upgrades.jsonl")
    monkeypatch.setattr("runner.matrix_run.run_pytest", hang)
    assert main(["--paths", "4.1.2-to-4.2.1"]) == ExitCode.ENVIRONMENT
    assert "4.1.2-to-4.2.1-confluent-1 did not end within 1800 s" in capsys.readouterr().err


def test_a_setting_has_a_pair_of_paths_like_a_bug() -> None:
    """It is the name of the finding that it explains; the same path without it is the good one."""
    finding = {"known_bug": None, "setting": "segment.bytes=524288 of orders is accepted"}
    result = {"id": "a", "verdict": "FAIL", "findings": [finding, {"anomaly": "x"}], "seconds": {"actual": 1.0}}
    assert row_of(result)["known_bugs"] == ["segment.bytes=524288", ""]
    bad = next(path for path in matrix() if "segment.bytes=524288" in path.bugs)
    good = next(path for path in matrix() if "segment.bytes=524288" in path.without)
    assert (bad.source, bad.target) == (good.source, good.target)
    table = command.pairs([line(bad, *bad.bugs, verdict="FAIL", decision="NO-GO"), line(good)])
    (row,) = [each for each in table.splitlines() if each.startswith("| segment.bytes=524288 |")]
    assert row.count("as expected") == 2
