"""Cases that share the outages of their brokers: one case runs at a time, one outage serves all, each has its own end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from runner.protocol import experiments
from runner.protocol.shared_outages import OutageError, Participant, perform
from runner.protocol.toolkit.outage import OnOutage, OutageEvent, at_once
from suites.protocol import test_restart as restart


@dataclass
class FakeBroker:
    """Remembers the events and the steps of cases, in order; the event named `refuses` fails."""

    seen: list[str] = field(default_factory=list)
    refuses: str = ""

    def event(self, name: str) -> OutageEvent:
        """An event that is remembered."""

        def act() -> None:
            self.seen.append(name)
            if name == self.refuses:
                raise OSError(f"no {name}")

        return OutageEvent(name, act)

    @contextmanager
    def away(self, on_outage: OnOutage, verb: str = "stop") -> Iterator[None]:
        """An outage, as cases have it."""
        on_outage(self.event(verb))
        try:
            yield
        finally:
            on_outage(self.event("return"))

    def case(self, name: str, *verbs: str, breaks: str = "") -> Callable[[OnOutage], str]:
        """A case that goes through these outages, and may break in the first one."""

        def play(on_outage: OnOutage) -> str:
            self.seen.append(f"{name} before")
            for verb in verbs:
                with self.away(on_outage, verb):
                    self.seen.append(f"{name} in {verb}")
                    if breaks:
                        raise ValueError(breaks)
                self.seen.append(f"{name} after {verb}")
            return name

        return play


def participant(play: Callable[[OnOutage], str], *shares: str, time_critical: bool = False) -> Participant[str]:
    """A participant that performs this case."""
    return Participant(shares, lambda self: play(self.await_event), time_critical=time_critical)


def test_a_case_alone_goes_through_its_own_outages() -> None:
    """Without other cases, each event happens at once."""
    broker = FakeBroker()
    assert broker.case("a", "stop")(at_once) == "a"
    assert broker.seen == ["a before", "stop", "a in stop", "return", "a after stop"]


def test_an_outage_is_shared_and_cases_take_turns() -> None:
    """The broker goes once and comes back once; a time-critical case begins last and goes on first."""
    broker = FakeBroker()
    participants = [
        participant(broker.case("a", "stop"), "stopped", time_critical=True),
        participant(broker.case("b", "stop"), "stopped"),
    ]
    perform(participants)
    assert not [each for each in participants if each.outage_failed]
    assert [each.ended.result() for each in participants] == ["a", "b"]
    assert broker.seen == [
        "b before",
        "a before",
        "stop",
        "a in stop",
        "b in stop",
        "return",
        "a after stop",
        "b after stop",
    ]


def test_a_case_that_shares_a_later_outage_begins_after_the_earlier_ones() -> None:
    """A broker that is to be killed was not stopped since the case began, for no other case either."""
    broker = FakeBroker()
    participants = [
        participant(broker.case("crash", "kill"), "crashed"),
        participant(broker.case("both", "stop", "kill"), "stopped", "crashed"),
        participant(broker.case("stop", "stop"), "stopped"),
    ]
    perform(participants)
    assert not [each for each in participants if each.outage_failed]
    assert [each.ended.result() for each in participants] == ["crash", "both", "stop"]
    assert broker.seen.count("stop") == broker.seen.count("kill") == 1
    assert broker.seen.index("crash before") > broker.seen.index("stop after stop")
    assert broker.seen.index("kill") > broker.seen.index("crash before")


def test_a_case_that_breaks_keeps_no_other_from_going_on() -> None:
    """The broker comes back for the others after one case broke while it was away. A case may end without an outage."""
    broker = FakeBroker()
    participants = [
        participant(broker.case("breaks", "stop", breaks="mine"), "stopped"),
        participant(broker.case("sound", "stop"), "stopped"),
        participant(broker.case("ends early"), "stopped"),
    ]
    perform(participants)
    assert not [each for each in participants if each.outage_failed]
    with pytest.raises(ValueError, match="mine"):
        participants[0].ended.result()
    assert [each.ended.result() for each in participants[1:]] == ["sound", "ends early"]
    assert broker.seen.count("return") == 1


@pytest.mark.parametrize("refused", ["stop", "return"])
def test_an_outage_that_fails_fails_for_all(refused: str) -> None:
    """Each case that shares it gets the reason, and is marked: another case may have caused the failure."""
    broker = FakeBroker(refuses=refused)
    participants = [participant(broker.case(name, "stop"), "stopped") for name in ("a", "b")]
    perform(participants)
    assert all(each.outage_failed for each in participants)
    for each in participants:
        with pytest.raises(OutageError, match=f"{refused}: no {refused}"):
            each.ended.result()
    assert broker.seen.count(refused) == 1


@pytest.mark.parametrize("refused", ["stop", "return"])
def test_no_case_begins_or_goes_on_after_an_outage_failed(refused: str) -> None:
    """A claim on a cluster that is not whole would be a false alarm. A case that had ended before keeps its end."""
    broker = FakeBroker(refuses=refused)
    participants = [
        participant(broker.case("ends early"), "stopped"),
        participant(broker.case("stop", "stop"), "stopped"),
        participant(broker.case("crash", "kill"), "crashed"),
    ]
    perform(participants)
    assert participants[0].ended.result() == "ends early"
    assert [each.outage_failed for each in participants] == [False, True, True]
    with pytest.raises(OutageError, match=f"not begun: no {refused}"):
        participants[2].ended.result()
    assert "crash before" not in broker.seen
    assert "kill" not in broker.seen


def test_different_outages_are_never_taken_for_one() -> None:
    """If participants wait for different brokers, no event happens, and all of them fail."""
    broker = FakeBroker()
    participants = [
        participant(broker.case("a", "stop 1"), "stopped"),
        participant(broker.case("b", "stop 2"), "stopped"),
    ]
    perform(participants)
    assert all(each.outage_failed for each in participants)
    for each in participants:
        with pytest.raises(OutageError, match="others that share it wait for stop 2"):
            each.ended.result()
    assert not [each for each in broker.seen if each.startswith("stop")]


def test_a_case_goes_alone_through_an_outage_that_it_does_not_share() -> None:
    """A case that goes through more outages than it shares goes through the others alone."""
    broker = FakeBroker()
    participants = [
        participant(broker.case("a", "stop", "stop"), "stopped"),
        participant(broker.case("b", "stop"), "stopped"),
    ]
    perform(participants)
    assert not [each for each in participants if each.outage_failed]
    assert [each.ended.result() for each in participants] == ["a", "b"]
    assert broker.seen.count("stop") == 2
    assert participants[1].waited_s >= 0


def test_a_case_waits_without_a_thread_of_its_own() -> None:
    """All cases run in the thread that performs them, and an error is handled where it was raised."""
    threads: list[threading.Thread] = []
    handled: list[bool] = []

    def play(on_outage: OnOutage) -> str:
        threads.append(threading.current_thread())
        try:
            int("mine")
        except ValueError as error:
            on_outage(OutageEvent("stop", lambda: None))
            handled.append(sys.exc_info()[1] is error)
        return "ended"

    participants = [participant(play, "stopped") for _ in range(3)]
    perform(participants)
    assert [each.ended.result() for each in participants] == ["ended"] * 3
    assert threads == [threading.current_thread()] * 3
    assert handled == [True] * 3


def test_a_time_critical_case_is_known_as_such() -> None:
    """The keyword of the decorator reaches the plug-in; a misspelt keyword is refused."""
    decorated = [value for name, value in vars(restart).items() if name.startswith("test_")]
    marks = [mark for each in decorated for mark in getattr(each, "pytestmark", ()) if mark.name == "shares"]
    said = [mark.kwargs.get("time_critical", False) for mark in marks]
    assert True in said
    assert [experiments._shares(asked(mark))[1] for mark in marks] == said
    with pytest.raises(pytest.UsageError, match="no other keyword"):
        experiments._shares(asked(pytest.mark.shares("stopped", time_criticl=True).mark))


def asked(mark: pytest.Mark) -> Any:
    """A collected case with this marker."""
    return SimpleNamespace(name="test_x", get_closest_marker=lambda _: mark)
