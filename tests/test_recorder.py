"""Claims about the evidence that the recorder writes."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest

from fixtures.recording.recorder import Recorder
from verification.evidence.history_file import UnfitHistoryError, read
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.history import Action, Intent, Operation, Outcome, Phase, ProcessRecord, Told

RUN = "a1b2c3d4e5f6"


def operation(number: int, outcome: Outcome = Outcome.OK, *, decided_ns: int | None = 5) -> Operation:
    return Operation(
        process=3,
        operation=number,
        action=Action.TRANSACTION,
        outcome=outcome,
        stage="done" if outcome is Outcome.OK else "commit",
        invoked_ns=1,
        decided_ns=decided_ns,
        completed_ns=9 if outcome is Outcome.OK else None,
        intent=Intent.COMMIT,
        transactional_id=f"{RUN}-0",
        records=40,
    )


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def test_what_is_recorded_is_read_back(directory: RunDirectory) -> None:
    """A sealed history holds every entry in the order of recording, also processes without a transactional id."""
    recorder = Recorder(directory, run=RUN)
    entries = (
        operation(1),
        Phase(name="stop", began_ns=1, ended_ns=2),
        ProcessRecord(
            process=0,
            role="observer",
            client="confluent",
            site="observer",
            transactional_id=None,
            group=None,
            started_ns=1,
            ended_ns=2,
            end="stopped",
        ),
    )
    for entry in entries:
        recorder.record(entry)
    recorder.seal()
    history = read(directory.history)
    assert history.run == RUN
    assert history.entries == entries


def test_a_history_that_was_not_sealed_is_unfit_and_keeps_what_there_was(directory: RunDirectory) -> None:
    """A harness that crashes leaves evidence to look at and nothing to judge by."""
    recorder = Recorder(directory, run=RUN)
    recorder.record(operation(1))
    recorder.acknowledge(process=3, operation=1, acks=[[0, 1, 2, 881, "ok"]])
    with pytest.raises(UnfitHistoryError):
        read(directory.history)
    assert read(directory.history, allow_cut=True).entries == (operation(1),)
    assert json.loads((directory.acks / "3.jsonl").read_text())["acks"] == [[0, 1, 2, 881, "ok"]]
    recorder.seal()


def test_what_was_announced_and_never_completed_is_recorded_as_it_stood(directory: RunDirectory) -> None:
    """A commit in flight at the end is unknown; a transaction that never came to its commit is aborted."""
    recorder = Recorder(directory, run=RUN)
    recorder.announce(operation(1, Outcome.INFO, decided_ns=None))
    recorder.announce(operation(2, Outcome.INFO, decided_ns=None))
    recorder.announce(operation(2, Outcome.INFO, decided_ns=7))
    recorder.seal()
    first, second = read(directory.history).of(Operation)
    assert (first.outcome, first.told) == (Outcome.INFO, Told.ABORTED)
    assert (second.outcome, second.told, second.decided_ns) == (Outcome.INFO, Told.UNKNOWN, 7)


def test_a_completed_operation_is_not_pending_any_more(directory: RunDirectory) -> None:
    """An operation stands in the history once."""
    recorder = Recorder(directory, run=RUN)
    recorder.announce(operation(1, Outcome.INFO))
    recorder.record(operation(1))
    recorder.seal()
    assert [each.outcome for each in read(directory.history).of(Operation)] == [Outcome.OK]


def test_sealing_compresses_acknowledgements_and_observations(directory: RunDirectory) -> None:
    """After sealing only the compressed files are there, one line per operation or poll."""
    recorder = Recorder(directory, run=RUN)
    recorder.acknowledge(process=3, operation=1, acks=[(0, 1, 2, 881, "ok")])
    recorder.acknowledge(process=3, operation=2, acks=[(0, 1, 2, -1, "info")])
    recorder.observe(observer="committed", poll=7, received_ns=12, records=[(1, 2, 881, "OP1")])
    recorder.seal()
    assert [path.name for path in directory.acks.iterdir()] == ["3.jsonl.gz"]
    with gzip.open(directory.acks / "3.jsonl.gz", "rt") as lines:
        assert [json.loads(line)["operation"] for line in lines] == [1, 2]
    with gzip.open(directory.observations / "committed.jsonl.gz", "rt") as lines:
        assert json.loads(lines.read()) == {"poll": 7, "received_ns": 12, "records": [[1, 2, 881, "OP1"]]}


def test_sealing_twice_changes_nothing_and_nothing_is_recorded_afterwards(directory: RunDirectory) -> None:
    """The footer is the last line, whoever comes late."""
    recorder = Recorder(directory, run=RUN)
    recorder.seal()
    before = directory.history.read_text()
    recorder.seal()
    with pytest.raises(ValueError, match="sealed"):
        recorder.record(operation(1))
    with pytest.raises(ValueError, match="sealed"):
        recorder.acknowledge(process=3, operation=1, acks=[])
    assert directory.history.read_text() == before


def test_threads_never_tear_each_others_lines(directory: RunDirectory) -> None:
    """Every line of a history that eight threads wrote is whole, and the footer counts them."""
    recorder = Recorder(directory, run=RUN)

    def write() -> None:
        for number in range(100):
            recorder.announce(operation(number))
            recorder.record(operation(number))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.seal()
    assert len(read(directory.history).entries) == 800
