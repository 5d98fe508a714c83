"""Cases that share an outage: each gets its own verdict, and is performed again alone if the outage fails."""

from __future__ import annotations

import io
import os
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from fixtures.clusters.errors import ClusterUnhealthyError
from runner.config import PROTOCOL
from runner.protocol.case_runner import CaseResult
from runner.protocol.experiments import _shares
from runner.protocol.toolkit.case import Needs
from runner.protocol.toolkit.outage import OutageEvent
from tests.support.protocol_run_directories import PASSED
from tests.support.protocol_testbed import bare_runner, case_of, plugin_of, served_runner
from verification.scripts.script import Relation, judge
from verification.vocabulary.verdict import Verdict
from wire.transaction_versions import TransactionVersion


@pytest.mark.parametrize("returns", [True, False])
def test_cases_that_share_an_outage_answer_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, returns: bool
) -> None:
    """Each has the verdict of its own script; a case that a failed outage broke is performed again, alone."""
    brokers: list[str] = []

    def outage() -> None:
        brokers.append("goes")
        if not returns and len(brokers) == 1:
            raise ClusterUnhealthyError("Broker 1 does not come back.")

    def play(observed: int, case: Any) -> None:
        case.on_outage(OutageEvent("outage", outage))
        case.recording.state("a late batch", observed, Relation.EQUALS, 48, required=False)

    runner = served_runner(tmp_path, monkeypatch)
    cases = [
        replace(
            case_of(PASSED),
            key=f"sees-{observed}",
            requirements=(),
            transaction_version=TransactionVersion.TV1,
            shares=("stopped",),
            play=partial(play, observed),
        )
        for observed in (48, 0)
    ]
    # One more case does not apply to this release, and takes no part.
    cases.append(replace(cases[0], key="other", needs=Needs(level=1), transaction_version=TransactionVersion.TV2))
    runner.release = "3.9.2"
    ended = runner.perform_together(cases)
    assert [each.verdict and each.verdict.verdict for each in ended] == [
        Verdict.PASS,
        Verdict.FAIL,
        Verdict.NOT_APPLICABLE,
    ]
    assert len(brokers) == (1 if returns else 3)
    assert [bool(each.before) for each in ended] == [not returns, not returns, False]
    if not returns:
        assert ended[0].before == "OutageError: outage: Broker 1 does not come back."


@pytest.mark.parametrize("shares", ["stopped", "crashed"])
def test_a_violation_is_not_performed_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: str) -> None:
    """A violation before a failed outage counts, even if it does not appear again; the others are performed again."""
    runner, seen, fates = served_runner(tmp_path, monkeypatch), iter((0, 48)), iter((False, True, True))

    def outage() -> None:
        if not next(fates):
            raise ClusterUnhealthyError("Broker 1 does not come back.")

    def violated(case: Any) -> None:
        case.recording.state("a late batch", next(seen), Relation.EQUALS, 48, required=False)
        case.on_outage(OutageEvent("outage", outage))

    def other(case: Any) -> None:
        case.on_outage(OutageEvent("outage", outage))
        case.recording.state("a late batch", 48, Relation.EQUALS, 48, required=False)

    cases = [
        replace(
            case_of(PASSED),
            key="a",
            transaction_version=TransactionVersion.TV1,
            shares=("stopped", "crashed"),
            play=violated,
        ),
        replace(case_of(PASSED), key="b", transaction_version=TransactionVersion.TV1, shares=(shares,), play=other),
    ]
    ended = runner.perform_together(cases)
    assert [each.verdict and each.verdict.verdict for each in ended] == [Verdict.FAIL, Verdict.PASS]
    assert [bool(each.before) for each in ended] == [False, True]
    assert next(seen) == 48, "it was performed again"


def test_a_cluster_that_does_not_start_changes_no_inapplicable_case(tmp_path: Path) -> None:
    """Of cases that share their outages, those that do not apply stay NOT APPLICABLE."""

    def lease(_: object) -> None:
        raise ClusterUnhealthyError("Broker 1 does not start.")

    runner = bare_runner(tmp_path, release="3.9.2")
    runner._pool = SimpleNamespace(lease=lease)  # type: ignore[assignment]
    cases = [
        replace(case_of(PASSED), key=key, transaction_version=TransactionVersion.TV1, shares=("stopped",))
        for key in "ab"
    ]
    ended = runner.perform_together([*cases, replace(cases[0], key="c", transaction_version=TransactionVersion.TV2)])
    assert [each.broke for each in ended] == ["Broker 1 does not start."] * 2 + [""]
    assert ended[2].verdict is not None
    assert ended[2].verdict.verdict is Verdict.NOT_APPLICABLE


def test_what_was_performed_again_is_said(tmp_path: Path) -> None:
    """A pass at the second attempt has a line about the first."""
    plugin = plugin_of(tmp_path, PASSED)
    outcome: Future[CaseResult] = Future()
    outcome.set_result(CaseResult(seconds=1.0, verdict=judge(PASSED), before="return of broker 1: it is not healthy"))
    plugin._cases._outcomes = {"a-b": outcome}  # type: ignore[attr-defined]
    item = MagicMock(spec=pytest.Function, user_properties=[])
    item.path, item.originalname, item.function = PROTOCOL / "test_a.py", "test_b", lambda: None
    item.callspec, item.get_closest_marker.return_value = SimpleNamespace(params={"transaction_version": None}), None
    assert plugin.pytest_pyfunc_call(item)
    assert item.user_properties == [("verdict", "pass")]
    assert isinstance(plugin.console.out, io.StringIO)
    assert "performed again, alone; before, with others: return of broker 1" in plugin.console.out.getvalue()


def test_a_mistake_of_ours_is_printed(tmp_path: Path) -> None:
    """With its traceback, because pytest prints only what it counts as failed; a violation is printed elsewhere."""
    plugin, item = plugin_of(tmp_path, PASSED), MagicMock()
    item.ihook.pytest_pyfunc_call.side_effect = KeyError("NodeId")
    for properties in ([("verdict", "violation")], []):
        item.ihook.pytest_runtest_makereport.side_effect = lambda *, call, properties=properties, **_: SimpleNamespace(
            failed=True, user_properties=properties, longreprtext=f"{properties}: {call.excinfo.exconly()}"
        )
        plugin._report(item)
    assert isinstance(plugin.console.out, io.StringIO)
    assert plugin.console.out.getvalue().splitlines()[-1] == "[]: KeyError: 'NodeId'"
    assert "violation" not in plugin.console.out.getvalue()


def test_the_environment_stays_as_it_is_while_lanes_work(tmp_path: Path) -> None:
    """A lane that reads it fails when a variable vanishes; pytest's own protocol removes the one of the test."""
    before = dict(os.environ)
    plugin_of(tmp_path, PASSED)._report(MagicMock())
    assert dict(os.environ) == before
    assert "PYTEST_CURRENT_TEST" in before


@pytest.mark.parametrize("shares", [("stoped",), ("crashed", "stopped"), ()])
def test_an_unknown_outage_is_refused(shares: tuple[str, ...]) -> None:
    """A case that shares it, or outages in another order, would never begin."""
    item = MagicMock()
    item.get_closest_marker.return_value = pytest.mark.shares(*shares).mark
    with pytest.raises(
        pytest.UsageError,
        match='out of "stopped", "crashed", "controller crashed", "all crashed", "isolated", "leader crashed", in this',
    ):
        _shares(item)
