"""What a sweep of protocol cases ends with, and what an answer that never came is worth."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from suites.protocol.answers import Answer, NoAnswerError
from suites.protocol.plugin import ProtocolPlugin
from verification.script import ScriptVerdict
from verification.verdict import Verdict


def ended(planned: set[str], exitstatus: int = pytest.ExitCode.OK, **verdicts: Verdict) -> tuple[int, str]:
    """The exit code of a sweep with these verdicts, and its closing lines."""
    plugin = ProtocolPlugin(None, None)  # type: ignore[arg-type]
    plugin.planned = planned
    plugin.verdicts = {
        name: ScriptVerdict(case=name, verdict=verdict, reason="", violated=(), requirements=())
        for name, verdict in verdicts.items()
    }
    session = SimpleNamespace(exitstatus=exitstatus)
    plugin.pytest_sessionfinish(session, exitstatus)  # type: ignore[arg-type]
    said: list[str] = []
    plugin.pytest_terminal_summary(SimpleNamespace(write_line=said.append))  # type: ignore[arg-type]
    return session.exitstatus, "\n".join(said)


def test_every_planned_case_needs_a_verdict() -> None:
    """A case that has none, for whatever reason, is named and is an error, not a pass."""
    code, said = ended({"a", "b"}, a=Verdict.PASS)
    assert code == 5
    assert "without a verdict: b" in said
    assert ended({"a", "b"}, a=Verdict.FAIL)[0] == 1
    assert ended({"a"}, a=Verdict.PASS)[0] == 0


def test_a_sweep_that_decided_nothing_is_no_pass() -> None:
    """Nothing but cases that do not apply is inconclusive, as is no case at all."""
    assert ended({"a"}, a=Verdict.NOT_APPLICABLE)[0] == 2
    assert ended(set())[0] == 2
    assert ended({"a", "b"}, a=Verdict.NOT_APPLICABLE, b=Verdict.PASS)[0] == 0


def test_an_interruption_is_an_error_unless_something_was_proven() -> None:
    """What was proven before Ctrl-C stays proven."""
    assert ended({"a"}, pytest.ExitCode.INTERRUPTED, a=Verdict.PASS)[0] == 5
    assert ended({"a"}, pytest.ExitCode.INTERRUPTED, a=Verdict.FAIL)[0] == 1


def test_an_answer_that_never_came_decides_nothing() -> None:
    """Its code cannot be taken for a wrong one: a slow machine would refute requirements."""
    answer = Answer(exchange=3, api="EndTxn", version=4, body=None, error="waited 10 s")
    for look in (lambda: answer.code, lambda: answer.codes, lambda: answer["ErrorCode"]):
        with pytest.raises(NoAnswerError, match=r"answer 3 .* never came: waited 10 s"):
            look()


def test_codes_are_told_by_their_place() -> None:
    """An answer about partitions has a code for each; its own counts when something is wrong as a whole."""
    topics = [{"Name": "orders", "Partitions": [{"PartitionIndex": 0, "ErrorCode": 48}]}]
    told = Answer(exchange=1, api="TxnOffsetCommit", version=4, body={"ErrorCode": 0, "Topics": topics})
    assert (told.codes, told.code) == ({"orders-0": 48}, 48)
    assert Answer(exchange=1, api="EndTxn", version=4, body={"ErrorCode": 90}).codes == {"": 90}
