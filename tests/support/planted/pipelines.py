"""Planted runs of a pipeline, whose outputs carry the identities of their inputs unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.planted.copies import ALSO, COPIED, IN, OUT
from tests.support.planted.files import write
from tests.support.planted.histories import Client, Plant, Planted, valued
from verification.evidence import references
from verification.evidence.columns import IDENTITY
from verification.evidence.row_types import Row
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.experiment import TopicRole
from verification.vocabulary.history import Action, Intent
from verification.vocabulary.identity import Identity, decode

TOPICS = tuple(topic if topic.role is TopicRole.INPUT else replace(topic, reference="value") for topic in COPIED)
#: (anomaly, topic index, partition, offset)
FoundAt = tuple[str, int | None, int | None, int | None]
#: Small, so that a capture has several row groups.
ROW_GROUP_ROWS = 5


def _given(planted: Planted, pipeline: Client, value: bytes, topic: int, decision: str = "commit") -> Row:
    """One output, in a transaction of its own."""
    row = planted.append(pipeline, (topic, 0), value, transactional=True)
    planted.mark(pipeline, (topic, 0), decision)
    return row


def _piped(run: str) -> tuple[Planted, Client, list[Row], list[Row]]:
    """Six inputs, each with its outputs, and then two aborted inputs without; and these inputs."""
    planted = Planted(run=run, topics=TOPICS, fan_out=2, order_claimed=False, pipeline=0)
    pipeline = planted.client()
    planted.plain(pipeline, (), action=Action.COPY)
    _, inputs = planted.plain(planted.client(), ((IN, 0),) * 6)
    for row in inputs:
        _given(planted, pipeline, row["_value"], OUT, "abort")
        for topic in (OUT, ALSO):
            _given(planted, pipeline, row["_value"], topic)
    _, aborted = planted.transaction(planted.client("writer"), ((IN, 0),) * 2, intent=Intent.ABORT, decision="abort")
    return planted, pipeline, inputs, aborted


def _done(planted: Planted, offset: int) -> Plant:
    plant = planted.finish()
    plant.rows["group_offsets"].append({"run": planted.run, "topic_index": IN, "partition": 0, "offset": offset})
    return plant


def clean(run: str) -> tuple[Plant, set[FoundAt]]:
    """Every committed input has its outputs."""
    planted, _, _, _ = _piped(run)
    return _done(planted, 9), set()


def wrong(run: str) -> tuple[Plant, set[FoundAt]]:
    """Outputs that are lost, doubled, of an aborted input, ahead of the group's offset, and of no input."""
    planted, pipeline, inputs, aborted = _piped(run)
    _, (lost, ahead) = planted.plain(planted.client(), ((IN, 0),) * 2)
    _given(planted, pipeline, lost["_value"], OUT)
    unknown = replace(_identity(lost), index=9, count=10).encode()
    outputs = {
        "duplicate": _given(planted, pipeline, inputs[3]["_value"], ALSO),
        "aborted-read": _given(planted, pipeline, aborted[1]["_value"], OUT),
        "output-without-offset": _given(planted, pipeline, ahead["_value"], OUT),
        "phantom-record": _given(planted, pipeline, unknown, OUT),
    }
    garbage = _given(planted, pipeline, b"garbage", ALSO)
    found = {_at(anomaly, row) for anomaly, row in outputs.items()}
    found |= {_at("offset-without-output", lost), _at("phantom-record", garbage)}
    return _done(planted, int(ahead["offset"])), found


def elsewhere(plant: Plant) -> Plant:
    """The same with other values: outputs name their inputs in a header, and one of them has no value."""
    for name in ("log", "uncommitted", "committed", "observations"):
        for row in plant.rows[name]:
            if row["topic_index"] != IN and row["valid"]:
                value = None if row["offset"] == 2 else f"paid 5 € for {row['index']}".encode()
                columns = valued(value)
                # An observer received a text without an identity; captures have that of the header.
                kept = () if name == "observations" else (*IDENTITY, "valid")
                row |= {each: columns[each] for each in columns if each in row and each not in kept}
    topics = tuple(replace(each, reference=each.reference and "header:input") for each in plant.experiment.topics)
    return replace(plant, experiment=replace(plant.experiment, topics=topics))


def _identity(row: Row) -> Identity:
    identity = decode(row["_value"])
    assert identity is not None
    return identity


def _at(anomaly: str, row: Row) -> FoundAt:
    return (anomaly, row["topic_index"], row["partition"], row["offset"])


def resolved(plant: Plant, root: Path) -> RunDirectory:
    """The run directory of a planted run as a capture leaves it."""
    directory = write(plant, root)
    references.resolve(directory, plant.experiment, row_group_rows=ROW_GROUP_ROWS)
    return directory
