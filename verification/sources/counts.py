"""Reads the keys and counts of outputs of the shape `counted`, with the consumer of a client library.

It is the reader of the source `client` once more, with other columns. It runs in the process that captures: only
pipelines that count have such outputs, and a run of theirs has some ten thousand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from verification.evidence.counts_file import Counted, PartitionCounts, key_and_count
from verification.sources.client import ClientReader
from verification.sources.parse import identity_columns
from verification.sources.ranges import Range


class CountReader(ClientReader):
    """Its rows are the outputs that name an input of the run: topic index, partition, offset, key, count."""

    def _arrow(self, kept: list[tuple[Range, Any]]) -> pa.RecordBatch:
        runs = identity_columns([message.value() for _, message in kept])["identity_run"].to_pylist()
        own = [each for each, run in zip(kept, runs, strict=True) if run == self.run]
        said = [key_and_count(message.value()) for _, message in own]
        return pa.RecordBatch.from_pydict(
            {
                "topic_index": pa.array([each.topic_index for each, _ in own], type=pa.int32()),
                "partition": pa.array([each.partition for each, _ in own], type=pa.int32()),
                "offset": pa.array([message.offset() for _, message in own], type=pa.int64()),
                "key": pa.array([key for key, _ in said], type=pa.string()),
                "count": pa.array([count for _, count in said], type=pa.int64()),
            }
        )


def counts(options: Mapping[str, str]) -> list[PartitionCounts]:
    """The counts in some pinned ranges, one line per partition; the options are those of `ClientReader`.

    Raises ReaderTimeoutError when an end is not reached in time, CaptureError for errors of the cluster.
    """
    reader = CountReader(options)
    found: dict[tuple[int, int], list[Counted]] = defaultdict(list)
    for group in reader.partitions():
        for batch in reader.read(group):
            for row in batch.to_pylist():
                found[row["topic_index"], row["partition"]].append((row["offset"], row["key"], row["count"]))
    return [
        PartitionCounts(topic_index=each.topic_index, partition=each.partition, counts=tuple(found[place]))
        for each in reader.ranges
        for place in [(each.topic_index, each.partition)]
    ]
