"""Bugs of clients, each in a bad version and not in a good one, by one answer in place of the broker's."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.clients import answers
from runner.clients.answers import main

pytestmark = [pytest.mark.cluster, pytest.mark.deep]

#: The commit fails without an outcome, and the abort that must follow it sends nothing: the next commit is one of both.
UNCONFIRMED = "EndTxn/UNKNOWN_SERVER_ERROR"
#: The abort after a refused commit of offsets sends nothing.
REFUSED = "TxnOffsetCommit/GROUP_AUTHORIZATION"


@pytest.mark.parametrize(
    ("client", "answer", "untrue"),
    [
        ("franz-go@1.21.5", UNCONFIRMED, "of which 2 records are committed"),
        ("franz-go@1.21.6", UNCONFIRMED, ""),
        # No version of aiokafka is known to be good; another client shows that the broker is not to blame.
        ("aiokafka@0.14.0", REFUSED, "outputs were committed twice"),
        ("kafka-python", REFUSED, ""),
    ],
)
def test_an_aborted_transaction_is_committed_by_bad_versions_only(
    client: str,
    answer: str,
    untrue: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the client said of its transaction is not in the log."""
    monkeypatch.setattr(answers, "OUT", tmp_path)
    monkeypatch.setattr(answers, "LINES", tmp_path / "lines.jsonl")
    monkeypatch.setattr(answers, "PAGE", tmp_path / "page.md")
    main(["--client", client, "-k", answer])
    said = capsys.readouterr().out
    assert "1 answers" in said
    assert ("committed" in said) is bool(untrue)
    assert untrue in said
