"""Windows follow each other: threads that stand for two lanes, and a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from runner.given import window_relay
from runner.given.window_relay import LATE_S, START_AHEAD_S, WINDOW_MIN_S, WindowNotBegunError, WindowRelay

WINDOW_S = 60.0
#: Threads go on within milliseconds; only one that hangs needs longer.
WITHIN_S = 10.0


class Lanes:
    """Calls of a relay in threads of their own, in the order in which they returned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, windows: int) -> None:
        monkeypatch.setattr(window_relay, "_LOOK_EVERY_S", 0.01)
        self.now_s = 0.0
        self.relay = WindowRelay(windows, WINDOW_S, clock_s=lambda: self.now_s)

    def calls(self, call: Callable[[str], None], run: str) -> threading.Event:
        """Call it; the event is set when it has returned."""
        returned = threading.Event()

        def work() -> None:
            call(run)
            returned.set()

        threading.Thread(target=work, daemon=True).start()
        return returned


def waits(call: threading.Event) -> bool:
    """Whether a call has not returned after many looks."""
    return not call.wait(0.2)


@pytest.fixture
def lanes(monkeypatch: pytest.MonkeyPatch) -> Lanes:
    """Two lanes with three windows."""
    return Lanes(monkeypatch, 3)


def test_a_window_ends_when_the_clients_of_the_next_one_work(lanes: Lanes) -> None:
    """They start shortly before; at no moment is a cluster without clients."""
    relay = lanes.relay
    relay.await_start("a")
    start = lanes.calls(relay.await_start, "b")
    relay.await_turn("a")
    assert waits(start), "b would start a whole window too early"
    lanes.now_s = WINDOW_S - START_AHEAD_S
    assert start.wait(WITHIN_S)
    turn = lanes.calls(relay.await_turn, "b")
    assert waits(turn), "a is still watched"
    lanes.now_s = WINDOW_S
    relay.pass_on("a")
    assert turn.wait(WITHIN_S)


def test_a_window_goes_on_while_the_next_one_is_late(lanes: Lanes) -> None:
    """For a bounded time."""
    relay = lanes.relay
    relay.await_start("a")
    relay.await_turn("a")
    lanes.now_s = WINDOW_S
    over = lanes.calls(relay.pass_on, "a")
    assert waits(over)
    lanes.now_s = WINDOW_S + LATE_S
    assert over.wait(WITHIN_S)


def test_the_last_window_waits_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when its time is over."""
    relay = Lanes(monkeypatch, 1).relay
    relay.await_start("a")
    relay.await_turn("a")
    relay.pass_on("a")


def test_a_window_that_broke_holds_no_other_up(lanes: Lanes) -> None:
    """Neither before its turn nor in it."""
    relay = lanes.relay
    relay.await_start("a")
    relay.leave("a")
    relay.await_start("b")
    relay.await_turn("b")
    relay.leave("b")
    relay.await_start("c")
    relay.await_turn("c")


def test_an_early_end_makes_the_window_that_is_watched_the_last_one(lanes: Lanes) -> None:
    """It lasts long enough for a verdict; the next one, whose clients may work, does not begin."""
    relay, refused = lanes.relay, []

    def begins(call: Callable[[str], None]) -> Callable[[str], None]:
        def attempt(run: str) -> None:
            try:
                call(run)
            except WindowNotBegunError:
                refused.append(run)

        return attempt

    relay.await_start("a")
    relay.await_turn("a")
    lanes.now_s = WINDOW_MIN_S - 1
    turn = lanes.calls(begins(relay.await_turn), "b")
    start = lanes.calls(begins(relay.await_start), "c")
    over = lanes.calls(lambda run: (relay.hold(WINDOW_S), relay.pass_on(run))[-1], "a")
    assert relay.end_early()
    assert turn.wait(WITHIN_S)
    assert start.wait(WITHIN_S)
    assert sorted(refused) == ["b", "c"]
    assert waits(over), "a is too short"
    lanes.now_s = WINDOW_MIN_S
    assert over.wait(WITHIN_S)


def test_before_the_first_window_nothing_ends_early(lanes: Lanes) -> None:
    """Ctrl-C then is an interruption: there is nothing to judge."""
    lanes.relay.await_start("a")
    assert not lanes.relay.end_early()
    lanes.relay.await_turn("a")
