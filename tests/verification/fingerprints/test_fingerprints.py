"""Fingerprints first: the same violations as by checking every record, from a fraction of the records."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.generated import generated
from tests.support.judging import evidence_of_frames, frames
from tests.support.planted import files as planted_files
from tests.support.planted.busy import A0, ALL, busy
from tests.support.planted.cases import planted_all
from tests.support.planted.histories import Plant, Planted
from tests.support.planted.programs import build
from verification.evidence.row_types import Row
from verification.evidence.run_evidence import read_run
from verification.fingerprints.strategy import Strategy, fits
from verification.judge.primary_findings import attribute
from verification.vocabulary.history import Action, Intent, Operation, Outcome
from verification.vocabulary.violations import RawViolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.spark.dataframes import Dataframes

pytestmark = pytest.mark.spark
GENERATED = 200
#: Offsets are multiplied by this in every other history, so that chunks and blocks of offsets end within operations.
APART = 700
#: The findings (wording included) and shown records, by run.
Answer = tuple[dict[str, Counter[str]], dict[str, Counter[str]]]


def unobserved(plant: Plant, *, apart: int = 1) -> Plant:
    """The same evidence without live observers, and with `apart` times the offsets."""
    rows: dict[str, list[dict[str, Any]]] = {**plant.rows, "observers": [], "observations": []}
    for name, every in rows.items():
        rows[name] = [{**row, **_apart(row, apart)} for row in every]
    return replace(plant, rows=rows)


def _apart(row: Mapping[str, Any], apart: int) -> dict[str, int]:
    names = ("offset", "source_offset", "high_watermark", "last_stable_offset")
    return {name: row[name] * apart for name in names if (row.get(name) or 0) > 0}


def fitting(plants: Iterable[Plant]) -> list[Plant]:
    """The runs that fit fingerprints, every other one with its offsets apart."""
    with_log = [plant for plant in plants if plant.experiment.has_log]
    return [unobserved(plant, apart=APART if number % 2 else 1) for number, plant in enumerate(with_log)]


def _found(violations: Mapping[str, Iterable[RawViolation]]) -> dict[str, Counter[str]]:
    return {
        run: Counter(str(astuple(replace(each, places=tuple(sorted(each.places))))) for each in every)
        for run, every in violations.items()
    }


def _shown(rows: Mapping[tuple[str, str], Iterable[Mapping[str, Any]]]) -> dict[str, Counter[str]]:
    shown: dict[str, Counter[str]] = {}
    for (run, anomaly), every in rows.items():
        texts = (f"{anomaly} {json.dumps(row, sort_keys=True)}" for row in every)
        shown.setdefault(run, Counter()).update(texts)
    return shown


def both(spark: SparkSession, evidence: Dataframes) -> tuple[Answer, Answer]:
    """The findings and shown records, by checking every record, and by fingerprints first."""
    from verification.checks import CHECKS
    from verification.checks.facts import derive
    from verification.fingerprints import suspect_facts as fingerprints
    from verification.judge import finding_files
    from verification.judge.run_checks import collect

    whole = derive(evidence)
    found = collect(whole, CHECKS)
    attributed = {run: attribute(violations) for run, violations in found.items()}
    suspects = fingerprints.derive(evidence_of_frames(evidence), share_max=1.0)
    assert suspects is not None
    left = (_found(found), _shown(finding_files.surroundings(spark, whole.places, attributed)))
    places = suspects.around(spark, attributed)
    return left, (
        _found(collect(suspects.facts, CHECKS)),
        _shown(finding_files.surroundings(spark, places, attributed)),
    )


def _generated() -> list[Plant]:
    """Histories of any kind, tampered with at random."""
    return [build(program, f"g{number:06d}") for number, program in enumerate(generated(GENERATED, 7))]


def _instead(run: str) -> Plant:
    """Readers get a record where the log has an aborted one, in a transaction that agrees otherwise."""
    planted = busy(run)
    client = planted.client("tx-9")
    planted.transaction(client, (A0, A0), decision=None)
    _, aborted = planted.transaction(client, (A0, A0), intent=Intent.ABORT, decision="abort")
    plant = planted.finish()
    other = plant.at("committed", 0, 1, 0)
    plant.rows["committed"].append({**other, "partition": 0, "offset": aborted[0]["offset"]})
    return plant


@pytest.fixture(scope="module")
def answers(spark: SparkSession) -> tuple[Answer, Answer]:
    """The results of both strategies for all histories, in one job each."""
    planted = [plant for plant, _ in planted_all().values()]
    return both(spark, frames(spark, fitting([*planted, _instead("instead"), *_generated()])))


@pytest.mark.deep
@pytest.mark.parametrize("history", ["case-", "instead", "g"])
def test_both_ways_find_and_show_the_same(answers: tuple[Answer, Answer], history: str) -> None:
    """Word by word, for every planted history and for hundreds that were generated and tampered with."""
    left, right = ([{run: said[run] for run in said if run.startswith(history)} for said in one] for one in answers)
    assert left == right
    assert all(left)


def _twice(frame: str) -> Callable[[Plant], None]:
    return lambda plant: plant.rows[frame].append(dict(plant.at(frame, 0, 0, 0)))


def _changed(frame: str, **values: int | str) -> Callable[[Plant], None]:
    return lambda plant: plant.at(frame, 0, 0, 0).update(values)


def _dropped(frame: str, offset: int = 0) -> Callable[[Plant], None]:
    return lambda plant: plant.drop(frame, 0, 0, offset)


def _exchanged(plant: Plant) -> None:
    """Two records of one transaction swap their contents in one capture: the plain sums stay the same."""
    one, other = (plant.at("committed", 0, 0, offset) for offset in (0, 1))
    for name in ("digest", "identity_digest"):
        one[name], other[name] = other[name], one[name]


def _retold(outcome: Outcome) -> Callable[[Plant], None]:
    return lambda plant: plant.retell(_first(plant), outcome=outcome)


def _first(plant: Plant) -> Operation:
    return next(each for each in plant.operations if each.action is Action.TRANSACTION)


def _forgotten(plant: Plant) -> None:
    plant.rows["operations"] = [row for row in plant.rows["operations"] if row["operation"] != 1 or row["process"] != 0]


def _superseded(plant: Plant) -> None:
    first = _first(plant)
    rival = {**plant.rows["operations"][0], "process": 9, "operation": 0}
    plant.rows["operations"].append({**rival, "completed_ns": (first.invoked_ns or 0) + 1})


def _unacknowledged(plant: Plant) -> None:
    plant.rows["acks"].remove(next(row for row in plant.rows["acks"] if row["process"] == 2))


def _marker(plant: Plant) -> Row:
    return next(row for row in plant.rows["log"] if row["control"] is not None)


#: The changes to evidence in which all agrees; offset 0 of the first partition is a committed transaction's.
DIFFERENCES: dict[str, Callable[[Plant], None]] = {
    "not delivered": _dropped("committed"),
    "not given": _dropped("uncommitted"),
    "not there": _dropped("log"),
    "delivered twice": _twice("committed"),
    "given twice": _twice("uncommitted"),
    "there twice": _twice("log"),
    "delivered otherwise": _changed("committed", digest=1),
    "given otherwise": _changed("uncommitted", identity_digest=1),
    "delivered as another's": _changed("committed", operation=3),
    "delivered in another's place": _exchanged,
    "another index": _changed("log", index=1),
    "no such index": _changed("log", index=7),
    "written to another partition": _changed("log", intended_partition=1),
    "written to another topic": _changed("log", intended_topic_index=1),
    "an epoch too high before it": _changed("log", producer_epoch=9),
    "told aborted": _retold(Outcome.FAIL),
    "told more": lambda plant: plant.retell(_first(plant), records=6),
    "told less": lambda plant: plant.retell(_first(plant), records=4),
    "of no operation": _forgotten,
    "superseded": _superseded,
    "not acknowledged": _unacknowledged,
    "decided otherwise": lambda plant: _marker(plant).update(control="abort"),
    "decided by nothing": lambda plant: _marker(plant).update(control="other"),
    "undecided": lambda plant: plant.rows["log"].remove(_marker(plant)),
}


def test_each_difference_makes_its_operation_suspect(spark: SparkSession) -> None:
    """No operation is suspect if all agrees; one is if any one thing is changed, in each sum that is compared."""
    from verification.checks.operations import operations
    from verification.fingerprints.suspect_facts import aggregates, suspects
    from verification.fingerprints.workers.packed import PACKED
    from verification.fingerprints.workers.suspects import of_acks

    changes: dict[str, Callable[[Plant], None]] = {"nothing": lambda _: None, **DIFFERENCES}
    plants = []
    for number, change in enumerate(changes.values()):
        plants.append(busy(str(number), observers=()).finish())
        change(plants[-1])
    evidence = frames(spark, plants)
    inputs = evidence_of_frames(evidence)
    every = aggregates(inputs)
    answered = inputs.answers.scanned((), partial(of_acks, buckets=every.buckets), PACKED)
    found = suspects(every, operations(evidence), answered)
    seen = {row["run"] for row in found.select("run").distinct().toArrow().to_pylist()}
    assert {name for number, name in enumerate(changes) if str(number) in seen} == set(DIFFERENCES)


def many(run: str) -> Planted:
    """A hundred honest transactions of three clients."""
    planted = Planted(run=run, observers=())
    clients = [planted.client(f"tx-{number}") for number in range(3)]
    for number in range(100):
        decision = "abort" if number % 5 == 4 else "commit"
        planted.transaction(clients[number % 3], ALL, intent=Intent(decision), decision=decision)
    return planted


def torn(run: str) -> Plant:
    """The same, but one record of the last of them is not delivered."""
    plant = many(run).finish()
    plant.drop("committed", 1, 1, plant.rows["committed"][-1]["offset"])
    return plant


def test_only_suspects_are_read(spark: SparkSession) -> None:
    """Of hundreds of records, only those of the one torn transaction are read, with their control records."""
    from verification.fingerprints.suspect_facts import derive

    plants = [many("clean").finish(), torn("torn")]
    evidence = frames(spark, plants)
    suspects = derive(evidence_of_frames(evidence))
    assert suspects is not None
    assert (suspects.read, suspects.held) == (2 * len(ALL), sum(len(plant.rows["log"]) for plant in plants))


def _judged_both_ways(spark: SparkSession, plant: Plant, place: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The `verdicts.json` and the findings of a run, by both strategies, without the seconds."""
    from verification.judge.judge import judge

    said = {}
    for strategy in (Strategy.EVERY_RECORD, Strategy.FINGERPRINTS):
        directory = planted_files.write(plant, place / strategy)
        assert fits(read_run(directory), strategy) is (strategy is Strategy.FINGERPRINTS)
        (verdict,) = judge(spark, [directory], strategy=strategy)
        assert verdict.judged_s
        verdicts = {**json.loads(directory.verdicts.read_text()), "judged_s": None}
        found = sorted(directory.findings.rglob("*.jsonl"))
        said[strategy] = (verdicts, {str(path.relative_to(directory.findings)): path.read_text() for path in found})
    assert said[Strategy.EVERY_RECORD] == said[Strategy.FINGERPRINTS]
    return said[Strategy.FINGERPRINTS]


def test_judgements_are_the_same_files(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Verdicts and findings of a run are the same bytes both ways, from a fraction of the records."""
    plant = torn("bytes")
    caplog.set_level(logging.DEBUG, logger="verification.judge.judge")
    assert _judged_both_ways(spark, plant, tmp_path)[1]
    said_of = [record.getMessage() for record in caplog.records if "rows of the log" in record.getMessage()]
    assert said_of == [f"checked {2 * len(ALL)} of {len(plant.rows['log'])} rows of the log"]


@pytest.mark.deep
def test_what_was_acknowledged_is_promised_whatever_the_history_counts(spark: SparkSession, tmp_path: Path) -> None:
    """The history need not say how many records an append has; one that was acknowledged and is gone is lost."""
    planted = many("uncounted")
    told, (gone,) = planted.plain(planted.client(), (A0,))
    plant = planted.finish()
    plant.retell(told, records=0)
    for name in ("log", "uncommitted", "committed"):
        plant.drop(name, *A0, gone["offset"])
    verdicts, _ = _judged_both_ways(spark, plant, tmp_path)
    assert [(each["anomaly"], each["count"]) for each in verdicts["findings"]] == [("lost-write", 1)]


def test_too_many_suspects_are_refused(spark: SparkSession) -> None:
    """If too much of the log would be read again, fingerprints refuse."""
    from verification.fingerprints.suspect_facts import derive

    plant = busy("doubtful", observers=()).finish()
    plant.rows["committed"].clear()
    evidence = frames(spark, [plant])
    assert derive(evidence_of_frames(evidence)) is None


@pytest.mark.parametrize("but", ["observers", "log", "size", "two inputs"])
def test_which_runs_fingerprints_fit(tmp_path: Path, but: str) -> None:
    """Large runs with a log, without live observers and with one input topic; all others are checked record by record."""
    planted = busy("fits", has_log=but != "log", **({} if but == "observers" else {"observers": ()}))
    plant = planted.finish()
    if but == "two inputs":
        plant = replace(plant, experiment=replace(plant.experiment, group="copiers"))
        offsets = {"run": "fits", "partition": 0, "offset": 1}
        plant.rows["group_offsets"] = [{**offsets, "topic_index": topic_index} for topic_index in (0, 1)]
    evidence = read_run(planted_files.write(plant, tmp_path / "run"))
    assert not fits(evidence)
    assert fits(evidence, Strategy.FINGERPRINTS) is (but == "size")
    assert not fits(evidence, Strategy.EVERY_RECORD)


def test_files_are_read_past_spark_only_when_they_are_all(tmp_path: Path) -> None:
    """Spark reads a capture that has a part in a folder of its own, because it finds that part."""
    from verification.fingerprints.inputs import files

    directory = planted_files.write(many("nested").finish(), tmp_path / "run")
    assert set(files([read_run(directory)])) == {"log", "uncommitted", "committed"}
    (part,) = directory.log.glob("*.parquet")
    (directory.log / "deeper").mkdir()
    rows = pq.read_table(part)
    pq.write_table(rows.slice(0, 50), part)
    pq.write_table(rows.slice(50), directory.log / "deeper" / "part-1.parquet")
    assert set(files([read_run(directory)])) == {"uncommitted", "committed"}
