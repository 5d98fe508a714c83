"""Names of a run are removed; those that are left are said."""

from __future__ import annotations

from functools import partial

from runner.given.removal import remove
from wire.codes import ErrorCode
from wire.errors import BrokerError, DisconnectedError


def test_names_that_are_left_are_said_and_the_others_are_removed() -> None:
    """One that was never there is not left."""

    def fails(error: Exception) -> None:
        raise error

    removed: list[str] = []
    said: list[str] = []
    gone = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "DeleteTopics")
    remove(
        {
            "topic a": lambda: fails(gone),
            "topic b": lambda: fails(DisconnectedError("the broker ended the connection")),
            "group c": lambda: removed.append("c"),
        },
        said.append,
        within_s=0.1,
    )
    assert removed == ["c"]
    (sentence,) = said
    assert sentence.startswith("topic b is left on your cluster, and tox -e sweep-up removes it: ")


def test_a_removal_whose_connection_is_lost_is_tried_again() -> None:
    """Seen while a broker was restarted in a watched upgrade: the topic was left."""
    answers = [DisconnectedError("the broker was restarted"), DisconnectedError("and again"), None]

    def removal() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    said: list[str] = []
    remove({"topic a": removal}, said.append)
    assert (said, answers) == ([], [])


def test_a_group_is_removed_when_its_killed_members_are_forgotten() -> None:
    """Seen after Ctrl-C in a scenario with copiers: the group was left."""
    answers = [BrokerError(ErrorCode.NON_EMPTY_GROUP, "DeleteGroups"), None]

    def removal() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    said: list[str] = []
    remove({"group c": removal}, said.append)
    assert (said, answers) == ([], [])


def test_the_time_is_for_all_names_together() -> None:
    """A cluster that is gone must not hold up the end of a run: a name is tried once when the time is over."""
    tried: list[str] = []

    def fails(name: str) -> None:
        tried.append(name)
        raise DisconnectedError("the cluster is gone")

    said: list[str] = []
    remove({name: partial(fails, name) for name in "abc"}, said.append, within_s=0.3)
    assert (tried.count("a") > 1, tried.count("b"), tried.count("c")) == (True, 1, 1)
    assert len(said) == 3
