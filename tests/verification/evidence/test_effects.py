"""Rows of a database are outputs to both judges: lost, doubled, of an aborted input, and of no input."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support.planted import files
from tests.support.planted.copies import ALSO, COPIED, IN, OUT
from tests.support.planted.histories import Planted
from tests.support.planted.pipelines import ROW_GROUP_ROWS
from verification.evidence import references
from verification.evidence.columns import CAPTURED
from verification.evidence.rows import all_rows
from verification.evidence.run_directory import RunDirectory
from verification.evidence.run_evidence import read_run
from verification.reference import judge_rows
from verification.sources import effect_rows
from verification.vocabulary import quiescent_state
from verification.vocabulary.anomalies import Anomaly
from verification.vocabulary.experiment import EFFECT, TopicRole, UnfitExperimentError, read
from verification.vocabulary.history import Action, Intent
from verification.vocabulary.quiescent_state import PartitionEnd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: (anomaly, topic index, partition, offset)
FoundAt = tuple[str, int | None, int | None, int | None]
TOPICS = (
    COPIED[IN],
    replace(COPIED[OUT], reference="value"),
    replace(COPIED[ALSO], reference="value", shape=EFFECT),
)


def _run(root: Path, *, wrong: bool) -> tuple[RunDirectory, set[FoundAt]]:
    """Six inputs and an aborted one, each with a record in a topic and a row; the directory as a capture leaves it."""
    planted = Planted(run=root.name, topics=TOPICS, fan_out=2, order_claimed=False, pipeline=0)
    pipeline = planted.client()
    planted.plain(pipeline, (), action=Action.COPY)
    _, inputs = planted.plain(planted.client(), ((IN, 0),) * 6)
    _, (aborted,) = planted.transaction(planted.client("tx"), ((IN, 0),), intent=Intent.ABORT, decision="abort")
    for row in inputs:
        planted.append(pipeline, (OUT, 0), row["_value"], transactional=False)
    plant = planted.finish()
    plant.rows["group_offsets"].append({"run": planted.run, "topic_index": IN, "partition": 0, "offset": 7})
    values: list[bytes | None] = [row["_value"] for row in inputs]
    found: set[FoundAt] = set()
    if wrong:
        del values[2]
        values += [values[0], aborted["_value"], b"no input", None]
        found = {
            ("offset-without-output", IN, 0, 2),
            ("duplicate", ALSO, 0, 5),
            ("aborted-read", ALSO, 0, 6),
            ("phantom-record", ALSO, 0, 7),
            ("phantom-record", ALSO, 0, 8),
        }
    directory = files.write(plant, root)
    effect_rows.write(directory, plant.experiment, {TOPICS[ALSO].name: values})
    end = PartitionEnd(
        topic=TOPICS[ALSO].name, partition=0, start=0, high_watermark=len(values), last_stable_offset=len(values)
    )
    captures = quiescent_state.read(directory.captures)
    ends = tuple(end if each.topic == end.topic else each for each in captures.ends)
    rows = {name: count + len(values) for name, count in captures.rows.items()}
    replace(captures, ends=ends, rows=rows).write(directory.captures)
    references.resolve(directory, plant.experiment, row_group_rows=ROW_GROUP_ROWS)
    return directory, found


@pytest.mark.parametrize("wrong", [False, True])
def test_the_reference_judge_finds_what_is_wrong_with_rows(tmp_path: Path, wrong: bool) -> None:
    """Each at the number of its row; and nothing in a clean table."""
    directory, expected = _run(tmp_path / "planted", wrong=wrong)
    found = judge_rows(all_rows(read_run(directory)))
    assert {(str(each.anomaly), each.topic_index, each.partition, each.offset) for each in found} == expected
    assert len(found) == len(expected)


@pytest.mark.spark
@pytest.mark.deep
def test_spark_finds_what_is_wrong_with_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The same, from the same files."""
    from verification.judge.judge import judge

    (good, _), (bad, expected) = (
        _run(tmp_path / name, wrong=wrong) for name, wrong in (("good", False), ("bad", True))
    )
    passed, failed = judge(spark, [good, bad])
    assert not passed.findings
    # Six inputs, with a record in a topic and a row each; the aborted input is not committed.
    assert [dict(each.counts)["committed inputs"] for each in (passed, failed)] == [6, 6]
    assert [dict(each.counts)["committed outputs"] for each in (passed, failed)] == [12, 15]
    assert {each.anomaly: each.count for each in failed.findings} == Counter(anomaly for anomaly, *_ in expected)
    (doubled,) = [each for each in failed.findings if each.anomaly == Anomaly.DUPLICATE]
    assert doubled.examples[0].topic == TOPICS[ALSO].name


def test_rows_have_the_columns_and_types_of_records(tmp_path: Path) -> None:
    """In all captures alike, outside of any transaction."""
    directory, _ = _run(tmp_path / "planted", wrong=True)
    for capture in CAPTURED:
        topic, rows = (pq.read_table(directory.root / capture / name) for name in ("part-0.parquet", "also.parquet"))
        assert rows.schema.equals(topic.schema)
        assert rows["offset"].to_pylist() == list(range(9))
    log = pq.read_table(directory.log / "also.parquet")
    assert {tuple(row[name] for name in ("producer_id", "transactional", "control")) for row in log.to_pylist()} == {
        (-1, False, None)
    }


def test_effects_without_a_reference_are_refused(tmp_path: Path) -> None:
    """Nothing would say which input a row came from."""
    directory, _ = _run(tmp_path / "planted", wrong=False)
    text = directory.experiment.read_text(encoding="utf-8")
    directory.experiment.write_text(text.replace('"reference": "value"', '"reference": ""'), encoding="utf-8")
    with pytest.raises(
        UnfitExperimentError,
        match="topic also has the shape 'effect', which is not known or needs the reference 'value'",
    ):
        read(directory.experiment)
    assert TOPICS[ALSO].role is TopicRole.OUTPUT
