"""The table of clients: which are run, what a cell says, and that a client which was not tried has no column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.registry import CLIENTS
from runner.clients import matrix as command
from runner.clients.matrix import main, perform, render
from runner.matrix_run import MatrixRunError
from verification.vocabulary.verdict import ExitCode


def scenario(name: str, verdict: str, reason: str = "", *bugs: str) -> dict[str, Any]:
    findings = [{"known_bug": bug} for bug in bugs] if verdict == "FAIL" else []
    return {"scenario": name, "verdict": verdict, "reason": reason, "findings": findings}


SCENARIOS = [
    scenario("smoke/no-fault", "PASS", "every floor was reached"),
    scenario("coordinator/no-leader", "FAIL", "2 records hidden", "KB-16", "KB-16"),
    scenario("offsets/copier", "FAIL", "50 duplicates"),
    scenario("fencing/zombie", "NOT_APPLICABLE", "it has no sync point"),
]
REQUIREMENTS = [
    {"id": "TXN-16", "verdict": "PASS", "decided_by": [{"id": "a", "verdict": "PASS", "reason": ""}]},
    {"id": "GRP-04", "verdict": "FAIL", "decided_by": [{"id": "b", "verdict": "FAIL", "reason": "50 duplicates"}]},
]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each run from here on; files are in a directory of the test."""
    runs: list[list[str]] = []

    def run(name: str, arguments: list[str], *, within_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
        runs.append(arguments)
        client = arguments[-1].partition("=")[2]
        line = {"commit": "c0ffee", "date": "2026-11-27", "exit_code": 1, "seconds": 600, "decision": "NO-GO"}
        subject = {"clients": [{"name": client, "library": f"{client} 1.0"}, {"name": "wire", "library": "ours"}]}
        return line, {"subject": subject, "scenarios": SCENARIOS, "requirements": REQUIREMENTS}

    monkeypatch.setattr(command, "LINES", tmp_path / "clients.jsonl")
    monkeypatch.setattr(command, "TABLE", tmp_path / "clients.md")
    monkeypatch.setattr("runner.matrix_run.perform", run)
    monkeypatch.setattr("runner.checkout.commit", lambda: "c0ffee")
    return runs


def test_the_page_shows_scenarios_reasons_and_requirements(ran: list[list[str]]) -> None:
    """A failure that a known bug explains has its name; any other has its reason."""
    page = render([perform("sarama"), perform("confluent")])
    assert page.index("| confluent | confluent 1.0 | NO-GO | 1 | 1 |") < page.index("| sarama | sarama 1.0 | NO-GO |")
    assert "| coordinator/no-leader | **FAIL** KB-16 | **FAIL** KB-16 |" in page
    assert "| offsets/copier | **FAIL** | **FAIL** |" in page
    assert "| fencing/zombie | NOT APPLICABLE | NOT APPLICABLE |" in page
    reasons = page[page.index("### sarama: not PASS") : page.index("## TXN")]
    assert "| offsets/copier | 50 duplicates |" in reasons
    assert "no-leader" not in reasons
    assert "| `GRP-04` | **fails** | **fails** |" in page


def test_each_client_is_run_once_for_a_commit(ran: list[list[str]]) -> None:
    """A version that was asked for has a column of its own."""
    assert main(["--client", "kafka-python@2.2.4"]) == ExitCode.INCONCLUSIVE
    assert main([]) == ExitCode.CONFORMANT
    assert main([]) == ExitCode.CONFORMANT
    assert [each[-1] for each in ran] == ["--client=kafka-python@2.2.4", *(f"--client={name}" for name in CLIENTS)]
    assert "| kafka-python | kafka-python@2.2.4 |" in command.TABLE.read_text(encoding="utf-8")


def test_a_client_that_could_not_be_tried_has_no_column(ran: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has one that does not exist."""
    monkeypatch.setattr("runner.matrix_run.perform", lambda *_, **__: ({"exit_code": int(ExitCode.ENVIRONMENT)}, {}))
    with pytest.raises(MatrixRunError, match="sarama could not be tried"):
        perform("sarama")
    assert main(["--client", "nowhere"]) == ExitCode.USAGE
    assert not command.LINES.exists()
