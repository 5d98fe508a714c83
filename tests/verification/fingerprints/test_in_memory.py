"""Small runs pass unread if everything in them agrees; any defect makes them suspect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.judge_mutants.base import RUNS
from benchmarks.judge_mutants.in_memory_rows import run_in_memory
from tests.support.generated import generated
from tests.support.planted import copies
from tests.support.planted.busy import A0, A1, B0, busy
from tests.support.planted.cases import planted_all
from tests.support.planted.histories import MS, Plant
from tests.support.planted.programs import build
from verification.evidence.rows import small_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.fingerprints.in_memory import read_into_memory, small_run, work
from verification.fingerprints.inputs import files
from verification.fingerprints.strategy import is_small
from verification.fingerprints.workers.agreement import disagreement
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.history import Outcome
from verification.vocabulary.violations import RawViolation

#: Without that of a pipeline: its outputs may come in any order, so its records are read.
REAL = sorted(path.name for path in RUNS.iterdir() if path.is_dir() and path.name != "transactional-relay")
GENERATED = 400
#: Anomalies that need no records: of ends, operations, coordinators, nodes, pipelines; and of leaders, which name no record.
WITHOUT_RECORDS = (
    *(Anomaly.STUCK_LSO, Anomaly.STRANDED_PRODUCER, Anomaly.ILLEGAL_TRANSITION, Anomaly.LOST_NODE),
    *(Anomaly.NO_PROGRESS, Anomaly.SILENT_METRIC, Anomaly.STATE_DIVERGENCE),
)


def _of_records(found: list[RawViolation]) -> list[RawViolation]:
    by_leader = (Anomaly.HUNG_TRANSACTION, None)
    return [each for each in found if each.anomaly not in WITHOUT_RECORDS and (each.anomaly, each.process) != by_leader]


@pytest.mark.parametrize("name", REAL)
def test_real_runs_with_faults_pass(name: str) -> None:
    """With crashed leaders, zombies and killed copiers, and the records of their live observers."""
    run = read_run(RunDirectory(RUNS / name))
    case = small_run(run, small_rows(run), files([run]))
    mine = read_into_memory(case)
    assert sum(len(each.offset) for each in mine.polled) > mine.captures["log"].num_rows
    assert disagreement(mine) is None
    (said,) = [row for batch in work([_numbers(0)], [case]) for row in batch.to_pylist()]
    assert said == {"run": run.run, "disagreement": None, "broke": None}


def _numbers(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"id": list(numbers)})


def test_what_cannot_be_read_is_suspect_and_harms_no_other_run() -> None:
    """A run whose file is gone when the worker reads it is left to the check of every record."""
    runs = [read_run(RunDirectory(RUNS / name)) for name in REAL[:2]]
    cases = [small_run(run, small_rows(run), files([run])) for run in runs]
    gone = small_run(runs[0], small_rows(runs[0]), {**files([runs[0]]), "committed": ("/nowhere/part-0.parquet",)})
    said = [row for batch in work([_numbers(0, 1)], [gone, cases[1]]) for row in batch.to_pylist()]
    assert said[0]["broke"].startswith("FileNotFoundError")
    assert (said[1]["disagreement"], said[1]["broke"]) == (None, None)


def test_who_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is held in memory if the records of the log, once per reader, are few enough."""
    run = read_run(RunDirectory(RUNS / REAL[0]))
    rows = run.capture_reader.count("log") * (1 + len(run.experiment.observers))
    assert rows > run.capture_reader.count("log")
    monkeypatch.setattr("verification.fingerprints.strategy.ROWS_MIN", rows)
    assert not is_small(run)
    monkeypatch.setattr("verification.fingerprints.strategy.ROWS_MIN", rows + 1)
    assert is_small(run)
    assert not is_small(replace(run, experiment=replace(run.experiment, has_log=False)))


def _dropped(plant: Plant, *place: int, observer: int) -> None:
    plant.rows["observations"] = [
        row
        for row in plant.rows["observations"]
        if (row["topic_index"], row["partition"], row["offset"], row["observer_index"]) != (*place, observer)
    ]


def _skipped(plant: Plant) -> None:
    _dropped(plant, *A0, 0, observer=0)


def _again(plant: Plant) -> None:
    row = plant.at("observations", *A0, 1)
    plant.rows["observations"].append({**row, "poll": 1_000})


def _exchanged(plant: Plant) -> None:
    one, other = plant.at("observations", *A0, 0), plant.at("observations", *A0, 1)
    one["position"], other["position"] = other["position"], one["position"]


def _another_content(plant: Plant) -> None:
    plant.at("observations", *A0, 0)["identity_digest"] += 1


def _without_identity(plant: Plant) -> None:
    plant.at("observations", *A0, 0).update(identity_digest=None, valid=False)


def _early(plant: Plant) -> None:
    plant.at("observations", *A0, 0)["received_ns"] = MS


def _aborted(plant: Plant) -> None:
    mine = [row for row in plant.rows["observations"] if row["observer_index"] == 0]
    aborted = next(row for row in plant.rows["observations"] if row["offset"] not in {each["offset"] for each in mine})
    aborted.update(observer_index=0, committed_reader=True)


def _beyond(plant: Plant) -> None:
    row = plant.at("observations", *B0, 0)
    plant.rows["observations"].append({**row, "offset": 1_000, "poll": 1_000})


def _of_no_log(plant: Plant) -> None:
    for name in ("log", "uncommitted", "committed", "operations", "acks"):
        plant.rows[name] = []


@pytest.mark.parametrize(
    "tamper",
    [_skipped, _again, _exchanged, _another_content, _without_identity, _early, _aborted, _beyond, _of_no_log],
)
def test_what_observers_were_given_is_held_against_the_log(tamper: Callable[[Plant], None]) -> None:
    """Each record of the log for their isolation level, once, in order, with its content, and not too early."""
    plant = busy("observed").finish()
    assert disagreement(run_in_memory(plant.rows)) is None
    tamper(plant)
    assert disagreement(run_in_memory(plant.rows)) in (
        "the records that an observer received",
        "an observer of an empty log",
    )


def test_an_observer_may_have_stopped_anywhere() -> None:
    """Records after the last one that it received prove nothing."""
    plant = busy("stopped").finish()
    last = max(row["offset"] for row in plant.rows["observations"] if (row["topic_index"], row["partition"]) == A0)
    for observer in (0, 1):
        _dropped(plant, *A0, last, observer=observer)
    assert disagreement(run_in_memory(plant.rows)) is None
    plant.rows["observations"] = []
    assert disagreement(run_in_memory(plant.rows)) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("committed", "values that are not of this run in committed"),
        ("log", "values that are not of this run"),
        ("order", "records that are out of their send order"),
        ("epoch", "a producer's epoch that goes back"),
        ("sequence", "a producer's numbers that do not follow"),
        ("acknowledgement", "1 operations"),
    ],
)
def test_a_disagreement_is_named(wrong: str, said: str) -> None:
    """The first disagreement, for the log."""
    planted = busy("said")
    if wrong == "log":
        planted.append(planted.client(), A1, b"foreign", transactional=False)
    plant = planted.finish()
    row = plant.at("log", *A0, 1)
    if wrong == "committed":
        plant.at("committed", *A0, 0)["valid"] = False
    elif wrong == "order":
        row["send_order"] = plant.at("log", *A0, 0)["send_order"]
    elif wrong == "epoch":
        row["producer_epoch"] += 1
    elif wrong == "sequence":
        row["sequence"] += 5
    elif wrong == "acknowledgement":
        plant.rows["acks"].pop()
    assert disagreement(run_in_memory(plant.rows)) == said


def test_nothing_planted_or_generated_passes_with_violations_in_its_records() -> None:
    """All planted histories, and hundreds that were generated and tampered with; most clean ones pass."""
    plants = [plant for plant, _ in planted_all().values()]
    plants += [build(program, f"g{number:06d}") for number, program in enumerate(generated(GENERATED, 23))]
    quiet = 0
    for plant in (each for each in plants if each.experiment.has_log):
        if disagreement(run_in_memory(plant.rows)) is None:
            quiet += 1
            assert _of_records(judge_rows(plant.rows)) == [], plant.experiment.run
    assert quiet > GENERATED // 8


def test_a_copy_of_an_aborted_input_is_suspect() -> None:
    """By its input alone, because everything about the copy itself agrees."""
    assert disagreement(run_in_memory(copies.clean_copies("clean")[0].rows)) is None
    assert disagreement(run_in_memory(copies.copied_aborted("copied")[0].rows)) == "1 blocks of copied inputs"


def test_equal_times_count_for_the_operation() -> None:
    """A successor whose initialisation completed at the moment of a decision came after it."""
    planted = busy("superseded")
    old = planted.client("tx-9")
    told, _ = planted.transaction(old, (A0, B0))
    planted.client("tx-9")
    plant = planted.finish()
    (init,) = [each for each in plant.operations if each.transactional_id == "tx-9" and each.process > old.process]
    assert told.decided_ns is not None
    for at, expected in ((told.decided_ns, None), (told.decided_ns - 1, "1 operations")):
        (mine,) = [each for each in plant.operations if each.process == init.process]
        plant.retell(mine, invoked_ns=at - 1, completed_ns=at)
        assert disagreement(run_in_memory(plant.rows)) == expected
    (mine,) = [each for each in plant.operations if each.process == init.process]
    plant.retell(mine, outcome=Outcome.FAIL)
    assert disagreement(run_in_memory(plant.rows)) is None


def test_a_capture_may_lie_in_several_files(tmp_path: Path) -> None:
    """Each file numbers its texts by itself, and the first file need not have all of them."""
    run = read_run(RunDirectory(RUNS / REAL[0]))
    found = files([run])
    (path,) = found["log"]
    rows = pq.read_table(path)
    first = pc.index(rows["control"].is_valid(), value=True).as_py()
    parts = [rows.slice(0, first), rows.slice(first)]
    paths = [str(tmp_path / f"part-{number}.parquet") for number in range(len(parts))]
    for part, each in zip(parts, paths, strict=True):
        pq.write_table(part, each)
    assert first
    assert disagreement(read_into_memory(small_run(run, small_rows(run), {**found, "log": tuple(paths)}))) is None
    assert disagreement(read_into_memory(small_run(run, small_rows(run), {**found, "log": tuple(paths[1:])})))
