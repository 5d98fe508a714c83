"""Unserved clients: when a client is to blame for making no progress, and how the finding says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.planted.cases import CASES
from tests.support.planted.files import write
from tests.support.planted.histories import Planted
from tests.verification.test_coverage import fault
from verification.checks.walks import WALKS
from verification.evidence.run_evidence import RunEvidence, read_run
from verification.evidence.stalls.unserved_clients import ANOTHER_CLIENT, described, excuse, excused, rows
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Operation, Outcome, Phase, ProcessRecord

S = 1_000_000_000
RUN = "a1b2c3d4e5f6"
SLOW = "few of its operations had no acknowledgement: the machine may have been slow"
GIVEN_UP = {"given_up": "producer 21 (mine): it ended", "undisturbed": True, "unserved": 0}


def row_of(**over: Any) -> dict[str, Any]:
    """The row of a client that answered every second operation."""
    row = {"run": RUN, "tried_ms": 200, "ok": 36, "unserved": 36, "given_up": "", "undisturbed": False, "worked": 36}
    return {**row, **over}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"unserved": 18}, ""),
        ({"unserved": 17}, SLOW),
        ({"ok": 1, "unserved": 3, "worked": 1}, ""),
        ({"ok": 1, "unserved": 2, "worked": 1}, SLOW),
        ({"ok": 0, "worked": 0}, "it never worked: its setup may be wrong"),
        ({"tried_ms": 5_000}, ""),
        ({"tried_ms": 5_100}, "another client needed 5.1 s for a transaction: the machine may have been slow"),
        (GIVEN_UP, ""),
        (
            {**GIVEN_UP, "undisturbed": False},
            "its last 5 processes were not all started after the last fault was healed",
        ),
        ({**GIVEN_UP, "worked": 0}, "it never worked: its setup may be wrong"),
    ],
)
def test_only_a_client_without_an_excuse_is_blamed(change: dict[str, Any], why: str) -> None:
    """Everything else that explains it is named, and both judges blame in the same cases."""
    row = row_of(**change)
    assert excuse(row) == why
    honest = CASES["clean"]("planted")[0].rows
    found = judge_rows({**honest, "unserved_clients": [row]})
    assert [each.anomaly for each in found] == ([] if why else [Anomaly.NO_PROGRESS])
    walked = WALKS["no-progress"].over({"unserved_clients": [row]})
    assert [each.anomaly for each in walked] == [each.anomaly for each in found]


def run_of(tmp_path: Path, *, outcomes: tuple[Outcome, ...], **tried: Any) -> RunEvidence:
    """A run whose operations ended so within its first seconds, and in which another client was tried after a minute."""
    planted = Planted(run=RUN, topics=CASES["clean"](RUN)[0].experiment.topics)
    read = read_run(write(planted.finish(), tmp_path / "run"))
    began_ns = read.history.anchor_ns
    done = tuple(
        Operation(
            process=1,
            operation=number,
            action="append",
            outcome=outcome,
            stage="done",
            invoked_ns=began_ns + number,
            completed_ns=None if outcome is Outcome.INFO else began_ns + S,
            records=1,
        )
        for number, outcome in enumerate(outcomes)
    )
    at_ns = began_ns + 60 * S
    phase = Phase(**{"name": ANOTHER_CLIENT, "began_ns": at_ns, "ended_ns": at_ns + S // 5, **tried})
    return replace(read, history=replace(read.history, entries=(*done, phase)))


def test_operations_without_an_answer_are_unserved(tmp_path: Path) -> None:
    """They may be failed, unknown, or still open after 10 s; nothing is said if the other client failed as well."""
    outcomes = (Outcome.OK, Outcome.OK, Outcome.FAIL, Outcome.INFO, Outcome.INFO)
    run = run_of(tmp_path / "a", outcomes=outcomes)
    assert rows(run) == [row_of(ok=2, unserved=3, worked=2)]
    assert excused(run) == ()
    assert described(rows(run)[0]) == (
        "3 of 5 operations had no acknowledgement, though another client wrote and committed a transaction on the same"
        " cluster in 0.2 s"
    )
    assert not rows(run_of(tmp_path / "b", outcomes=outcomes, note="DeadlineError: no leader"))
    (slow,) = excused(run_of(tmp_path / "c", outcomes=outcomes[:2]))
    assert slow.endswith(f"that is no finding: {SLOW}")


@pytest.mark.parametrize(("healed_s", "why"), [(5, ""), (50, "last fault"), (None, "last fault")])
def test_a_slot_that_was_given_up_is_blamed_only_after_the_faults(
    healed_s: int | None, why: str, tmp_path: Path
) -> None:
    """A broker that is away may end some processes one after the other; they end, too, when all are back."""
    run = run_of(tmp_path, outcomes=(Outcome.OK,))
    began_ns = run.history.anchor_ns
    last = ProcessRecord(
        process=21,
        role="producer",
        client="mine",
        site="app",
        started_ns=began_ns + 40 * S,
        ended_ns=began_ns + 41 * S,
        end="retired",
        reason="it ended",
        given_up_since_ns=began_ns + 30 * S,
    )
    working = replace(last, process=1, given_up_since_ns=None)
    struck = replace(fault(0, None), healed_ns=None if healed_s is None else began_ns + healed_s * S)
    entries = (*run.history.entries, working, last, struck)
    (row,) = rows(replace(run, history=replace(run.history, entries=entries)))
    assert (row["given_up"], row["worked"]) == ("producer 21 (mine): it ended", 1)
    assert why in excuse(row)
    assert bool(excuse(row)) is bool(why)
