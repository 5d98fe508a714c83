"""Ctrl-C while a run is ending: it is counted, and a second one skips the judgement."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import Future
from typing import Any

import pytest

from runner import signals
from runner.resources import RunResources
from runner.signals import OBEYED_AT, StopRequests, deferred
from verification.spark import session as spark


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_noted_and_not_raised(number: signal.Signals) -> None:
    """Closing and writing are finished; afterwards Ctrl-C has its old handler."""
    before = signal.getsignal(number)
    with deferred() as interrupts:
        assert interrupts.asked == 0
        signal.raise_signal(number)
        assert interrupts.asked == 1
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("before", "hurried"), [(0, 1), (1, 2)])
def test_the_second_ctrl_c_hurries(before: int, hurried: int) -> None:
    """The first Ctrl-C may have come while scenarios were running."""
    hurries: list[int] = []
    with deferred(asked=before, again=lambda: hurries.append(1)):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert len(hurries) == hurried


def test_the_fourth_ctrl_c_is_raised() -> None:
    """It ends a run that hangs."""
    with deferred(asked=OBEYED_AT - 1), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("running", [True, False])
def test_the_judge_is_not_waited_for_in_a_hurry(running: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JVM is ended; a JVM that is still starting cannot be ended yet, and is waited for."""
    killed: list[object] = []
    monkeypatch.setattr(spark, "kill", killed.append)
    resources = object.__new__(RunResources)
    resources._spark = Future[Any]()
    if running:
        resources._spark.set_result("session")
    resources.hurry()
    assert killed == ["session"] * running


def test_one_request_in_several_signals_hurries_nothing() -> None:
    """`timeout` sends SIGTERM twice, and tox passes it on: a judgement in flight is finished."""
    requests = StopRequests()
    hurries: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        requests(signal.SIGTERM, None)
    requests(signal.SIGTERM, None)
    with deferred(again=lambda: hurries.append(1), requests=requests) as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert (interrupts.asked, hurries) == (1, [])
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.asked, hurries) == (2, [1])


def test_sigterm_after_a_while_is_a_further_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second `kill` skips the judgement, as a second Ctrl-C does."""
    monkeypatch.setattr(signals, "SAME_WITHIN_S", 0.0)
    hurries: list[int] = []
    with deferred(again=lambda: hurries.append(1)):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert hurries == [1]


def test_a_request_that_a_finalizer_swallows_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops an exception inside of `__del__`: the run sees the signal in the count."""
    requests = StopRequests()
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    class Leaving:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, requests)
    try:
        Leaving()
        assert (requests.count, len(dropped)) == (1, 1)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert requests.count == 2


@pytest.mark.parametrize("possible", [True, False])
def test_the_first_request_may_end_a_run_early(*, possible: bool) -> None:
    """Then it interrupts nothing; where that is not possible it is a request like any other."""
    requests = StopRequests()
    requests.end_early = lambda: possible
    if possible:
        requests(signal.SIGINT, None)
    else:
        with pytest.raises(KeyboardInterrupt):
            requests(signal.SIGINT, None)
    assert (requests.ended_early, requests.count) == (possible, int(not possible))
    with pytest.raises(KeyboardInterrupt):
        requests(signal.SIGINT, None)
