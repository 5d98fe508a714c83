"""Lanes perform tasks on several clusters at a time, and lose none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fixtures.errors import EnvironmentProblemError
from runner.lanes import Lanes, Performer
from runner.protocol.case_runner import CaseResult, ProtocolCase
from runner.protocol.experiments import HELPED_FROM
from runner.protocol.queues import queues
from runner.protocol.toolkit.case import THREE, Needs
from verification.scripts.script import ScriptVerdict
from verification.vocabulary.verdict import Verdict

WITHIN_S = 20.0


def case(key: str, needs: Needs | None = None, *shares: str) -> ProtocolCase:
    """A case of this key."""
    return ProtocolCase(
        key=key,
        claim=key,
        requirements=(),
        transaction_version=None,
        needs=needs or Needs(),
        play=lambda _: None,
        replay="",
        shares=shares,
    )


def passed(key: str) -> ScriptVerdict:
    """The verdict on a case that passed."""
    return ScriptVerdict(case=key, verdict=Verdict.PASS, reason="", violated=(), requirements=())


def started(
    cases: Sequence[ProtocolCase], performer: Callable[[int], Performer[ProtocolCase, CaseResult]], *, lanes: int = 3
) -> Lanes[ProtocolCase, CaseResult]:
    """Lanes that have begun with these cases."""
    made = Lanes(queues(cases), performer, lanes=lanes, helped_from=HELPED_FROM)
    made.start()
    return made


def outcome(lanes: Lanes[ProtocolCase, CaseResult], each: ProtocolCase) -> CaseResult:
    """How a case ended."""
    return lanes.outcomes[each.key].result(WITHIN_S)


@dataclass
class FakePerformer(Performer[ProtocolCase, CaseResult]):
    """Remembers the cases; a case whose key is in `reactions` also calls or raises that."""

    reactions: dict[str, Any] = field(default_factory=dict)
    performed: list[str] = field(default_factory=list)
    together: list[int] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    closed: int = 0
    interrupted: int = 0

    def perform_together(self, tasks: Sequence[ProtocolCase]) -> list[CaseResult]:
        """Remember, react, pass."""
        self.performed += [case.key for case in tasks]
        self.together.append(len(tasks))
        for case in tasks:
            reaction = self.reactions.get(case.key)
            if isinstance(reaction, BaseException):
                raise reaction
            if reaction is not None:
                reaction()
        return [CaseResult(seconds=0.0, verdict=passed(case.key)) for case in tasks]

    def interrupt(self) -> None:
        """Remember."""
        self.interrupted += 1

    def discard(self, task: ProtocolCase) -> None:
        """Remember."""
        self.discarded.append(task.key)

    def close(self) -> None:
        """Remember."""
        self.closed += 1


def test_cases_of_one_cluster_stay_together() -> None:
    """The largest clusters come first, then those with most cases; nothing is lost, doubled or put out of order."""
    few = [case(f"few-{number}", Needs(settings={"a": "b"})) for number in range(2)]
    many = [case(f"many-{number}") for number in range(9)]
    large = [case(f"large-{number}", THREE) for number in range(3)]
    found = queues([*few, *many, *large])
    assert [len(queue.tasks) for queue in found] == [3, 9, 2]
    assert [each.key for queue in found for each in queue.tasks] == [each.key for each in (*large, *many, *few)]


def test_cases_that_share_an_outage_are_taken_together_and_first() -> None:
    """Cases that share outages through a third case form one group with it; a case with an outage alone follows."""
    cases = [case("a"), case("b", None, "stopped"), case("c", None, "crashed"), case("d"), case("g", None, "isolated")]
    cases += [case("e", None, "stopped", "crashed"), case("f", THREE, "stopped")]
    taken = [[each.key for each in together] for queue in queues(cases) for together in queue.left]
    assert taken == [["f"], ["b", "c", "e"], ["g"], ["a"], ["d"]]


def test_a_lane_stays_with_its_cluster_and_helps_where_much_is_left() -> None:
    """One lane begins each kind of cluster; a second one begins it only if enough cases are left."""
    few = [case(f"few-{number}", THREE) for number in range(2)]
    many = [case(f"many-{number}") for number in range(HELPED_FROM + 2)]
    helped = threading.Event()
    first, second = FakePerformer(), FakePerformer()
    reactions: dict[str, Any] = {"many-0": lambda: helped.wait(WITHIN_S), "many-1": helped.set}
    first.reactions = second.reactions = reactions
    lanes = started([*few, *many], [first, second].__getitem__, lanes=2)
    assert all(outcome(lanes, each).verdict is not None for each in (*few, *many))
    lanes.close()
    assert helped.is_set()
    for number in range(2):
        assert sum(f"few-{number}" in each.performed for each in (first, second)) == 1
    assert {"few-0", "few-1"} <= set(first.performed) or {"few-0", "few-1"} <= set(second.performed)


def test_a_lane_ends_its_cluster_while_others_go_on() -> None:
    """`close` raises its error in the end, as for the others."""
    ended = threading.Event()

    class Failing(FakePerformer):
        def close(self) -> None:
            super().close()
            if self.performed[:1] == ["short"] and not ended.is_set():
                ended.set()
                raise EnvironmentProblemError("it does not end", hint="")

    performers = [Failing(), Failing()]
    for each in performers:
        each.reactions = {"long": lambda: ended.wait(WITHIN_S)}
    cases = [case("long", THREE), case("short")]
    lanes = started(cases, performers.__getitem__, lanes=2)
    assert all(outcome(lanes, each).verdict is not None for each in cases)
    assert ended.is_set()
    with pytest.raises(EnvironmentProblemError, match="it does not end"):
        lanes.close()
    assert all(each.closed for each in performers)


def test_no_lane_helps_with_a_short_queue() -> None:
    """A short queue is left to the lane that has begun it."""
    cases = [case(f"few-{number}") for number in range(HELPED_FROM - 1)]
    idle = threading.Event()
    performers = [FakePerformer(), FakePerformer()]
    for each in performers:
        each.reactions = {"few-0": lambda: idle.wait(WITHIN_S)}
    lanes = started(cases, performers.__getitem__, lanes=2)
    idle.set()
    assert all(outcome(lanes, each).verdict is not None for each in cases)
    lanes.close()
    assert sorted(len(each.performed) for each in performers) == [0, len(cases)]


def test_a_level_that_comes_by_itself_takes_no_cluster_of_its_own() -> None:
    """A case that needs transaction.version 2 shares an ordinary cluster; another level is formatted."""
    found = queues([case("any"), case("two", Needs(level=2)), case("one", Needs(level=1))])
    assert [len(queue.tasks) for queue in found] == [2, 1]
    assert Needs(level=2).spec("4.3.1") == Needs().spec("4.3.1")
    assert [Needs(level=level).spec("4.3.1").feature_levels for level in (0, 1)] == [
        {"transaction.version": level} for level in (0, 1)
    ]


def test_every_case_has_its_outcome() -> None:
    """A future returns the verdict of its case, independent of the order in which cases end."""
    cases = [case(f"case-{number}", Needs(brokers=number % 3 + 1)) for number in range(12)]
    performers = [FakePerformer(), FakePerformer(), FakePerformer()]
    lanes = started(cases, performers.__getitem__, lanes=3)
    outcomes = {each.key: outcome(lanes, each) for each in reversed(cases)}
    lanes.close()
    assert all(one.verdict is not None and one.verdict.case == key for key, one in outcomes.items())
    assert sorted(key for each in performers for key in each.performed) == sorted(outcomes)
    assert all(each.closed for each in performers)


def test_a_mistake_of_the_harness_ends_every_wait() -> None:
    """A future raises an unexpected error of a performer, and does not wait for ever."""
    cases = [case("mistaken")]
    lanes = started(cases, lambda _: FakePerformer({"mistaken": ZeroDivisionError("ours")}))
    with pytest.raises(ZeroDivisionError, match="ours"):
        outcome(lanes, cases[0])
    lanes.close()


def test_a_cluster_that_does_not_end_keeps_no_other_from_ending() -> None:
    """Every cluster is ended after an error of another: by its lane, and twice more. The first error is raised."""
    performers = [FakePerformer(), FakePerformer()]

    def refuse() -> None:
        performers[0].closed += 1
        raise EnvironmentProblemError(f"attempt {performers[0].closed}")

    performers[0].close = refuse  # type: ignore[method-assign]
    cases = [case("small"), case("large", THREE)]
    lanes = started(cases, performers.__getitem__, lanes=2)
    assert all(outcome(lanes, each).verdict is not None for each in cases)
    with pytest.raises(EnvironmentProblemError, match="attempt 1"):
        lanes.close()
    assert [each.closed for each in performers] == [3, 3]


def test_close_lets_no_case_begin_and_discards_the_interrupted_one() -> None:
    """After an interruption there are no files of the running case, nor of those after it."""
    running, go_on = threading.Event(), threading.Event()

    def linger() -> None:
        running.set()
        assert go_on.wait(WITHIN_S)

    performer = FakePerformer({"second": linger})
    performer_close = performer.close

    def close() -> None:
        performer_close()
        go_on.set()

    performer.close = close  # type: ignore[method-assign]
    cases = [case("first"), case("second"), case("third")]
    lanes = started(cases, lambda _: performer, lanes=1)
    assert outcome(lanes, cases[0]).verdict is not None
    assert running.wait(WITHIN_S)
    lanes.close()
    assert performer.performed == ["first", "second"]
    assert performer.discarded == ["second"]


def test_more_lanes_take_what_is_left() -> None:
    """Lanes that are added begin clusters of their own; the first lane goes on, and as many are there as were asked for."""
    first_two = threading.Barrier(2)
    performers = [FakePerformer(), FakePerformer(), FakePerformer()]
    for each in performers:
        each.reactions = {"large": lambda: first_two.wait(WITHIN_S), "small": lambda: first_two.wait(WITHIN_S)}
    cases = [case("large", THREE), case("small")]
    lanes = started(cases, performers.__getitem__, lanes=1)
    for _ in range(2):
        lanes.widen(3)
    assert all(outcome(lanes, each).verdict is not None for each in cases)
    lanes.close()
    assert [each.performed for each in performers] == [["large"], ["small"], []]


def test_no_lane_is_added_once_the_run_ends() -> None:
    """Nothing begins after `close`."""
    performers = [FakePerformer(), FakePerformer()]
    cases = [case("large", THREE), case("small")]
    lanes = Lanes(queues(cases), performers.__getitem__, lanes=1, helped_from=HELPED_FROM)
    lanes.close()
    lanes.widen(2)
    assert not any(each.performed for each in performers)
