"""Copies compared with their inputs block by block, and the same input by input in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from verification.evidence.columns import TYPES
from verification.fingerprints.workers import aggregate, blocks
from verification.fingerprints.workers.blocks import BLOCKS, CopyBlocks, Input
from verification.fingerprints.workers.columns import NumpyColumns
from verification.fingerprints.workers.fragments import BLOCK_BITS, FRAGMENTS
from verification.fingerprints.workers.packed import PACKED, packed_rows

Row = dict[str, Any]
_GIVEN = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in aggregate.GIVEN])
#: Two outputs for each input in run a, one in b; c copies nothing.
FAN_OUT = {"a": 2, "b": 1}
ENDS = {("a", 0): 201, ("a", 1): 192, ("b", 0): 63}


def _copying() -> CopyBlocks:
    inputs = tuple(
        Input(run=run, topic_index=0, partition=partition, committed_offset=end)
        for (run, partition), end in ENDS.items()
    )
    return CopyBlocks(fan_out=FAN_OUT, inputs=inputs)


def _inputs() -> list[Row]:
    """The delivered records of the input topic, and of another one."""
    names = ("run", "topic_index", "partition", "offset")
    places = [(run, topic, at) for run in ("a", "b", "c") for topic in (0, 1) for at in (0, 1)]
    return [dict(zip(names, (*place, offset), strict=True)) for place in places for offset in range(0, 256, 3)]


def _copies(chosen: random.Random) -> list[tuple[Row, bool]]:
    """One copy of each input below the group's offset in each output; here and there one less, one more, or aborted.

    Now and then also a copy of an input that was not delivered.
    """
    found: list[tuple[Row, bool]] = []
    for row in _inputs():
        run, partition, offset = row["run"], row["partition"], row["offset"]
        end = ENDS.get((run, partition), 0 if run in FAN_OUT else 64)
        if row["topic_index"] or offset >= end + chosen.choice([0] * 400 + [64]):
            continue
        for output in range(FAN_OUT.get(run, 1)):
            for committed in chosen.choice([[True]] * 400 + [[], [False], [False, True], [True, True]]):
                found.append(({"run": run, "partition": partition, "offset": offset, "output": 5 + output}, committed))
        if chosen.random() < 1 / 400:
            found.append(({"run": run, "partition": partition, "offset": offset + 1, "output": 5}, True))
    return found


def _expected(copies: list[tuple[Row, bool]]) -> set[tuple[str, int, int]]:
    """By the definition: not each delivered input once per output, or one not delivered or beyond the committed offset."""
    number: dict[tuple[str, int, int], dict[int, int]] = {}
    for row, committed in copies:
        if committed:
            outputs = number.setdefault((row["run"], row["partition"], row["offset"]), {})
            outputs[row["output"]] = outputs.get(row["output"], 0) + 1
    delivered = {
        (row["run"], row["partition"], row["offset"])
        for row in _inputs()
        if not row["topic_index"] and row["offset"] < ENDS.get((row["run"], row["partition"]), 0)
    }
    wrong = {key for key in delivered if len(number.get(key, ())) < FAN_OUT[key[0]]}
    wrong |= {key for key, outputs in number.items() if max(outputs.values()) > 1}
    # Beyond the committed offset, or not delivered below it.
    wrong |= set(number) - delivered
    return {(run, at, offset >> BLOCK_BITS) for run, at, offset in wrong if run in FAN_OUT}


def _fragment(row: Row) -> Row:
    """A fragment of one copy, as the log is aggregated."""
    block, bit = divmod(row["offset"], 1 << BLOCK_BITS)
    bits = np.array([1 << bit], dtype=np.uint64).view(np.int64)
    values: Row = {"source_partition": row["partition"], "source_block": block, "output": row["output"], "n": 1}
    return {"run": row["run"], **values, "sources": int(bits[0]), "source_max": row["offset"]}


def _packs(copies: list[tuple[Row, bool]], chosen: random.Random, buckets: int) -> dict[int, list[pa.RecordBatch]]:
    """The workers' packs of copies and deliveries, in several tasks, in any order."""
    parts: list[pa.RecordBatch] = []
    chosen.shuffle(copies)
    for some in (copies[::2], copies[1::2]):
        held = NumpyColumns(pa.RecordBatch.from_pylist([_fragment(row) for row, _ in some], schema=FRAGMENTS))
        texts = {"run": held.encoded("run").dictionary}
        parts += blocks.of_copies(held, np.array([committed for _, committed in some]), texts)
    for delivered in (_inputs()[::2], _inputs()[1::2]):
        rows = [row | {"digest": 1, "identity_digest": 1} for row in delivered]
        parts += blocks.of_inputs(NumpyColumns(pa.RecordBatch.from_pylist(rows, schema=_GIVEN)), _copying().inputs)
    found: dict[int, list[pa.RecordBatch]] = {}
    for part in parts:
        assert part.schema == BLOCKS
        for row in packed_rows(PACKED, blocks.packed([part], buckets)):
            found.setdefault(row.column("bucket")[0].as_py(), []).append(row)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_block_is_suspect_when_an_input_of_it_is_not_copied_once(seed: int) -> None:
    """For any loss, second copy, or copy beyond the offset, in runs that copy and in no others."""
    chosen = random.Random(seed)
    copies = _copies(chosen)
    found = [
        tuple(row.values())
        for packs in _packs(list(copies), chosen, 3).values()
        for batch in blocks.suspect_blocks(packs, _copying())
        for row in batch.to_pylist()
    ]
    assert sorted(found) == sorted(_expected(copies))
    assert len(found) < len({(row["run"], row["partition"], row["offset"] >> BLOCK_BITS) for row, _ in copies})


def test_the_last_offset_of_a_block_is_an_offset() -> None:
    """Its bit alone is the number that stands for null in other columns."""
    said = CopyBlocks(fan_out={"b": 1}, inputs=(Input(run="b", topic_index=0, partition=0, committed_offset=64),))
    row = {"run": "b", "partition": 0, "offset": 63, "output": 5}
    wanted = [{"run": "b", "topic_index": 0, "partition": 0, "offset": 63, "digest": 1, "identity_digest": 1}]
    given = NumpyColumns(pa.RecordBatch.from_pylist(wanted, schema=_GIVEN))
    held = NumpyColumns(pa.RecordBatch.from_pylist([_fragment(row)], schema=FRAGMENTS))
    texts = {"run": held.encoded("run").dictionary}
    copied = list(blocks.of_copies(held, np.array([True]), texts))
    delivered = list(blocks.of_inputs(given, said.inputs))
    for parts, suspect_blocks in ((copied + delivered, 0), (delivered, 1), (copied * 2 + delivered, 1)):
        packs = list(packed_rows(PACKED, blocks.packed(parts, 1)))
        assert sum(batch.num_rows for batch in blocks.suspect_blocks(packs, said)) == suspect_blocks


def test_what_was_not_delivered_must_not_be_copied() -> None:
    """It may be aborted. The copy alone shows it, wherever the group's offset is, and in a run that copies."""
    for run, suspect_blocks in (("a", 1), ("c", 0)):
        held = NumpyColumns(
            pa.RecordBatch.from_pylist([_fragment({"run": run, "partition": 0, "offset": 5, "output": 5})], FRAGMENTS)
        )
        copied = list(blocks.of_copies(held, np.array([True]), {"run": held.encoded("run").dictionary}))
        packs = packed_rows(PACKED, blocks.packed(copied, 1))
        assert sum(batch.num_rows for batch in blocks.suspect_blocks(packs, _copying())) == suspect_blocks


def test_nothing_packed_is_nothing_suspect() -> None:
    """Runs that copy nothing, and captures without the input."""
    assert list(blocks.suspect_blocks([], _copying())) == []
    rows = NumpyColumns(pa.RecordBatch.from_pylist([{"run": "c", "topic_index": 0}], schema=_GIVEN))
    assert list(blocks.of_inputs(rows, _copying().inputs)) == []
