"""The command `client-contract`: its lines and exit codes, with small programs that are no drivers, or bad ones."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from fixtures.clients import abilities
from fixtures.clients.abilities import ask
from fixtures.clients.contract.rule import ContractBench
from fixtures.clients.mock_cluster import MockCluster
from runner.clients import contract
from runner.clients.contract import RULES, main, try_rules
from verification.vocabulary.verdict import ExitCode

READY = {
    "event": "ready",
    "driver_protocol": 1,
    "library": "mine 1",
    "roles": ["producer", "reader"],
    "sync_points": {},
    "protocol": {},
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "OUT", tmp_path)


def writing(line: object) -> str:
    """The command of a program that writes one line and waits."""
    program = f"import sys; print({json.dumps(line)!r}, flush=True); sys.stdin.read()"
    return shlex.join([sys.executable, "-c", program])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("./no-such-client --fast", "There is no program './no-such-client'"),
        ("'unbalanced", "cannot be read"),
        ("''", "There is no program ''"),
        ("  ", "The command of the driver is empty."),
    ],
)
def test_a_program_that_is_not_there_is_a_usage_error(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 4, one sentence, before anything is fetched."""
    with pytest.raises(SystemExit) as ended:
        main(["--command", command])
    assert ended.value.code == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_an_unknown_rule_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence lists the rules."""
    with pytest.raises(SystemExit) as ended:
        main(["--command", "true", "-k", "speed"])
    assert ended.value.code == ExitCode.USAGE
    assert "names no rule; there are init, transaction-commit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh -c 'echo out of order >&2; exit 3'", "ended with exit code 3. Its last lines:\nout of order"),
        (shlex.join([sys.executable, "-c", "print('hello', flush=True); input()"]), "is not an event: 'hello'"),
        (writing({"event": "done"}), "is 'done' instead of 'ready'"),
        (writing({"event": "ready", "library": "mine"}), "speaks driver protocol None"),
        (writing(READY), "is wrong: `roles[1]`: 'reader' is not one of"),
    ],
    ids=["ends", "no-json", "other-event", "no-version", "wrong-role"],
)
def test_a_program_that_is_no_driver_breaks_the_first_rule(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and one line; no cluster is started for it."""
    assert main(["--command", command]) == ExitCode.VIOLATION
    line = capsys.readouterr().out
    assert line.startswith("BROKEN")
    assert said in line


def test_a_silent_program_breaks_the_first_rule(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not waited for without a bound."""
    monkeypatch.setattr(abilities, "READY_S", 0.5)
    assert main(["--command", "sleep 60"]) == ExitCode.VIOLATION
    assert "did not say that it is ready within" in capsys.readouterr().out


def test_each_rule_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A driver that answers everything keeps some rules and breaks others; rules about absent roles do not apply."""
    command = (sys.executable, "-m", "tests.fixtures.clients.lying_driver")
    names = ("append", "unreachable-init", "held-before-commit", "close", "observed", "copy-transaction")
    with MockCluster.start(tmp_path / "mock") as mock:
        bench = ContractBench(
            command=command,
            bootstrap=mock.witness_bootstrap,
            create=mock.create,
            directory=tmp_path / "clients",
            reader=(),
            abilities=ask(command, tmp_path / "asked"),
        )
        broken = try_rules(bench, [rule for rule in RULES if rule.name in names])
    assert [rule.name for rule in broken] == ["held-before-commit", "unreachable-init"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(names)
    said = {name: next(line for line in lines if f" {name} " in line) for name in names}
    assert said["append"].startswith("kept")
    assert said["close"].startswith("kept")
    assert said["held-before-commit"].startswith("BROKEN")
    assert "instead of holding at before-commit it wrote 'deciding'" in said["held-before-commit"]
    assert said["observed"].endswith("the client has no role observer")
    assert said["copy-transaction"].endswith("the client has no role copier")
