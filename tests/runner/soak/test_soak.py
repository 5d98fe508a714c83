"""The soak: which run is next, what nothing explains, which verdicts differ, the loads, and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from fixtures.errors import UsageError
from fixtures.waiting import await_until
from runner.config import ROOT
from runner.matrix_run import MatrixRunError
from runner.soak import __main__ as soak
from runner.soak.ledger import PROTOCOL, RUN, SoakRun, differing, line_of, next_run, runs, unexplained
from runner.soak.load import LOADS, under
from runner.soak.page import render
from verification.vocabulary.verdict import ExitCode

CELL = SoakRun(what=RUN, release="4.3.1", load="quiet", seed=1)


def result(key: str, verdict: str = "PASS", *bugs: str) -> dict[str, Any]:
    """A case of results.json."""
    return {"id": key, "verdict": verdict, "known": [{"id": bug, "named": True} for bug in bugs]}


def scenario(key: str, verdict: str = "PASS", *bugs: str) -> dict[str, Any]:
    """A scenario of results.json."""
    findings = [{"known_bug": bug} for bug in bugs]
    return {"id": key, "verdict": verdict, "findings": findings, "seconds": {"actual": 1.0}}


def line(*cases: dict[str, Any], scenarios: tuple[dict[str, Any], ...] = (), **over: Any) -> dict[str, Any]:
    """The line of a run with these results."""
    results = {"scenarios": list(scenarios), "controls": [], "cases": list(cases)}
    start = {"commit": "c0ffee", "date": "2026-01-02", "exit_code": 0, "seconds": 9, "decision": "GO"}
    return {**line_of(CELL, start, results), "directory": "soak-run-a", "load_average": 1.0, **over}


def test_the_run_that_was_made_least_often_is_next() -> None:
    """Every release meets a load before a run is repeated; protocol cases depend on no seed."""
    chosen = runs(RUN)
    assert len(chosen) == len(set(chosen)) == 2 * len(LOADS) * 3
    assert len(runs(PROTOCOL)) == len(LOADS) * 3
    assert next_run([], chosen) == chosen[0]
    made = [
        {**line(), **{name: getattr(each, name) for name in ("what", "release", "load", "seed")}} for each in chosen
    ]
    assert next_run(made[:1], chosen) == chosen[1]
    assert next_run(made, chosen) == chosen[0]
    assert next_run([*made, made[0]], chosen) == chosen[1]


def test_what_nothing_explains_is_a_defect_until_its_cause_is_noted() -> None:
    """A known bug explains a violation; an error, a violation without a name and a run without results need a cause."""
    assert not unexplained(line(result("a"), result("b", "FAIL", "KB-16"), exit_code=1, decision="NO-GO"))
    unnamed = line(result("a", "FAIL"), exit_code=1, decision="NO-GO")
    assert unexplained(unnamed) == ["a fails without a known bug of 4.3.1"]
    assert not unexplained({**unnamed, "explained": {"a": "an expected answer was not looked at"}})
    assert unexplained({"broke": "no results"}) == ["no results"]
    assert unexplained(line(result("a", "ERROR"), exit_code=5, decision="UNDECIDED"))


def test_only_equal_experiments_are_compared() -> None:
    """A case with others of its release and catalogue, a scenario with those of its seed, which its key has."""
    passed, failed = line(result("a"), result("b")), line(result("a", "FAIL", "KB-16"), result("b"))
    assert differing([passed, passed, failed]) == {("4.3.1", "a"): {"PASS": 2, "FAIL (KB-16)": 1}}
    assert not differing([passed, {**failed, "release": "4.4.0"}])
    assert not differing([line(result("b")), failed]), "the first run had no such case"
    assert not differing([failed, failed])
    one, other = line(scenarios=(scenario("s-1"),)), line(scenarios=(scenario("s-1", "FAIL", "KB-16"),))
    assert differing([one, other]) == {("4.3.1", "s-1"): {"PASS": 1, "FAIL (KB-16)": 1}}
    assert not differing([one, line(scenarios=(scenario("s-2", "FAIL", "KB-16"),)), {"broke": "no results"}])


@pytest.mark.parametrize("load", LOADS)
def test_a_load_lasts_as_long_as_its_run(load: str) -> None:
    """Hogs are children of the command and end with it; one processor is given back."""
    before, mine = os.sched_getaffinity(0), _children()
    with under(load):
        hogs, one_core = LOADS[load]
        assert len(_children() - mine) == hogs
        seen = subprocess.run(
            [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"], capture_output=True, check=True
        )
        assert int(seen.stdout) == (1 if one_core else len(before))
    assert os.sched_getaffinity(0) == before
    assert _children() == mine


def test_a_hog_ends_with_a_command_that_is_killed() -> None:
    """It notices that it was adopted."""
    hold = "from runner.soak.load import under\nwith under('2-hogs'): print('up', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        hogs = _children(process.pid)
        assert len(hogs) == LOADS["2-hogs"][0]
        process.kill()
    await_until(lambda: not any(map(_runs, hogs)), "the hogs to end", timeout_s=20.0)


def _runs(process: str) -> bool:
    """A process that has ended may still wait to be reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _children(of: int | None = None) -> set[str]:
    tasks = Path(f"/proc/{of or os.getpid()}/task").glob("*/children")
    return {child for each in tasks for child in each.read_text(encoding="ascii").split()}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of run directories; ledger and page are in a directory of the test."""
    for name, place in {"LINES": "soak.jsonl", "PAGE": "soak.md", "KEPT": "soak"}.items():
        monkeypatch.setattr(soak, name, tmp_path / place)
    return soak.KEPT


@pytest.mark.parametrize(
    ("case", "stays"), [(result("a"), False), (result("a", "FAIL"), True), (result("a", "FAIL", "KB-16"), False)]
)
def test_a_run_stays_on_disk_only_with_something_to_explain(
    case: dict[str, Any], stays: bool, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code of the command says the same, until the cause is noted."""

    def run(arguments: list[str], **_: Any) -> int:
        place = Path(arguments[-1].removeprefix("--run-dir="))
        place.mkdir(parents=True)
        code, decision = (0, "GO") if case["verdict"] == "PASS" else (1, "NO-GO")
        results = {"scenarios": [], "controls": [], "cases": [case], "decision": decision, "interrupted": False}
        (place / "results.json").write_text(json.dumps(results), encoding="utf-8")
        return code

    monkeypatch.setattr("runner.matrix_run.run_pytest", run)
    code = soak.main(["--hours", "0.0000001", "--only", "run-4.3.1-quiet-1"])
    assert bool(list(kept.iterdir())) is stays
    assert code == (ExitCode.VIOLATION if stays else ExitCode.CONFORMANT)
    assert len(soak.LINES.read_text(encoding="utf-8").splitlines()) == 1
    assert ("a fails without a known bug of 4.3.1" in capsys.readouterr().err) is stays
    if stays:
        assert soak.main(["--explain", "a", "the machine slept"]) == ExitCode.CONFORMANT
        assert "a: the machine slept" in soak.PAGE.read_text(encoding="utf-8")
        assert soak.main(["--explain", "a", "again"]) == ExitCode.USAGE


@pytest.mark.usefixtures("kept")
def test_a_machine_that_cannot_run_ends_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run without results is kept in the ledger, and several in a row end the command."""

    def broken(*_: Any, **__: Any) -> None:
        raise MatrixRunError("left no results")

    monkeypatch.setattr("runner.matrix_run.perform", broken)
    stored = soak.read()
    with pytest.raises(MatrixRunError, match="3 runs in a row"):
        soak.soak(stored, Namespace(hours=1.0, what=RUN, only=[]))
    assert [each["broke"] for each in stored.cells] == ["left no results"] * 3
    assert "3 verdicts without an explanation" in soak.PAGE.read_text(encoding="utf-8")
    with pytest.raises(UsageError):
        soak.soak(stored, Namespace(hours=1.0, what=RUN, only=["no-such"]))


def test_the_page_says_what_was_run_and_what_is_open() -> None:
    """Runs by load, sentences with their run, and experiments with several outcomes."""
    text = render([line(result("a")), line(result("a", "FAIL"), exit_code=1, decision="NO-GO", load_average=24.4)])
    assert "**2 runs, 1 verdicts without an explanation.**" in text
    assert "| run | 4.3.1 | quiet | 2 | 9 | 1 to 24 | 2 |" in text
    assert "- soak-run-4.3.1-quiet-1, 2026-01-02, commit c0ffee: a fails without a known bug of 4.3.1" in text
    assert "| 4.3.1 | a | 1 FAIL, 1 PASS |" in text
