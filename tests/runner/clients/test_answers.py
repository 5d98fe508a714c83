"""The command `client-answers`: its answers, its page, and a client that says something untrue."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

from fixtures.clients.answers.table import Treatment, answers
from fixtures.clients.answers.trial import Attempt, Trial
from runner.clients import answers as command
from runner.clients.answers import main, render
from verification.vocabulary.verdict import ExitCode

CARELESS = shlex.join([sys.executable, "-m", "tests.fixtures.clients.careless_driver"])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "OUT", tmp_path)
    monkeypatch.setattr(command, "LINES", tmp_path / "lines.jsonl")
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")


def test_each_answer_stands_once_and_has_an_expected_treatment() -> None:
    """The table names codes of the protocol, for each request of a transaction."""
    assert [key for key, count in Counter(each.key for each in answers()).items() if count > 1] == []
    assert all(each.expected for each in answers())
    by_api = Counter(each.api for each in answers())
    assert list(by_api) == [
        "FindCoordinator",
        "InitProducerId",
        "AddPartitionsToTxn",
        "Produce",
        "EndTxn",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
    ]
    assert min(by_api.values()) >= 6
    since = {each.key: each.since for each in answers() if each.since}
    assert since == {"Produce/CONCURRENT_TRANSACTIONS": 12, "TxnOffsetCommit/STALE_MEMBER_EPOCH": 6}


def test_a_trial_that_broke_is_not_as_expected() -> None:
    """Neither before the answer was given nor after it; only a client that never asks has nothing to treat."""
    answer = answers()[0]
    assert Trial(answer=answer, absent="it sent no FindCoordinator").as_expected
    assert not Trial(answer=answer, problem="it failed before the answer was given").as_expected
    assert not Trial(
        answer=answer, asked=True, treatment=answer.expected[0], problem="no reader came to the end"
    ).as_expected
    assert Trial(answer=answer, asked=True, treatment=answer.expected[0]).as_expected


@pytest.mark.cluster
def test_a_client_that_sends_none_of_the_requests_tries_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The careless driver has no role copier, and only copiers send this request."""
    assert main(["--client-driver", CARELESS, "-k", "AddOffsetsToTxn/INVALID"]) == ExitCode.INCONCLUSIVE
    assert "nothing was tried" in capsys.readouterr().out


def trial(answer: str, treated: str, *untrue: str) -> dict[str, object]:
    return {"answer": answer, "treated": treated, "untrue": list(untrue)}


def test_the_page_shows_what_differs_and_what_is_untrue(tmp_path: Path) -> None:
    """A column per client; a cell that was not tried is empty."""
    said = "it called a transaction committed of whose 2 records 0 are"
    lines = [
        {
            "client": client,
            "library": f"{client} 1",
            "release": "4.3.1",
            "date": "2026-01-01",
            "trials": trials,
        }
        for client, trials in (
            ("b", [trial("EndTxn/INVALID_TXN_STATE", "retriable", said)]),
            ("a", [trial("EndTxn/INVALID_TXN_STATE", Treatment.FATAL)]),
        )
    ]
    render(lines)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| request | answer | expected | a 1 (4.3.1, 2026-01-01) | b 1 (4.3.1, 2026-01-01) |" in page
    assert "| EndTxn | INVALID_TXN_STATE | fatal | fatal | **retriable** |" in page
    assert f"- **b 1**, EndTxn/INVALID_TXN_STATE: {said}" in page
    assert "| answers after which it says something untrue | none | **1** |" in page


def test_situations_are_made_of_answers(tmp_path: Path) -> None:
    """Each name is that of an answer; several treatments are counted."""
    names = {each.name for each in answers()} | {each.key for each in answers()}
    assert {name for situation in command.SITUATIONS.values() for name in situation} <= names
    trials = [
        trial("EndTxn/NOT_COORDINATOR", "retriable"),
        trial("InitProducerId/NOT_COORDINATOR", "retriable"),
        trial("EndTxn/COORDINATOR_NOT_AVAILABLE", "fatal"),
    ]
    render([{"client": "a", "library": "a 1", "release": "4.3.1", "date": "2026-01-01", "trials": trials}])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| the coordinator moves | retriable 2 ×, **fatal** 1 × |" in page
    assert "| a newer instance has fenced it | not sent |" in page


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        ({}, "passes | 73 | 0 | 1"),
        ({"EndTxn/INVALID_TXN_STATE": "retriable"}, "**fails** | 72 | 1 | 1"),
        ({"EndTxn/INVALID_TXN_STATE": None}, "not decided | 72 | 0 | 1"),
        ({"EndTxn/connection ends before the answer": "fatal"}, "passes | 73 | 0 | 1"),
    ],
)
def test_every_code_decides_and_nothing_else(change: dict[str, str | None], cells: str, tmp_path: Path) -> None:
    """A code that the client's requests never met counts neither way."""
    treated = {each.key: str(each.expected[0]) for each in answers()} | {"EndTxn/PRODUCER_FENCED": "not sent"} | change
    trials = [trial(key, word) for key, word in treated.items() if word is not None]
    render([{"client": "a", "library": "a 1", "release": "4.3.1", "date": "2026-01-01", "trials": trials}])
    assert f"| a 1 | {cells} |" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_part_that_is_tried_again_replaces_that_part(tmp_path: Path) -> None:
    """Of the same library on the same release; others stay as they are."""
    before = {"library": "a 1", "release": "4.3.1", "trials": [trial("one", "fatal"), trial("two", "fatal")]}
    other = before | {"release": "4.4.0"}
    again = before | {"trials": [trial("two", "abortable"), trial("three", "fatal")]}
    merged = command._merged(again, [before, other])
    assert [each["answer"] for each in merged["trials"]] == ["one", "two", "three"]
    assert merged["trials"][1]["treated"] == "abortable"
    assert command._merged(other | {"library": "a 2"}, [before, other])["trials"] == other["trials"]


@pytest.mark.parametrize(
    ("stage", "aborted", "given_up"),
    [("produce", False, True), ("commit", False, False), ("commit", True, True)],
)
def test_a_transaction_is_given_up_before_its_commit_or_by_an_abort(stage: str, aborted: bool, given_up: bool) -> None:
    """After a failed commit its records may be committed, unless the library confirmed an abort."""
    done = {"error": {"name": "X", "fatal": False}, "stage": stage, "aborted": aborted}
    assert Attempt(process=1, operation=0, done=done).given_up is given_up


def test_an_unknown_client_or_answer_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is started."""
    for arguments, said in ((["-k", "Speed"], "-k Speed names no answer"), (["--client", "x"], "no client 'x'")):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == ExitCode.USAGE
        assert said in capsys.readouterr().err


@pytest.mark.cluster
def test_a_client_that_says_something_untrue_is_shown_up(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It calls a transaction committed that the coordinator refused to commit; a late answer deceives no client."""
    assert main(["--client-driver", CARELESS, "-k", "EndTxn/INVALID_TXN_STATE"]) == ExitCode.VIOLATION
    said = capsys.readouterr().out
    assert "DIFFERS" in said
    assert "it called a transaction committed of whose 2 records 0 are" in said
    assert "1 answers, 1 treated in another way than expected" in said
    assert not (tmp_path / "lines.jsonl").exists(), "a part of the answers is no result"
    assert main(["--client", "confluent", "-k", "EndTxn/answer"]) == ExitCode.CONFORMANT
    assert "as expected" in capsys.readouterr().out
