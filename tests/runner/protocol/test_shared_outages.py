"""Cases that share the outages of their brokers: one at a time, one outage for all, and each answers for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from runner.protocol import plugin
from runner.protocol.shared_outages import OutageError, Participant, perform
from runner.protocol.toolkit.outage import OutageEvent, Together, alone
from suites.protocol import test_expiry as expiry


@dataclass
class Broker:
    """What happened, in order; `refuses` are moments that do not come off."""

    seen: list[str] = field(default_factory=list)
    refuses: str = ""

    def moment(self, what: str) -> OutageEvent:
        """A moment that is remembered."""

        def act() -> None:
            self.seen.append(what)
            if what == self.refuses:
                raise OSError(f"no {what}")

        return OutageEvent(what, act)

    @contextmanager
    def away(self, together: Together, verb: str = "stop") -> Iterator[None]:
        """An outage, as cases have it."""
        together(self.moment(verb))
        try:
            yield
        finally:
            together(self.moment("return"))

    def case(self, name: str, *verbs: str, breaks: str = "") -> Callable[[Together], str]:
        """A case that goes through these outages, and may break in the first one."""

        def play(together: Together) -> str:
            self.seen.append(f"{name} before")
            for verb in verbs:
                with self.away(together, verb):
                    self.seen.append(f"{name} in {verb}")
                    if breaks:
                        raise ValueError(breaks)
                self.seen.append(f"{name} after {verb}")
            return name

        return play


def member(play: Callable[[Together], str], *shares: str, time_critical: bool = False) -> Participant[str]:
    """A member that is performed by a case."""
    return Participant(shares, lambda self: play(self.meet), time_critical=time_critical)


def test_a_case_alone_goes_through_its_own_outages() -> None:
    """Without others, what a case waits for happens at once."""
    broker = Broker()
    assert broker.case("a", "stop")(alone) == "a"
    assert broker.seen == ["a before", "stop", "a in stop", "return", "a after stop"]


def test_an_outage_is_shared_and_cases_take_turns() -> None:
    """The broker goes once and comes back once; a time-critical case begins last and goes on first."""
    broker = Broker()
    members = [
        member(broker.case("a", "stop"), "stopped", time_critical=True),
        member(broker.case("b", "stop"), "stopped"),
    ]
    perform(members)
    assert not [each for each in members if each.outage_failed]
    assert [each.ended.result() for each in members] == ["a", "b"]
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


def test_who_shares_a_later_outage_begins_after_the_earlier_ones() -> None:
    """A broker that is to be killed was not stopped since the case began, whoever else it was stopped for."""
    broker = Broker()
    members = [
        member(broker.case("crash", "kill"), "crashed"),
        member(broker.case("both", "stop", "kill"), "stopped", "crashed"),
        member(broker.case("stop", "stop"), "stopped"),
    ]
    perform(members)
    assert not [each for each in members if each.outage_failed]
    assert [each.ended.result() for each in members] == ["crash", "both", "stop"]
    assert broker.seen.count("stop") == broker.seen.count("kill") == 1
    assert broker.seen.index("crash before") > broker.seen.index("stop after stop")
    assert broker.seen.index("kill") > broker.seen.index("crash before")


def test_a_case_that_breaks_keeps_nobody_from_going_on() -> None:
    """The broker comes back for the others when one broke while it was away; a case that never needs it is waited for."""
    broker = Broker()
    members = [
        member(broker.case("breaks", "stop", breaks="mine"), "stopped"),
        member(broker.case("sound", "stop"), "stopped"),
        member(broker.case("ends early"), "stopped"),
    ]
    perform(members)
    assert not [each for each in members if each.outage_failed]
    with pytest.raises(ValueError, match="mine"):
        members[0].ended.result()
    assert [each.ended.result() for each in members[1:]] == ["sound", "ends early"]
    assert broker.seen.count("return") == 1


@pytest.mark.parametrize("refused", ["stop", "return"])
def test_an_outage_that_does_not_come_off_is_told_to_all(refused: str) -> None:
    """Whoever shares it learns why, and that it may have been another one's fault is known."""
    broker = Broker(refuses=refused)
    members = [member(broker.case(name, "stop"), "stopped") for name in ("a", "b")]
    perform(members)
    assert all(each.outage_failed for each in members)
    for each in members:
        with pytest.raises(OutageError, match=f"{refused}: no {refused}"):
            each.ended.result()
    assert broker.seen.count(refused) == 1


@pytest.mark.parametrize("refused", ["stop", "return"])
def test_nobody_begins_or_goes_on_where_an_outage_did_not_come_off(refused: str) -> None:
    """What is claimed on a cluster that nobody has found whole would be a false alarm; who had ended before stays so."""
    broker = Broker(refuses=refused)
    members = [
        member(broker.case("ends early"), "stopped"),
        member(broker.case("stop", "stop"), "stopped"),
        member(broker.case("crash", "kill"), "crashed"),
    ]
    perform(members)
    assert members[0].ended.result() == "ends early"
    assert [each.outage_failed for each in members] == [False, True, True]
    with pytest.raises(OutageError, match=f"not begun: no {refused}"):
        members[2].ended.result()
    assert "crash before" not in broker.seen
    assert "kill" not in broker.seen


def test_different_outages_are_never_taken_for_one() -> None:
    """Of members that wait for different brokers none is served, and all are told."""
    broker = Broker()
    members = [member(broker.case("a", "stop 1"), "stopped"), member(broker.case("b", "stop 2"), "stopped")]
    perform(members)
    assert all(each.outage_failed for each in members)
    for each in members:
        with pytest.raises(OutageError, match="others that share it wait for stop 2"):
            each.ended.result()
    assert not [each for each in broker.seen if each.startswith("stop")]


def test_outages_that_are_not_shared_are_ones_own() -> None:
    """A case that goes through more outages than it shares goes through the others alone."""
    broker = Broker()
    members = [member(broker.case("a", "stop", "stop"), "stopped"), member(broker.case("b", "stop"), "stopped")]
    perform(members)
    assert not [each for each in members if each.outage_failed]
    assert [each.ended.result() for each in members] == ["a", "b"]
    assert broker.seen.count("stop") == 2
    assert members[1].waited_s >= 0


def test_a_time_critical_case_is_known_as_such() -> None:
    """What the decorator says reaches the plug-in; a misspelt keyword is refused and not passed over."""
    decorated = [value for name, value in vars(expiry).items() if name.startswith("test_")]
    marks = [mark for each in decorated for mark in getattr(each, "pytestmark", ()) if mark.name == "shares"]
    said = [mark.kwargs.get("time_critical", False) for mark in marks]
    assert True in said
    assert [plugin._shares(asked(mark))[1] for mark in marks] == said
    with pytest.raises(pytest.UsageError, match="no other keyword"):
        plugin._shares(asked(pytest.mark.shares("stopped", hurried=True).mark))


def asked(mark: pytest.Mark) -> Any:
    """A collected case with this marker."""
    return SimpleNamespace(name="test_x", get_closest_marker=lambda _: mark)
