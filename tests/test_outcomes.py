"""Claims about what an error proves."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from fixtures.clients.outcomes import Next, classify, row_of, rows, what_next
from verification.vocabulary.history import Outcome

STAGES = {"record", "init", "begin", "produce", "offsets", "offsets-alone", "commit", "abort", "poll"}
# librdkafka's names for codes that the Kafka protocol names otherwise.
RENAMED = {"NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_FOR_PARTITION", "INVALID_TOPIC_EXCEPTION": "TOPIC_EXCEPTION"}


def error(code: int, *, fatal: bool = False) -> dict[str, Any]:
    return {"code": code, "name": "", "reason": "", "fatal": fatal, "retriable": False, "abortable": False}


def test_every_stage_has_exactly_one_default() -> None:
    """No error at any stage is without a decision."""
    defaults = [row.stage for row in rows() if not row.codes]
    assert sorted(defaults) == sorted(STAGES)


def test_no_code_is_decided_twice_at_a_stage() -> None:
    """The table does not contradict itself."""
    places = [(row.stage, code) for row in rows() for code in row.codes.values()]
    assert len(places) == len(set(places))


def test_every_row_has_a_reason_and_belongs_to_a_stage() -> None:
    """Nothing is decided without a sentence that says why."""
    assert all(len(row.reason.split()) >= 4 for row in rows())
    assert {row.stage for row in rows()} == STAGES


def test_names_and_codes_in_the_table_belong_together() -> None:
    """A row means the error that it names."""
    for row in rows():
        for name, code in row.codes.items():
            assert KafkaError(code).name() == RENAMED.get(name, name)


def test_no_error_is_ok() -> None:
    """Only the absence of an error is `ok`; no row can declare an error to be a success."""
    assert classify("commit", None) is Outcome.OK
    assert Outcome.OK not in {row.outcome for row in rows()}


@pytest.mark.parametrize(
    ("stage", "code", "outcome"),
    [
        ("record", 6, Outcome.INFO),  # NOT_LEADER_OR_FOLLOWER may answer a retry
        ("record", -184, Outcome.FAIL),  # local queue full
        ("record", -152, Outcome.FAIL),  # purged before it was sent
        ("record", -151, Outcome.INFO),  # purged in flight
        ("record", -192, Outcome.INFO),  # message timed out
        ("record", 20, Outcome.INFO),  # stored by the leader, not replicated
        ("record", 10, Outcome.FAIL),  # too large at every attempt
        ("commit", 90, Outcome.INFO),  # fenced may be the coordinator's timeout, or follow a lost reply
        ("commit", -144, Outcome.INFO),
        ("commit", -185, Outcome.INFO),
        ("commit", 48, Outcome.FAIL),  # commit after abort
        ("offsets", 25, Outcome.FAIL),  # commit was never asked for
        ("produce", -192, Outcome.FAIL),
        ("offsets-alone", 7, Outcome.INFO),
        ("init", 50, Outcome.FAIL),
        ("init", -185, Outcome.INFO),
    ],
)
def test_an_error_proves_no_more_than_it_can(stage: str, code: int, outcome: Outcome) -> None:
    """The rows that decide most verdicts say what they should."""
    assert classify(stage, error(code)) is outcome


@pytest.mark.parametrize("stage", ["record", "commit", "abort", "init"])
def test_a_code_that_nobody_knows_is_not_definite(stage: str) -> None:
    """What a later release invents is never taken for a refusal where something may have happened."""
    assert classify(stage, error(31999)) is Outcome.INFO


def test_an_unknown_stage_is_refused() -> None:
    """A driver that invents a stage is not classified by accident."""
    with pytest.raises(KeyError):
        row_of("lunch", error(1))


def test_an_unknown_commit_retires_the_process() -> None:
    """After an unknown commit nobody guesses, even if the library would go on."""
    assert what_next("commit", error(-185), in_transaction=True, aborted=False) is Next.RETIRE
    assert what_next("commit", error(-185), in_transaction=True, aborted=True) is Next.RETIRE


def test_a_process_goes_on_after_a_confirmed_abort_only() -> None:
    """A transaction of which nobody knows that it is over ends the process."""
    assert what_next("produce", error(-192), in_transaction=True, aborted=True) is Next.CONTINUE
    assert what_next("produce", error(-192), in_transaction=True, aborted=False) is Next.RETIRE
    assert what_next("produce", error(-192), in_transaction=False, aborted=False) is Next.CONTINUE


def test_a_fatal_error_retires_whatever_the_table_says() -> None:
    """An instance that its library has given up is not used again."""
    assert what_next("produce", error(-192, fatal=True), in_transaction=True, aborted=True) is Next.RETIRE
