"""Outputs of a pipeline become copies in all captures alike, and both judges find what is wrong with them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.planted import files, pipelines
from tests.support.planted.copies import ALSO, IN, OUT
from tests.support.planted.histories import Plant
from tests.support.planted.pipelines import ROW_GROUP_ROWS
from verification.evidence import references
from verification.evidence.columns import CAPTURED
from verification.evidence.row_types import Row
from verification.evidence.rows import all_rows, small_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.fingerprints.in_memory import read_into_memory, small_run
from verification.fingerprints.inputs import files as files_of
from verification.fingerprints.workers.columns import NumpyColumns
from verification.fingerprints.workers.observer_check import as_the_log_has_it, readable
from verification.reference import judge_rows
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import Experiment, TopicRole, UnfitExperimentError, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place = tuple[int, int, int]
#: The columns that may change.
IDENTIFIED = {
    *("process", "operation", "kind", "index", "count", "intended_topic_index", "intended_partition"),
    *("send_order", "source_partition", "source_offset"),
}


def _rows(directory: RunDirectory, capture: str) -> dict[Place, Row]:
    rows: list[Row] = pq.read_table(directory.root / capture).to_pylist()
    return {(row["topic_index"], row["partition"], row["offset"]): row for row in rows}


def _changed(before: Row, after: Row) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def _bytes(directory: RunDirectory) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.root.rglob("*") if path.is_file()}


@pytest.fixture
def plant() -> Plant:
    """A run with lost, doubled and other wrong outputs."""
    return pipelines.wrong("planted")[0]


def test_every_capture_holds_the_same_copies(plant: Plant, tmp_path: Path) -> None:
    """A record is the same in the log and for both readers, and nothing but its identity has changed."""
    directory = files.write(plant, tmp_path / "run")
    before = {name: _rows(directory, name) for name in CAPTURED}
    references.resolve(directory, plant.experiment, row_group_rows=ROW_GROUP_ROWS)
    after = {name: _rows(directory, name) for name in CAPTURED}
    for name in CAPTURED:
        assert list(after[name]) == list(before[name])
        changed = set().union(*(_changed(row, after[name][place]) for place, row in before[name].items()))
        assert changed <= IDENTIFIED
        shared = set(CAPTURED[name]) - {"timestamp_ms"}
        assert all(
            row[column] == after["log"][place][column] for place, row in after[name].items() for column in shared
        )
    assert {"process", "source_offset", "index"} <= changed


def test_an_output_names_its_input(plant: Plant, tmp_path: Path) -> None:
    """Its source is the place of the input, and copies of one input have one number in each topic."""
    log = _rows(pipelines.resolved(plant, tmp_path / "run"), "log")
    for offset in range(6):
        for topic in (OUT, ALSO):
            (*_, last) = copies = [
                row
                for row in log.values()
                if row["topic_index"] == topic and (row["source_partition"], row["source_offset"]) == (0, offset)
            ]
            # One aborted and one committed attempt in the first topic; the fourth input is doubled in the other.
            assert len(copies) == 2 - (topic == ALSO and offset != 3)
            assert {(row["process"], row["operation"], row["kind"], row["send_order"]) for row in copies} == {
                (0, 0, "P", 0)
            }
            assert {row["index"] for row in copies} == {offset * 3 + topic}
            assert (last["intended_topic_index"], last["intended_partition"]) == (topic, 0)
            assert last["index"] < last["count"]
    assert all(row["source_offset"] == -1 for row in log.values() if row["topic_index"] == IN and row["valid"])


def test_an_unknown_reference_is_left_as_it_is(plant: Plant, tmp_path: Path) -> None:
    """A foreign value, an identity that no input has, and the inputs themselves."""
    log = _rows(pipelines.resolved(plant, tmp_path / "run"), "log")
    (garbage,) = [row for row in log.values() if row["valid"] is False]
    assert (garbage["topic_index"], garbage["process"], garbage["index"]) == (ALSO, None, None)
    (unknown,) = [row for row in log.values() if row["topic_index"] == OUT and row["index"] == 9 and row["process"]]
    assert (unknown["intended_topic_index"], unknown["source_offset"], unknown["count"]) == (IN, -1, 10)


def test_an_input_that_was_written_twice_is_its_first_record(tmp_path: Path) -> None:
    """Then its second record has no output, which is how a doubled input shows."""
    plant, _ = pipelines.clean("planted")
    first = plant.at("log", IN, 0, 0)
    for name in ("log", "uncommitted", "committed"):
        again = dict(plant.at(name, IN, 0, 0)) | {"offset": 9}
        plant.rows[name] = [again | {"sequence": 9, "control": None}, *plant.rows[name]]
    log = _rows(pipelines.resolved(plant, tmp_path / "run"), "log")
    assert {row["source_offset"] for row in log.values() if row["topic_index"] == OUT and row["valid"]} == set(range(6))
    assert log[IN, 0, 9]["identity_digest"] == first["identity_digest"]


def test_files_are_as_a_capture_leaves_them(plant: Plant, tmp_path: Path) -> None:
    """Small row groups, the marker, no checksum of an older file; and a second time changes nothing."""
    directory = files.write(plant, tmp_path / "run")
    checksum = directory.log / ".part-0.parquet.crc"
    checksum.write_bytes(b"crc")
    references.resolve(directory, plant.experiment, row_group_rows=ROW_GROUP_ROWS)
    assert {path.name for path in directory.log.iterdir()} == {"part-0.parquet", "_SUCCESS"}
    held = pq.read_metadata(directory.log / "part-0.parquet")
    assert held.num_row_groups == -(-held.num_rows // ROW_GROUP_ROWS)
    whole = _bytes(directory)
    references.resolve(directory, plant.experiment, row_group_rows=ROW_GROUP_ROWS)
    assert _bytes(directory) == whole


def test_a_run_without_references_is_not_touched(plant: Plant, tmp_path: Path) -> None:
    """Not even its files are written again."""
    directory = files.write(plant, tmp_path / "run")
    whole = _bytes(directory)
    topics = tuple(replace(topic, reference="") for topic in plant.experiment.topics)
    references.resolve(directory, replace(plant.experiment, topics=topics), row_group_rows=ROW_GROUP_ROWS)
    assert _bytes(directory) == whole


@pytest.mark.parametrize("form", [lambda plant: plant, pipelines.elsewhere])
@pytest.mark.parametrize("case", [pipelines.clean, pipelines.wrong])
def test_the_reference_judge_finds_what_is_wrong(case: Any, form: Any, tmp_path: Path) -> None:
    """Lost, doubled, of an aborted input, ahead of the group's offset, and of no input; and nothing in a clean run."""
    plant, expected = case("planted")
    found = judge_rows(all_rows(read_run(pipelines.resolved(form(plant), tmp_path / "run"))))
    assert {(str(each.anomaly), each.topic_index, each.partition, each.offset) for each in found} == expected
    assert len(found) == len(expected)


def test_copies_of_a_pipeline_that_was_stopped_early_are_not_judged(plant: Plant, tmp_path: Path) -> None:
    """An input that it had not yet worked on would look lost; records of no input are still found."""
    experiment = replace(plant.experiment, fan_out=None)
    directory = pipelines.resolved(replace(plant, experiment=experiment), tmp_path / "run")
    assert {each.anomaly for each in judge_rows(all_rows(read_run(directory)))} == {Anomaly.PHANTOM_RECORD}


@pytest.mark.spark
def test_spark_finds_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    """The same, from the same files, with the input of a wrong output in words."""
    from verification.judge.judge import judge

    good, bad = pipelines.clean("good")[0], pipelines.wrong("bad")[0]
    other_good, (other_bad, expected) = pipelines.clean("fine")[0], pipelines.wrong("poor")
    plants = (good, bad, pipelines.elsewhere(other_good), pipelines.elsewhere(other_bad))
    passed, failed, *others = judge(
        spark, [pipelines.resolved(each, tmp_path / each.experiment.run) for each in plants]
    )
    assert not passed.findings
    assert {each.anomaly: each.count for each in failed.findings} == Counter(anomaly for anomaly, *_ in expected)
    (read_,) = [each for each in failed.findings if each.anomaly == "aborted-read"]
    assert read_.examples[0].detail == "copy of the input in partition 0 at offset 7; by the log: abort"
    (phantoms,) = [each for each in others[1].findings if each.anomaly == "phantom-record"]
    assert "it names no input: there is no whole identity by the reference header:input" in {
        each.detail for each in phantoms.examples
    }
    assert [[(each.anomaly, each.count) for each in judged.findings] for judged in others] == [
        [(each.anomaly, each.count) for each in judged.findings] for judged in (passed, failed)
    ]


def test_observers_received_the_values_of_the_log_whatever_they_are(tmp_path: Path) -> None:
    """They are compared by digest: texts without an identity, of other bytes than ASCII, and of no bytes at all."""
    run = read_run(pipelines.resolved(pipelines.elsewhere(pipelines.clean("planted")[0]), tmp_path / "run"))
    held = read_into_memory(small_run(run, small_rows(run), files_of([run])))
    log = readable(NumpyColumns(held.captures["log"]), held.decided_ns)
    assert [as_the_log_has_it(seen, log) for seen in held.polled] == [True, True]


def _written(experiment: Experiment, path: Path, **changes: Any) -> Path:
    """scenario.json with other topics or fields than an experiment may have."""
    path.write_text(json.dumps({"format": 1, **asdict(experiment), **changes}))
    return path


def test_references_that_cannot_be_resolved_are_refused(plant: Plant, tmp_path: Path) -> None:
    """One sentence each: an unknown kind, no pipeline, no log, a reference of an input, several inputs."""
    experiment, path = plant.experiment, tmp_path / "scenario.json"
    own = asdict(experiment)["topics"]
    assert read(_written(experiment, path)) == experiment
    unknown = [own[0], own[1] | {"reference": "header"}, own[2]]
    with pytest.raises(UnfitExperimentError, match="reference is 'header' and must be one of value, key, header:NAME,"):
        read(_written(experiment, path, topics=unknown))
    of_input = [own[0] | {"reference": "value"}, *own[1:]]
    two_inputs = [*own, own[0] | {"name": "more"}]
    no_input = [own[1], own[2]]
    wrong: list[dict[str, Any]] = [{"topics": each} for each in (of_input, two_inputs, no_input)]
    for changes in (*wrong, {"pipeline": None}, {"has_log": False}):
        with pytest.raises(UnfitExperimentError, match="has a reference, which only an output may have"):
            read(_written(experiment, path, **changes))
    with pytest.raises(ValueError, match="only an output"):
        replace(experiment, pipeline=None)
    assert [topic.role for topic in experiment.topics].count(TopicRole.INPUT) == 1
