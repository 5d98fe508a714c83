"""The table of brokers of several makes: what a cell says, which subjects are tried, and what a failed start leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.matrix_run import MatrixRunError
from runner.protocol import implementations as command
from runner.protocol.implementations import MATRIX, Implementation, main, perform, render
from verification.vocabulary.verdict import ExitCode


def decided(requirement: str, verdict: str | None, *cases: tuple[str, str]) -> dict[str, Any]:
    """A requirement of `results.json`, with the verdicts and reasons of its cases."""
    by = [{"id": f"case-{number}", "verdict": each, "reason": why} for number, (each, why) in enumerate(cases)]
    return {"id": requirement, "verdict": verdict, "decided_by": by}


RESULTS = [
    decided("IDEMP-01", "PASS", ("PASS", "2 of 2 claims hold")),
    decided("IDEMP-02", "FAIL", ("PASS", ""), ("FAIL", "the code of onceproof-0123456789ab-1-0: observed 'A|B'")),
    decided("TXN-01", "NOT_APPLICABLE", ("NOT_APPLICABLE", "not implemented: it does not offer EndTxn")),
    decided("TXN-02", "NOT_APPLICABLE", ("NOT_APPLICABLE", "it needs 3 brokers")),
    decided("TXN-03", "ERROR", ("ERROR", "IndexError: list index out of range")),
    decided("TXN-04", None),
]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each run from here on; every run ends with RESULTS. Files are in a directory of the test."""
    runs: list[list[str]] = []

    def run(name: str, arguments: list[str], *, within_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
        runs.append(arguments)
        line = {"commit": "c0ffee", "date": "2026-11-27", "exit_code": 1, "seconds": 90, "decision": "NO-GO"}
        return line, {"requirements": RESULTS}

    monkeypatch.setattr(command, "LINES", tmp_path / "implementations.jsonl")
    monkeypatch.setattr(command, "TABLE", tmp_path / "implementations.md")
    monkeypatch.setattr(command, "built", lambda _: Path("/cache/kfake"))
    monkeypatch.setattr("runner.matrix_run.perform", run)
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    return runs


def test_what_is_not_implemented_has_a_word_of_its_own(ran: list[list[str]]) -> None:
    """It is no failure, and neither is what was not tried or not decided."""
    line = perform(MATRIX[0])
    words = {name: each["word"] for name, each in line["requirements"].items()}
    assert list(words.values()) == ["passes", "**fails**", "not implemented", "not tried", "not decided", "not tried"]
    assert line["requirements"]["IDEMP-02"]["case"] == "case-1"
    assert ran == [["suites/protocol", "-p", "no:hypothesispytest", "--kafka=3.9.2", "--runtime=local"]]


def test_the_page_explains_failures_of_brokers_of_other_makes(ran: list[list[str]]) -> None:
    """Those of Kafka have their names elsewhere. Names of one run are not shown."""
    page = render([perform(Implementation(name="kfake", like="4.4.0")), perform(MATRIX[0])])
    assert page.index("| Kafka 3.9.2 | 3.9.2 | 3.9.2 | 1 | 1 | 1 | 1 | 2 |") < page.index("| kfake | v0.0.0-")
    assert "| `IDEMP-02` | **fails** | **fails** |" in page
    assert "TXN-02" not in page
    assert "| `IDEMP-02` | `case-1` | the code of 1-0: observed 'A\\|B' |" in page
    assert "Failures of Kafka" not in page


def test_results_are_kept_and_not_made_again(ran: list[list[str]]) -> None:
    """A broker of the user's own has a column next to the others, which it does not replace."""
    assert main(["--only", "kfake"]) == ExitCode.INCONCLUSIVE
    assert main([]) == ExitCode.CONFORMANT
    assert len(ran) == len(MATRIX)
    assert ran[0][-2:] == ["--broker-command", "/cache/kfake {port}"]
    assert main(["--broker-command", "./mine {port}", "--name", "mine", "--kafka", "4.3.1"]) == ExitCode.CONFORMANT
    assert ran[-1][3:] == ["--kafka=4.3.1", "--broker-command", "./mine {port}"]
    kept = command.LINES.read_text(encoding="utf-8").splitlines()
    assert [json.loads(each)["name"] for each in kept][-1] == "mine"
    assert "| mine |" in command.TABLE.read_text(encoding="utf-8")


def test_a_broker_that_does_not_start_has_no_column(ran: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of exit code 5 tried nothing."""
    line = {"exit_code": int(ExitCode.ENVIRONMENT)}
    monkeypatch.setattr("runner.matrix_run.perform", lambda *_, **__: (line, {"requirements": RESULTS}))
    with pytest.raises(MatrixRunError, match="kfake could not be tried"):
        perform(Implementation(name="kfake", like="4.4.0"))
    assert main(["--only", "kfake"]) == ExitCode.ENVIRONMENT
    assert not command.LINES.exists()


def test_a_broker_of_the_user_needs_a_name(ran: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """Without one it would have the column of another."""
    assert main(["--bootstrap", "kafka:9092"]) == ExitCode.USAGE
    assert "needs --name" in capsys.readouterr().err
    assert not ran
