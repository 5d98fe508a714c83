"""Lanes perform protocol cases on several clusters at a time, and lose none."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from fixtures.errors import EnvironmentProblemError
from suites.protocol.case import THREE, Needs
from suites.protocol.lanes import QUEUE_MOST, Lanes, queues
from suites.protocol.sweep import Case
from verification.script import ScriptVerdict
from verification.verdict import Verdict

WITHIN_S = 20.0


def case(key: str, needs: Needs | None = None) -> Case:
    """A case of this key."""
    return Case(
        key=key, claim=key, requirements=(), generation=None, needs=needs or Needs(), play=lambda _: None, replay=""
    )


@dataclass
class Recorder:
    """Performs by remembering; what `reactions` has for a key happens instead."""

    reactions: dict[str, Any] = field(default_factory=dict)
    performed: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    closed: int = 0

    def perform(self, case: Case) -> ScriptVerdict:
        """Remember, react, pass."""
        self.performed.append(case.key)
        reaction = self.reactions.get(case.key)
        if isinstance(reaction, BaseException):
            raise reaction
        if reaction is not None:
            reaction()
        return ScriptVerdict(case=case.key, verdict=Verdict.PASS, reason="", violated=(), requirements=())

    def discard(self, case: Case) -> None:
        """Remember."""
        self.discarded.append(case.key)

    def close(self) -> None:
        """Remember."""
        self.closed += 1


def test_cases_of_one_cluster_stay_together_and_long_queues_are_cut() -> None:
    """The largest clusters come first; nothing is lost, doubled or put out of order."""
    small = [case(f"small-{number}") for number in range(2 * QUEUE_MOST + 1)]
    large = [case(f"large-{number}", THREE) for number in range(3)]
    found = queues([*small, *large])
    assert [len(queue) for queue in found] == [3, QUEUE_MOST, QUEUE_MOST, 1]
    assert [each.key for queue in found for each in queue] == [each.key for each in (*large, *small)]


def test_a_level_that_comes_by_itself_takes_no_cluster_of_its_own() -> None:
    """Who needs transaction.version 2 follows the others on a new cluster; who needs another one has it formatted."""
    assert [
        len(queue) for queue in queues([case("any"), case("two", Needs(level=2)), case("one", Needs(level=1))])
    ] == [2, 1]
    assert Needs(level=2).spec("4.3.1") == Needs().spec("4.3.1")
    assert [Needs(level=level).spec("4.3.1").feature_levels for level in (0, 1)] == [
        {"transaction.version": level} for level in (0, 1)
    ]


def test_every_case_has_its_outcome() -> None:
    """Whoever asks gets the verdict of that case, in whatever order cases end."""
    cases = [case(f"case-{number}", Needs(brokers=number % 3 + 1)) for number in range(12)]
    recorders = [Recorder(), Recorder(), Recorder()]
    lanes = Lanes(cases, recorders.__getitem__, lanes=3)
    outcomes = {each.key: lanes.outcome(each) for each in reversed(cases)}
    lanes.close()
    assert all(outcome.verdict is not None and outcome.verdict.case == key for key, outcome in outcomes.items())
    assert sorted(key for each in recorders for key in each.performed) == sorted(outcomes)
    assert all(each.closed for each in recorders)


def test_what_the_environment_broke_is_told_and_the_lane_goes_on() -> None:
    """A cluster that does not start costs its case, not the cases behind it."""
    cases = [case("broken"), case("sound")]
    lanes = Lanes(cases, lambda _: Recorder({"broken": EnvironmentProblemError("no cluster")}))
    assert lanes.outcome(cases[0]).verdict is None
    assert "no cluster" in lanes.outcome(cases[0]).broke
    assert lanes.outcome(cases[1]).verdict is not None
    lanes.close()


def test_a_mistake_of_ours_reaches_whoever_waits() -> None:
    """Nobody waits for ever for a case that raised what no case may raise."""
    cases = [case("mistaken")]
    lanes = Lanes(cases, lambda _: Recorder({"mistaken": ZeroDivisionError("ours")}))
    with pytest.raises(ZeroDivisionError, match="ours"):
        lanes.outcome(cases[0])
    lanes.close()


def test_a_cluster_that_does_not_end_keeps_no_other_from_ending() -> None:
    """Every lane's cluster is ended twice, whatever ending another one raises; the first error is told."""
    recorders = [Recorder(), Recorder()]

    def refuse() -> None:
        recorders[0].closed += 1
        raise EnvironmentProblemError(f"attempt {recorders[0].closed}")

    recorders[0].close = refuse  # type: ignore[method-assign]
    cases = [case("small"), case("large", THREE)]
    lanes = Lanes(cases, recorders.__getitem__, lanes=2)
    assert all(lanes.outcome(each).verdict is not None for each in cases)
    with pytest.raises(EnvironmentProblemError, match="attempt 1"):
        lanes.close()
    assert [each.closed for each in recorders] == [2, 2]


def test_an_end_lets_no_case_begin_and_forgets_the_one_that_was_interrupted() -> None:
    """After an interruption there is nothing of the running case, and nothing of those behind it."""
    running, go_on = threading.Event(), threading.Event()

    def linger() -> None:
        running.set()
        assert go_on.wait(WITHIN_S)

    recorder = Recorder({"second": linger})
    recorder_close = recorder.close

    def close() -> None:
        recorder_close()
        go_on.set()

    recorder.close = close  # type: ignore[method-assign]
    cases = [case("first"), case("second"), case("third")]
    lanes = Lanes(cases, lambda _: recorder)
    assert lanes.outcome(cases[0]).verdict is not None
    assert running.wait(WITHIN_S)
    lanes.close()
    assert recorder.performed == ["first", "second"]
    assert recorder.discarded == ["second"]
