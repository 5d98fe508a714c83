"""Coverage is counted from the history: windows of faults, the operations that count, and the names of floors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from verification.coverage import coverage
from verification.evidence.capture_reader import LocalCaptureReader
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import RunEvidence
from verification.vocabulary.errors import UnknownFloorError
from verification.vocabulary.experiment import Experiment, Floor
from verification.vocabulary.history import Action, Entry, FaultRecord, History, InputRange, Intent, Operation, Outcome
from verification.vocabulary.quiescent_state import QuiescentState

S = 1_000_000_000


def evidence(*entries: Entry, floors: tuple[Floor, ...] = ()) -> RunEvidence:
    """A run that has only a history."""
    experiment = Experiment(
        run="r",
        scenario="s",
        claim="c",
        requirements=(),
        seed=1,
        started="",
        release="4.3.1",
        runtime="local",
        client="confluent",
        topics=(),
        floors=floors,
    )
    return RunEvidence(
        directory=RunDirectory(Path()),
        capture_reader=LocalCaptureReader(RunDirectory(Path())),
        experiment=experiment,
        history=History(run="r", wall_clock_anchor="", anchor_ns=0, entries=entries),
        captures=QuiescentState(),
        acks={},
        observations={},
    )


def transaction(at_s: float, *, process: int = 0, lasts_s: float = 0.5, **values: object) -> Operation:
    """A committed transaction of ten records."""
    chosen: dict[str, object] = {
        "action": Action.TRANSACTION,
        "outcome": Outcome.OK,
        "intent": Intent.COMMIT,
        "records": 10,
        "transactional_id": "tx",
        "stage": "done",
        **values,
    }
    times = {"invoked_ns": int(at_s * S), "completed_ns": int((at_s + lasts_s) * S)}
    return Operation(process=process, operation=int(at_s * 10), **times, **chosen)  # type: ignore[arg-type]


def initialised(at_s: float, process: int, outcome: Outcome = Outcome.OK) -> Operation:
    """An `init` of the same transactional id."""
    return transaction(at_s, process=process, action=Action.INIT, outcome=outcome, intent=None, records=0)


def fault(began_s: float, healed_s: float | None, *, confirmed: bool = True, step: int = 0) -> FaultRecord:
    """A fault that held for a while."""
    return FaultRecord(
        step=step,
        fault="CrashBroker",
        description="",
        target="broker 1",
        began_ns=int(began_s * S),
        confirmed_ns=int(began_s * S) + 1 if confirmed else None,
        healed_ns=None if healed_s is None else int(healed_s * S),
    )


def test_windows_are_before_during_and_after_the_faults() -> None:
    """Before ends with the first beginning, after begins with the last healing, during is while a fault holds."""
    run = evidence(*[transaction(at_s) for at_s in (1, 2, 4, 5, 8, 9, 10)], fault(3, 5), fault(7, 8.2))
    counted = (coverage.ok_before(run), coverage.attempted_during(run), coverage.ok_after(run))
    assert counted == (2, 3, 2)


def test_an_operation_that_reaches_into_a_fault_is_during_it_and_not_before_it() -> None:
    """An operation under way when the fault strikes was attempted during it."""
    run = evidence(transaction(1, lasts_s=3), fault(3, 5))
    assert (coverage.ok_before(run), coverage.attempted_during(run), coverage.ok_after(run)) == (0, 1, 0)


def test_before_ends_with_the_first_step_of_the_schedule() -> None:
    """Others may change the cluster while clients have not yet become steady; such an entry comes after all steps."""
    assert coverage.ok_before(evidence(*map(transaction, (1, 2, 4)), fault(3, 5), fault(0.5, 1.5, step=1))) == 2


def test_a_fault_that_is_never_healed_has_no_after() -> None:
    """Operations after the beginning of a fault that is not healed are during it, and none is after it."""
    run = evidence(transaction(1), transaction(9), fault(3, None))
    assert (coverage.ok_before(run), coverage.attempted_during(run), coverage.ok_after(run)) == (1, 1, 0)


def test_a_run_without_faults_is_all_before_and_all_after() -> None:
    """A run without faults has no during, and every operation is before and after."""
    run = evidence(transaction(1), transaction(2))
    assert (coverage.ok_before(run), coverage.attempted_during(run), coverage.ok_after(run)) == (2, 0, 2)


def test_only_confirmed_faults_count() -> None:
    """A fault that was not seen to take hold proves nothing."""
    assert coverage.faults_confirmed(evidence(fault(1, 2), fault(3, 4, confirmed=False))) == 1


def test_a_fault_that_could_not_be_healed_proves_nothing() -> None:
    """A confirmed fault is not enough: after a failed healing the cluster is not the one that the claim is about."""
    unhealed = replace(fault(3, None), error="InjectionError: no successor of process 3 was initialised within 30 s")
    run = evidence(transaction(1), unhealed, transaction(9))
    assert (coverage.faults_confirmed(run), coverage.ok_after(run)) == (0, 0)


def test_init_and_empty_copies_are_no_operations() -> None:
    """Initialisations, and copies that found no input, do not fill a window."""
    copy = transaction(3, action=Action.COPY, records=2, inputs=(InputRange(topic="in", partition=0, first=0, end=1),))
    empty = transaction(4, action=Action.COPY, records=0)
    run = evidence(initialised(1, 0), copy, empty)
    assert (coverage.ok_before(run), coverage.transactions(run), coverage.records(run)) == (1, 1, 2)


def test_transactions_count_when_they_end_as_meant() -> None:
    """Commits and wanted aborts that succeeded count; failures, unknown outcomes and plain appends do not."""
    run = evidence(
        transaction(1),
        transaction(2, intent=Intent.ABORT),
        transaction(3, outcome=Outcome.FAIL),
        transaction(4, outcome=Outcome.INFO),
        transaction(5, action=Action.APPEND, intent=None, transactional_id=None),
    )
    assert (coverage.transactions(run), coverage.aborted(run), coverage.records(run)) == (2, 1, 30)


@pytest.mark.parametrize(
    ("process", "at_s", "error", "count"),
    [
        (0, 6, "PRODUCER_FENCED", 1),
        (0, 6, "INVALID_PRODUCER_EPOCH", 1),
        (0, 6, "_FENCED", 1),
        (0, 6, "REQUEST_TIMED_OUT", 0),
        (0, 3, "PRODUCER_FENCED", 0),
        (1, 6, "PRODUCER_FENCED", 0),
    ],
)
def test_fenced_answers_are_an_old_instances_after_its_successor(
    process: int, at_s: int, error: str, count: int
) -> None:
    """Only a fencing code, to the old instance, after the successor was initialised, shows that fencing was tried."""
    refused = transaction(at_s, process=process, outcome=Outcome.FAIL, error_name=error)
    assert coverage.fenced_answers(evidence(initialised(1, 0), initialised(4, 1), refused)) == count


def test_epoch_bumps_are_successions_or_told_epochs() -> None:
    """A second instance is a bump, and so is every higher epoch that a client received."""
    assert coverage.epoch_bumps(evidence(initialised(1, 0), initialised(2, 1))) == 1
    told = [transaction(at_s, producer_id=7, producer_epoch=epoch) for epoch, at_s in enumerate((1, 2, 3))]
    assert coverage.epoch_bumps(evidence(initialised(0, 0), *told)) == 2


@pytest.mark.parametrize(
    ("epochs", "outcomes", "count"),
    [
        ((0, 1, 2, 3), "oooo", 1),
        ((0, 1, 2), "ooo", 0),
        ((0, 0, 0, 0, 0), "ooooo", 0),
        # Before transaction.version 2 an instance's epoch rises after an error, by its own request.
        ((0, 1, 2, 3, 4, 5), "ofofof", 0),
    ],
    ids=["with each transaction", "too seldom", "never", "after errors"],
)
def test_a_producer_of_the_second_version_raises_its_epoch_with_each_transaction(
    epochs: tuple[int, ...], outcomes: str, count: int
) -> None:
    """Only rises between two transactions that ended as meant show it."""
    named = {"o": Outcome.OK, "f": Outcome.FAIL}
    done = [
        transaction(at_s, producer_id=7, producer_epoch=epoch, outcome=named[outcomes[at_s]])
        for at_s, epoch in enumerate(epochs)
    ]
    assert coverage.tv2_producers(evidence(*done)) == count


def test_an_epoch_that_a_successor_begins_with_is_no_rise_of_its_own() -> None:
    """Every initialisation raises the epoch, with any version."""
    instances = [transaction(at_s, process=at_s // 2, producer_id=7, producer_epoch=at_s // 2) for at_s in range(12)]
    assert coverage.tv2_producers(evidence(*instances)) == 0


def test_an_unknown_floor_is_an_error_that_names_the_known_ones() -> None:
    """A floor without a measure must not pass as reached."""
    with pytest.raises(UnknownFloorError, match=r"'ok-before' is unknown; known are ok_before, "):
        coverage.coverage(evidence(floors=(Floor(name="ok-before", need=1),)))


def test_floors_are_counted_with_have_and_need() -> None:
    """Every floor becomes an item with the count, the needed count, and the name of the measure."""
    (item,) = coverage.coverage(evidence(transaction(1), floors=(Floor(name="transactions", need=2),)))
    assert (item.have, item.need, item.met) == (1, 2, False)
    assert item.text == "transactions that ended as meant"
