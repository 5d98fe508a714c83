"""A share reader counts a record once whose acceptance the broker refused, and no other record less."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runner.protocol.toolkit.context import CaseContext
from runner.protocol.toolkit.script_recorder import ScriptRecorder, UnmetError
from runner.protocol.toolkit.share_groups import ShareReader

REFUSED = "UnknownTopicOrPartitionException"


class Answer:
    """An entry of the map of `commitSync`: an Optional of an exception, and its partition."""

    def __init__(self, error: str) -> None:
        self.error = error

    def orElse(self, _: None) -> Any:  # noqa: N802 - Java's name
        """The exception, None without one."""
        simple = SimpleNamespace(getSimpleName=lambda: self.error)
        return SimpleNamespace(getClass=lambda: simple) if self.error else None


class Place:
    """A partition as the library has it."""

    def topic(self) -> str:
        """Its topic."""
        return "orders"

    def partition(self) -> int:
        """Its number."""
        return 0


class Record(Place):
    """A record as the library has it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def offset(self) -> int:
        """Its offset."""
        return self.number

    def value(self) -> str:
        """Its value: a letter for each offset."""
        return "abc"[self.number]

    def deliveryCount(self) -> Any:  # noqa: N802 - Java's name
        """An Optional."""
        return SimpleNamespace(orElse=lambda _: 1)


class Library:
    """Delivers what the test says, poll by poll; each answer is for the acknowledgements since the one before."""

    def __init__(self, polls: list[list[int]], answers: list[str | None]) -> None:
        self.polls, self.answers, self.acknowledged = polls, answers, 0
        self.library = self

    def records(self) -> list[Record]:
        """The next poll."""
        return [Record(each) for each in (self.polls.pop(0) if self.polls else [])]

    def acknowledge(self, *_: object) -> None:
        """Count it."""
        self.acknowledged += 1

    def commitSync(self) -> dict[Place, Answer]:  # noqa: N802 - Java's name
        """The next answer; none without acknowledgements, or where the test says None."""
        waiting, self.acknowledged = self.acknowledged, 0
        answer = (self.answers.pop(0) if self.answers else "") if waiting else None
        return {} if answer is None else {Place(): Answer(answer)}


def reader(polls: list[list[int]], answers: list[str | None], monkeypatch: pytest.MonkeyPatch) -> ShareReader:
    """A reader of this library, in a case that does not wait long."""
    monkeypatch.setattr("runner.protocol.toolkit.share_groups.DELIVERED_WITHIN_S", 0.5)
    monkeypatch.setattr("runner.protocol.toolkit.share_groups.QUIET_S", 0.5)
    case = object.__new__(CaseContext)
    case.recording = ScriptRecorder()
    clients = SimpleNamespace(consumer=SimpleNamespace(AcknowledgeType=SimpleNamespace(ACCEPT=1, RELEASE=2)))
    root = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(kafka=SimpleNamespace(clients=clients))))
    case.java = SimpleNamespace(library=SimpleNamespace(root=root))  # type: ignore[assignment]
    return ShareReader(case, Library(polls, answers))  # type: ignore[arg-type]


def said(made: ShareReader) -> list[str]:
    """The statements of the script about refused acceptances."""
    return [str(each) for each in made._case.recording.statements if "acceptance of offset" in each.what]


@pytest.mark.parametrize("refusal", [REFUSED, None])
def test_a_record_comes_again_after_a_refused_acceptance(refusal: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It should. The record is accepted again, counts once, and the script has the refusal."""
    made = reader([[2], [2]], [refusal, ""], monkeypatch)
    assert [each.value for each in made.reads_to("c")] == ["c"]
    assert made.given_meanwhile() == []
    (statement,) = said(made)
    assert (REFUSED if refusal else "no answer") in statement
    assert "offset 2" in statement


def test_it_comes_again_while_nothing_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal of an acceptance in the quiet time is no new delivery either."""
    made = reader([[0], [0], [0]], [REFUSED, REFUSED, ""], monkeypatch)
    assert made.given_meanwhile() == ["a"]
    assert len(said(made)) == 2


def test_a_record_that_was_accepted_counts_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the violation which the cases look for."""
    made = reader([[0, 2], [], [0], [2]], ["", "", ""], monkeypatch)
    assert [each.value for each in made.reads_to("c")] == ["a", "c"]
    assert made.given_meanwhile() == ["a", "c"]
    assert said(made) == []


def test_without_an_accepted_acknowledgement_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case ends INCONCLUSIVE, whether the record comes again or not."""
    with pytest.raises(UnmetError, match="refused to the end"):
        reader([[2], [2]], [REFUSED, REFUSED], monkeypatch).reads_to("c")
    made = reader([[2]], [REFUSED], monkeypatch)
    (first,) = made.first(1)
    with pytest.raises(UnmetError, match="refused acceptances"):
        made.accepts(first)
    made = reader([[2]], [REFUSED], monkeypatch)
    (first,) = made.first(1)
    with pytest.raises(UnmetError, match="refused releases"):
        made.releases(first)
