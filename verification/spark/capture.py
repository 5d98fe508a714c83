"""Writes the three captures at quiescence: the log, and the records that consumers of both isolation levels receive.

The ends were pinned at quiescence (`captures.json`): the high watermark for `log/` and `uncommitted/`, the last stable
offset for `committed/`. They differ on purpose: a reader whose end is beyond the reach of its isolation level would wait
for ever. `wire` reads `log/`, librdkafka the other two, so that no single reader can hide a record from all three.

The code of the readers goes to the workers (`worker_code`). The message definitions for the log's reader go in its
options, so that no worker needs a kafka-clients jar. Workers must share with this process the directory that they write
to. Outputs of a pipeline become copies once they are written (`verification.evidence.references`). Outputs that count
are read once more, up to the same ends, into `counts.jsonl.gz` (`verification.sources.counts`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verification.evidence.capture_reader import LocalCaptureReader
from verification.evidence.run_directory import RunDirectory
from verification.vocabulary.errors import CaptureError
from verification.vocabulary.experiment import EFFECT, Experiment, IsolationLevel
from verification.vocabulary.input_reference import VALUE
from verification.vocabulary.quiescent_state import QuiescentState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.sources.ranges import Range
    from verification.sources.source import SourceName

#: Spark partitions per capture: as many as a small machine has cores. The log's reader makes more where there is more
#: to read than `ranges.SPLIT_OFFSETS` for each.
TASKS = 2
#: Rows of a row group. Suspect rows lie around faults, and row groups without them, by their footers, are not read again
#: (`fingerprints.workers.row_group_pruning`). Spark's default is 128 MB, which is all that a reader's task writes.
ROW_GROUP_ROWS = 250_000
#: How long a reader may make no progress. Leaders are known and the data is there: this only bounds a broken cluster.
STALL_S = 20.0


def _ranges(experiment: Experiment, captures: QuiescentState, *, isolation: IsolationLevel) -> list[Range]:
    """The pinned range of every partition of the experiment.

    Raises CaptureError for a partition whose end was not recorded: the capture would hide its records.
    """
    from verification.sources.ranges import Range

    ends = {(each.topic, each.partition): each for each in captures.ends}
    found = []
    for topic_index, topic in enumerate(experiment.topics):
        if topic.shape == EFFECT:
            continue
        for partition in range(topic.partitions):
            end = ends.get((topic.name, partition))
            if end is None:
                raise CaptureError(f"no end is recorded for {topic.name}-{partition}; every partition must be pinned")
            stop = end.last_stable_offset if isolation is IsolationLevel.COMMITTED else end.high_watermark
            found.append(
                Range(
                    topic=topic.name,
                    topic_index=topic_index,
                    partition=partition,
                    start=end.start,
                    end=stop,
                    reference="" if topic.reference == VALUE else topic.reference,
                )
            )
    return found


def _write(spark: SparkSession, source: SourceName, folder: Path, options: Mapping[str, str]) -> None:
    from verification.sources.reading import read

    rows = read(spark, source, options)
    rows.write.mode("overwrite").option("parquet.block.row.count.limit", ROW_GROUP_ROWS).parquet(str(folder))


def definition_texts(jars: Sequence[Path | str]) -> str:
    """The message definitions for the log's reader, as its option.

    Raises CaptureError for a jar that cannot be read, and without a jar.
    """
    from verification.sources.wire_log import READER_APIS
    from wire.errors import WireError
    from wire.messages import Definitions, carried

    try:
        texts = carried(*jars, apis=READER_APIS)
        Definitions.load(*texts)
    except WireError as error:
        raise CaptureError(f"the log's reader has no message definitions: {error}") from error
    return json.dumps(texts)


def capture(
    spark: SparkSession,
    directory: RunDirectory,
    *,
    bootstrap: str,
    captures: QuiescentState,
    experiment: Experiment,
    definitions: Sequence[Path | str],
    settings: Mapping[str, str] | None = None,
    effects: Mapping[str, Sequence[bytes | None]] | None = None,
    stall_s: float = STALL_S,
) -> None:
    """Write `log/`, `uncommitted/` and `committed/` of a quiesced cluster into `directory`, and then `captures.json`.

    Topics of the shape `counted` also get `counts.jsonl.gz`. `effects` are the rows of a
    database, by the name of their topic.

    `bootstrap` is a listener that no fault cuts; `captures` holds the pinned ends; `definitions` are kafka-clients jars
    of this machine, newest first; `settings` go to librdkafka unchanged, and the log's
    reader uses those about security. A run whose subject writes no control records (`has_log` false) has only `committed/`.

    Raises CaptureError when a partition has no end, cannot be read, or makes no progress for `stall_s`. Also for settings
    that the log's reader does not support, and for a jar without definitions.
    """
    from verification.evidence import references
    from verification.sources import effect_rows
    from verification.sources.access import access
    from verification.sources.ranges import encode
    from verification.sources.source import SourceName
    from verification.spark.worker_code import ship

    if experiment.has_log:
        # Before reading: the reader would refuse too, but deep in a worker's traceback.
        access(settings or {})
    ship(spark)
    common = {"bootstrap": bootstrap, "run": experiment.run, "tasks": str(TASKS), "timeout_s": str(stall_s)}
    everything = encode(_ranges(experiment, captures, isolation=IsolationLevel.UNCOMMITTED))
    stable = encode(_ranges(experiment, captures, isolation=IsolationLevel.COMMITTED))
    witness = {**common, "settings": json.dumps(dict(settings or {}))}
    committed = {**witness, "ranges": stable, "isolation": str(IsolationLevel.COMMITTED)}
    uncommitted = {**witness, "ranges": everything, "isolation": str(IsolationLevel.UNCOMMITTED)}
    jobs = [(SourceName.CLIENT, directory.committed, committed)]
    if experiment.has_log:
        texts = definition_texts(definitions)
        jobs.append((SourceName.WIRE, directory.log, {**witness, "ranges": everything, "definitions": texts}))
        jobs.append((SourceName.CLIENT, directory.uncommitted, uncommitted))
    # Readers mostly wait for brokers, so the three run at once.
    with ThreadPoolExecutor(max_workers=len(jobs), thread_name_prefix="capture") as pool:
        futures = [pool.submit(_write, spark, *job) for job in jobs]
    for (_, folder, _), future in zip(jobs, futures, strict=True):
        if (error := future.exception()) is not None:
            raise CaptureError(f"{folder.name} could not be captured: {_sentence(error)}") from error
    _write_counts(directory, experiment, committed)
    effect_rows.write(directory, experiment, effects or {})
    references.resolve(directory, experiment, row_group_rows=ROW_GROUP_ROWS)
    held = LocalCaptureReader(directory)
    replace(captures, rows={folder.name: held.count(folder.name) for _, folder, _ in jobs}).write(directory.captures)


def _write_counts(directory: RunDirectory, experiment: Experiment, options: Mapping[str, str]) -> None:
    """Write `counts.jsonl.gz` if a topic counts; `options` are those of the reader of `committed/`."""
    from verification.evidence import counts_file
    from verification.sources.counts import counts
    from verification.sources.ranges import decode, encode

    if counted := counts_file.places(experiment):
        ranges = [each for each in decode(options["ranges"]) if (each.topic_index, each.partition) in counted]
        counts_file.write(directory.counts, counts({**options, "ranges": encode(ranges), "tasks": "1"}))


def _sentence(error: BaseException) -> str:
    """The line of a worker's traceback that has the error; Spark wraps it in pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("verification.vocabulary.errors.")]
    return ours[-1].split(": ", 1)[-1] if ours else (lines[0] if lines else repr(error))
