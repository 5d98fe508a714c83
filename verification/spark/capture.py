"""The three captures at quiescence: what the log holds, and what clients of both isolation levels are given.

Ends are pinned by whoever quiesced the cluster (`captures.json`): the high watermark for `log/` and `uncommitted/`, the
last stable offset for `committed/`. The ends differ on purpose: a reader that is pinned beyond what its isolation
level can reach waits for ever. `log/` is read by `wire`, the other two by librdkafka, so that no single reader can
hide a record from all three.

Reader code goes to the workers (`shipping`). The message definitions that the log's reader speaks by go along in its
options, so that no worker needs a kafka-clients jar. What workers do have to share with this process is the directory that
is written to.
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
from verification.vocabulary.experiment import Experiment, IsolationLevel
from verification.vocabulary.quiescent_state import QuiescentState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from verification.sources.ranges import Range
    from verification.sources.source import SourceName

#: Spark partitions per capture: as many as a small machine has cores. The log's reader makes more where there is more
#: to read than `ranges.SPLIT_OFFSETS` for each.
TASKS = 2
#: Rows of a row group: what is in doubt stands around a fault, and row groups that cannot hold it by their footers are not
#: read again (`fingerprints.spans`). Spark's own have 128 MB, which is all that a reader's task writes.
ROW_GROUP_ROWS = 250_000
#: How long a reader may stand still. Leaders are known and the data is there: this only bounds a broken cluster.
STALL_S = 20.0


def _ranges(experiment: Experiment, captures: QuiescentState, *, isolation: IsolationLevel) -> list[Range]:
    """The pinned range of every partition of the experiment.

    Raises CaptureError for a partition whose end was not recorded: a capture with a hole would hide what is in it.
    """
    from verification.sources.ranges import Range

    ends = {(each.topic, each.partition): each for each in captures.ends}
    found = []
    for topic_index, topic in enumerate(experiment.topics):
        for partition in range(topic.partitions):
            end = ends.get((topic.name, partition))
            if end is None:
                raise CaptureError(f"no end is recorded for {topic.name}-{partition}; every partition must be pinned")
            stop = end.last_stable_offset if isolation is IsolationLevel.COMMITTED else end.high_watermark
            found.append(
                Range(topic=topic.name, topic_index=topic_index, partition=partition, start=end.start, end=stop)
            )
    return found


def _write(spark: SparkSession, source: SourceName, folder: Path, options: Mapping[str, str]) -> None:
    from verification.sources.reading import read

    rows = read(spark, source, options)
    rows.write.mode("overwrite").option("parquet.block.row.count.limit", ROW_GROUP_ROWS).parquet(str(folder))


def spoken(jars: Sequence[Path | str]) -> str:
    """What the log's reader speaks, as its option; raises CaptureError for a jar that cannot be read, and without one."""
    from verification.sources.wire_log import SPOKEN
    from wire.errors import WireError
    from wire.messages import Definitions, carried

    try:
        texts = carried(*jars, apis=SPOKEN)
        Definitions.load(*texts)
    except WireError as error:
        raise CaptureError(f"the log's reader cannot be told the protocol: {error}") from error
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
    stall_s: float = STALL_S,
) -> None:
    """Write `log/`, `uncommitted/` and `committed/` of a quiesced cluster into `directory`, and then `captures.json`.

    `bootstrap` is a listener that no fault cuts; `captures` holds the pinned ends; `definitions` are kafka-clients jars
    of this machine, newest first; `settings` go to librdkafka as they are, and those about security open the log's
    reader the same door. A run whose subject writes no control records (`has_log` false) has only `committed/`.

    Raises CaptureError when a partition has no end, cannot be read, or stands still for `stall_s`, for settings that the
    log's reader cannot honour, and for a jar without definitions.
    """
    from verification.sources.access import access
    from verification.sources.ranges import encode
    from verification.sources.source import SourceName
    from verification.spark.worker_code import ship

    if experiment.has_log:
        # Before anything is read: the reader would say it too, page-deep in a worker's traceback.
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
        told = spoken(definitions)
        jobs.append((SourceName.WIRE, directory.log, {**witness, "ranges": everything, "definitions": told}))
        jobs.append((SourceName.CLIENT, directory.uncommitted, uncommitted))
    # Readers mostly wait for brokers, so the three go at once.
    with ThreadPoolExecutor(max_workers=len(jobs), thread_name_prefix="capture") as pool:
        futures = [pool.submit(_write, spark, *job) for job in jobs]
    for (_, folder, _), future in zip(jobs, futures, strict=True):
        if (error := future.exception()) is not None:
            raise CaptureError(f"{folder.name} could not be captured: {_sentence(error)}") from error
    held = LocalCaptureReader(directory)
    replace(captures, rows={folder.name: held.count(folder.name) for _, folder, _ in jobs}).write(directory.captures)


def _sentence(error: BaseException) -> str:
    """The line of a worker's traceback that says what happened; Spark wraps it in pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("verification.vocabulary.errors.")]
    return ours[-1].split(": ", 1)[-1] if ours else (lines[0] if lines else repr(error))
