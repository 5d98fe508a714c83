"""Reads a cluster's log by offset, with control records, by our own Fetch (`wire.fetch`): the source `wire`.

Every record becomes a row: data with the identity in its value, control records with their decision. Only this source
reads producer ids, epochs, sequences and markers from leaders. Visibility is derived from them, independently of any
client library.

Large partitions are cut by offset (`split_offsets`), also through batches and transactions. Both sides fetch a batch
across a cut, and each keeps the records of its own range.

Rows leave as Arrow record batches: single rows through Python are six times slower. A batch with a wrong CRC ends the
read with an error, because a damaged log must not be judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from verification.sources.access import access
from verification.sources.parse import Numbers, identity_spans, referring_columns
from verification.sources.ranges import SPLIT_OFFSETS, Range, RangeGroup, decode, split_and_grouped
from verification.sources.schema import LOG
from verification.vocabulary.errors import CaptureError, ReaderTimeoutError
from verification.vocabulary.input_reference import finder
from wire.client import Client
from wire.columns import Columns, columns
from wire.errors import DeadlineError, WireError
from wire.fetch import fetch_log
from wire.messages import Definitions
from wire.records import Batch, Marker

#: Records of one Arrow batch; decoding many batches of the log together is several times faster.
BATCH = 20_000
#: Control records other than transaction markers (KIP-778 and raft's own); they end no transaction.
OTHER = "other"
DECISIONS = {Marker.COMMIT: "commit", Marker.ABORT: "abort"}
#: The APIs that a reader uses, whose definitions it needs (`wire.messages.carried`).
READER_APIS = ("ApiVersions", "Metadata", "Fetch", "SaslHandshake", "SaslAuthenticate")


class LogReader(DataSourceReader):
    """Reads groups of ranges, one client per group; its rows are those of `LOG`.

    Options: `bootstrap`, `definitions`, `run`, `ranges` (see `ranges.encode`), `tasks`, `timeout_s`, `settings` (JSON of
    librdkafka's settings; see `access`), and optionally `split_offsets`. `definitions` is a JSON list of kafka-clients
    jars, newest first, that every worker has at these paths; for workers without jars, of the result of
    `wire.messages.carried`. `split_offsets` is the most offsets in one piece (default `ranges.SPLIT_OFFSETS`), 0 for any
    number.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.bootstrap = options["bootstrap"]
        self.definitions = tuple(json.loads(options["definitions"]))
        self.run = options["run"]
        self.ranges = decode(options["ranges"])
        self.tasks = int(options["tasks"])
        self.timeout_s = float(options["timeout_s"])
        self.split_offsets = int(options.get("split_offsets", SPLIT_OFFSETS))
        self.settings: dict[str, str] = json.loads(options["settings"])

    def partitions(self) -> list[InputPartition]:
        """Few Spark partitions for many small topic partitions, several for a large one."""
        return list(split_and_grouped(self.ranges, self.tasks, self.split_offsets))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Record batches of `LOG`.

        Raises ReaderTimeoutError when a range makes no progress for `timeout_s`, CaptureError for settings that do not
        connect and for errors of the cluster.
        """
        assert isinstance(partition, RangeGroup)
        if not partition.ranges:
            return
        way = access(self.settings)
        with Client(
            self.bootstrap,
            Definitions.load(*self.definitions),
            timeout_s=self.timeout_s,
            ssl_context=way.ssl_context,
            authentication=way.authentication,
        ) as client:
            for each in partition.ranges:
                yield from self._range(client, each)

    def _range(self, client: Client, wanted: Range) -> Iterator[pa.RecordBatch]:
        log = fetch_log(client, wanted.topic, wanted.partition, wanted.start, wanted.end, stall_s=self.timeout_s)
        try:
            for batches in together(log):
                yield log_rows(self.run, wanted, batches)
        except DeadlineError as error:
            raise ReaderTimeoutError(f"{wanted.topic}-{wanted.partition}: {error}") from error
        except WireError as error:
            raise CaptureError(f"{wanted.topic}-{wanted.partition} could not be read: {error}") from error


def together(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Batches in lists of some `BATCH` records, in order."""
    waiting: list[Batch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.count
        if count >= BATCH:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting


def log_rows(run: str, wanted: Range, batches: Sequence[Batch]) -> pa.RecordBatch:
    """The records of some batches that lie in a range, in the columns of `LOG`.

    Raises CodecError, ChecksumError or BatchError of `wire.errors` for damaged batches.
    """
    decoded = columns(batches)
    within = (decoded.offset >= wanted.start) & (decoded.offset < wanted.end)
    # Other records exist only where a range cuts a batch; a slice of everything copies nothing.
    rows = slice(None) if within.all() else np.flatnonzero(within)
    owner = decoded.batch[rows]
    size = len(owner)
    decisions = _decisions(batches)
    control = np.array([each is not None for each in decisions], dtype=np.bool_)[owner]
    # A control record has no content of ours, so these columns are null.
    values = identity_spans(
        decoded.buffer, decoded.value_start[rows], np.where(control, -1, decoded.value_length[rows])
    )
    if wanted.reference:
        find = finder(wanted.reference)
        texts = [find(each.key, each.value, each.headers) for batch in batches for each in batch.records()]
        values = referring_columns(values, [text for text, kept in zip(texts, within, strict=True) if kept])
    if control.any():
        data = pa.array(~control)
        for name in ("valid", "digest", "identity_digest"):
            values[name] = pc.if_else(data, values[name], pa.scalar(None, values[name].type))
    found = {
        "run": pa.repeat(pa.scalar(run, pa.string()), size),
        "topic": pa.repeat(pa.scalar(wanted.topic, pa.string()), size),
        "topic_index": pa.repeat(pa.scalar(wanted.topic_index, pa.int32()), size),
        "partition": pa.repeat(pa.scalar(wanted.partition, pa.int32()), size),
        "offset": pa.array(decoded.offset[rows], type=pa.int64()),
        "timestamp_ms": pa.array(decoded.timestamp_ms[rows], type=pa.int64()),
        **_producers(decoded, batches, rows),
        "control": pa.array(decisions, type=pa.string()).take(pa.array(owner)),
        "transactional": pa.array(np.array([each.transactional for each in batches], dtype=np.bool_)[owner]),
        **values,
    }
    return pa.RecordBatch.from_pydict({name: found[name] for name in LOG.names})


def _decisions(batches: Sequence[Batch]) -> list[str | None]:
    """The decision of each batch: None for data, and for batches that compaction emptied."""
    return [
        (DECISIONS[marker] if (marker := batch.marker()) is not None else OTHER)
        if batch.control and batch.count
        else None
        for batch in batches
    ]


def _producers(decoded: Columns, batches: Sequence[Batch], rows: Numbers | slice) -> dict[str, pa.Array]:
    """Producer, sequence and leader epoch of every row; sequences count on from the batch's and wrap at 2^31."""
    counts = [batch.count for batch in batches]

    def of(name: str, dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
        every: npt.NDArray[Any] = np.array([getattr(batch, name) for batch in batches], dtype=dtype)
        return np.repeat(every, counts)[rows]

    base = of("base_sequence")
    sequence = np.where(base < 0, base, (base + decoded.offset[rows] - of("base_offset", np.int64)) & 0x7FFFFFFF)
    return {
        "producer_id": pa.array(of("producer_id", np.int64)),
        "producer_epoch": pa.array(of("producer_epoch")),
        "sequence": pa.array(sequence.astype(np.int32)),
        "leader_epoch": pa.array(of("leader_epoch")),
    }
