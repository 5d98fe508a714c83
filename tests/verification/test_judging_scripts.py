"""`python -m verification` on saved scripts gives the same judgement again, without Spark, and for every case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reports.__main__ import main as render
from tests.support.paths import ROOT
from tests.support.plans import SMOKE
from tests.support.protocol_run_directories import (
    EVERY_SCRIPT,
    INAPPLICABLE,
    PASSED,
    UNDECIDED,
    UNNAMED,
    VIOLATED,
    make_case,
    make_protocol_run,
)
from tests.support.run_directories import make_run
from verification.__main__ import main
from verification.evidence.run_directory import case_directories
from verification.scripts.judging import judge_scripts
from verification.scripts.script import Script, judge
from verification.vocabulary.verdict import ExitCode


def test_judging_again_says_what_was_said_first(tmp_path: Path) -> None:
    """From disk every script gets the verdict, the reason and the requirements that it got when it was performed."""
    sweep = make_protocol_run(tmp_path / "run", EVERY_SCRIPT)
    again = {each.directory.name: each.verdict for each in judge_scripts(case_directories(sweep))}
    assert again == {script.case: judge(script) for script in EVERY_SCRIPT}


@pytest.mark.parametrize(
    ("scripts", "code"),
    [
        ((PASSED,), ExitCode.CONFORMANT),
        ((PASSED, INAPPLICABLE), ExitCode.CONFORMANT),
        ((PASSED, UNDECIDED), ExitCode.INCONCLUSIVE),
        ((INAPPLICABLE,), ExitCode.INCONCLUSIVE),
        (EVERY_SCRIPT, ExitCode.VIOLATION),
    ],
)
def test_the_exit_code_is_that_of_the_table(tmp_path: Path, scripts: tuple[object, ...], code: ExitCode) -> None:
    """A violation wins; an undecided case is inconclusive, and so is a protocol run in which no case applied."""
    assert main([str(make_protocol_run(tmp_path / "run", scripts))]) == code  # type: ignore[arg-type]


@pytest.mark.parametrize("script", [VIOLATED, UNNAMED], ids=["a standing risk", "without a name"])
def test_a_known_bug_that_does_not_decide_counts_only_with_strict(tmp_path: Path, script: Script) -> None:
    """Every supported release has KB-05; a violation without a name decides always, also next to a standing risk."""
    run = str(make_protocol_run(tmp_path / "run", (PASSED, script)))
    assert main([run]) == (ExitCode.CONFORMANT if script is VIOLATED else ExitCode.VIOLATION)
    assert main([run, "--strict"]) == ExitCode.VIOLATION


def test_a_run_is_judged_and_rendered_by_the_rule_that_it_was_made_with(tmp_path: Path) -> None:
    """A run made with --strict needs no option, nor does one of its cases; a run next to it becomes strict too."""
    strict = make_protocol_run(tmp_path / "strict", (PASSED, VIOLATED), strict=True)
    other = make_protocol_run(tmp_path / "default", (PASSED, VIOLATED))
    case = strict / "runs" / VIOLATED.case
    for program in (main, render):
        assert [program([str(each)]) for each in (strict, case, other)] == [
            ExitCode.VIOLATION,
            ExitCode.VIOLATION,
            ExitCode.CONFORMANT,
        ]
    assert main([str(other), str(strict)]) == ExitCode.VIOLATION


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 1, "kind": "else", "strict": true}', '{"format": 1, "strict": 1}']
)
def test_a_run_record_that_is_cut_or_foreign_does_not_make_a_run_strict(tmp_path: Path, text: str) -> None:
    """The evidence is judged by the default rule; the report says what is wrong with the file."""
    run = make_protocol_run(tmp_path / "run", (PASSED, VIOLATED), strict=True)
    (run / "run.json").write_text(text, encoding="utf-8")
    assert main([str(run)]) == ExitCode.CONFORMANT
    assert render([str(run)]) == ExitCode.ENVIRONMENT


def test_a_sweep_is_judged_again_without_spark(tmp_path: Path) -> None:
    """Neither pyspark nor a Kafka client is imported, and every case has a line."""
    sweep = make_protocol_run(tmp_path / "run", EVERY_SCRIPT)
    code = (
        "import sys, verification.__main__ as m; r = m.main(sys.argv[1:]);"
        "bad = {'pyspark', 'confluent_kafka', 'docker', 'pyarrow'} & set(sys.modules);"
        "sys.exit(99 if bad else int(r))"
    )
    command = [sys.executable, "-c", code, str(sweep)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.VIOLATION
    assert len(done.stdout.splitlines()) == len(EVERY_SCRIPT)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}'])
def test_an_unfit_script_is_named_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """One sentence with the file, exit code 5, and a line for every other case; with a violation the code is still 1."""
    sweep = make_protocol_run(tmp_path / "run", (PASSED, UNDECIDED))
    path = sweep / "runs" / UNDECIDED.case / "script.json"
    path.write_text(text, encoding="utf-8")
    assert main([str(sweep)]) == ExitCode.ENVIRONMENT
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert sum(str(path) in line and line.startswith("ERROR") for line in lines) == 1
    assert any(line.startswith("PASS") and PASSED.case in line for line in lines)
    make_case(sweep / "runs" / UNNAMED.case, UNNAMED)
    assert main([str(sweep)]) == ExitCode.VIOLATION


def test_an_edited_script_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An observation that was changed after the protocol run does not turn a violation into a pass."""
    case = make_case(tmp_path / VIOLATED.case, VIOLATED)
    path = case / "script.json"
    assert main([str(case), "--strict"]) == ExitCode.VIOLATION
    edited = path.read_text(encoding="utf-8").replace('"observed": "NONE (0)"', '"observed": "x"')
    path.write_text(edited, encoding="utf-8")
    assert main([str(case)]) == ExitCode.ENVIRONMENT
    assert "was changed after it was written" in capsys.readouterr().out


def test_scripts_and_scenarios_are_judged_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run, a protocol run and a case in one command; here with the reference judge, which finds the planted run unfit."""
    run = make_run(tmp_path / "run", (SMOKE,))
    sweep = make_protocol_run(tmp_path / "sweep", (PASSED,))
    case = make_case(tmp_path / "mailed", UNDECIDED)
    assert main(["--reference", str(run), str(sweep), str(case)]) == ExitCode.ENVIRONMENT
    printed = capsys.readouterr().out
    for name in (SMOKE.key, PASSED.case, UNDECIDED.case):
        assert name in printed


def test_a_directory_of_both_kinds_is_read_as_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cases and scenarios in the same runs/ are all found."""
    run = make_run(tmp_path / "run", (SMOKE,))
    make_case(run / "runs" / PASSED.case, PASSED)
    assert main(["--reference", str(run)]) == ExitCode.ENVIRONMENT
    printed = capsys.readouterr().out
    assert SMOKE.key in printed
    assert PASSED.case in printed


def test_a_path_that_holds_nothing_is_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence names the files that are missing."""
    assert main([str(tmp_path)]) == ExitCode.USAGE
    assert "no script.json" in capsys.readouterr().err
