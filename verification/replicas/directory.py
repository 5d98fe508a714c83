"""Reads the data directory of a stopped broker: its replicas, and the offsets that the broker vouched for.

`log.dirs` names data directories. One holds a directory `<topic>-<partition>` per replica, and checkpoint files that the
broker writes every few seconds and when it stops:

    replication-offset-checkpoint   the high watermark. Everything below it is committed, so every replica that knows a
                                    high watermark holds the same below it. It may be behind, never ahead, except for
                                    seconds after an unclean leader election.
    log-start-offset-checkpoint     the log start after records were deleted on request. Retention deletes whole
                                    segments; after it the name of the first segment is the log start.
    cleaner-offset-checkpoint       the cleaner has compacted the log below this offset: a missing offset there proves
                                    nothing.

Directories that end in `-delete`, `-future` or `-stray` are no replicas any more, or not yet.
`__cluster_metadata` is left out: its quorum keeps no high watermark in these files.

Source: the names and formats that Kafka 2.4 to 4.4 write (`LogManager`, `OffsetCheckpointFile`, `PartitionMetadataFile`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from verification.replicas.segments import SegmentLog, base_of
from verification.vocabulary.errors import DataDirectoryError

METADATA_LOG = "__cluster_metadata"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
PROPERTIES = "meta.properties"

_REPLICA = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)")
_SEGMENT = re.compile(r"[0-9]{20}\.log")
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica of one partition on disk. Offsets are Kafka's.

    `holder` names its broker; `topic_id` is empty before Kafka 2.8. `high_watermark` and `compacted_below` are None if
    the checkpoint has no entry.
    """

    holder: str
    directory: Path
    topic: str
    partition: int
    topic_id: str
    segments: tuple[Path, ...]
    log_start: int
    high_watermark: int | None
    compacted_below: int | None

    def log(self, start: int | None = None, end: int | None = None) -> SegmentLog:
        """Its log from `start` (default: the log start) to `end` (default: the end of the log)."""
        return SegmentLog(segments=self.segments, start=self.log_start if start is None else start, end=end)


def replicas(directory: Path) -> tuple[Replica, ...]:
    """Every replica in a data directory, by topic and partition.

    Raises DataDirectoryError when it is no data directory, when its broker is running, and when a checkpoint cannot be
    read.
    """
    _refuse_unfit(directory)
    found = []
    for path in sorted(directory.iterdir()):
        named = _REPLICA.fullmatch(path.name)
        if named is not None and named["topic"] != METADATA_LOG and path.is_dir():
            found.append(_replica(directory, path, (named["topic"], int(named["partition"]))))
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition)))


def replica(directory: Path, topic: str, partition: int) -> Replica:
    """One replica of a data directory; raises DataDirectoryError as `replicas` does, and when it is not there."""
    _refuse_unfit(directory)
    path = directory / f"{topic}-{partition}"
    if not path.is_dir():
        raise DataDirectoryError(f"{directory} holds no replica of {topic}-{partition}")
    return _replica(directory, path, (topic, partition))


def _replica(directory: Path, path: Path, at: Partition) -> Replica:
    segments = tuple(sorted((each for each in path.iterdir() if _SEGMENT.fullmatch(each.name)), key=base_of))
    if not segments:
        raise DataDirectoryError(f"{path} holds no segment; every replica has one")
    if unfinished := sorted(each.name for each in path.glob("*.swap")):
        raise DataDirectoryError(
            f"{path} holds {unfinished[0]}: the broker died while it exchanged segments, and completes that when it "
            "starts; start it once, then stop it"
        )
    return Replica(
        holder=_holder(directory),
        directory=path,
        topic=at[0],
        partition=at[1],
        topic_id=_properties(path / "partition.metadata", separator=":").get("topic_id", ""),
        segments=segments,
        log_start=max(base_of(segments[0]), _checkpoint(directory / LOG_STARTS).get(at, 0)),
        high_watermark=_checkpoint(directory / HIGH_WATERMARKS).get(at),
        compacted_below=_checkpoint(directory / CLEANED).get(at),
    )


def _refuse_unfit(directory: Path) -> None:
    if not (directory / PROPERTIES).is_file():
        raise DataDirectoryError(f"{directory} is not a broker's data directory: it holds no {PROPERTIES}")
    if _locked(directory / ".lock"):
        raise DataDirectoryError(
            f"{directory} is in use: stop its broker first, because files that change cannot be judged"
        )


def _locked(path: Path) -> bool:
    """Whether a broker holds its lock on the directory; this takes a shared lock, so that there may be many readers."""
    import fcntl

    try:
        with path.open("rb") as lock:
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no lock file, or a file system that cannot lock: a copy
    return False


def _holder(directory: Path) -> str:
    """The broker's number, which KRaft calls `node.id` and ZooKeeper mode `broker.id`; else the directory's name."""
    properties = _properties(directory / PROPERTIES, separator="=")
    number = properties.get("node.id", properties.get("broker.id"))
    return directory.name if number is None else f"broker {number}"


def _properties(path: Path, *, separator: str) -> Mapping[str, str]:
    """The lines `name<separator>value` of a file; empty if there is no file."""
    if not path.is_file():
        return {}
    pairs = (line.partition(separator) for line in path.read_text(encoding="utf-8").splitlines())
    return {name.strip(): value.strip() for name, found, value in pairs if found and not name.startswith("#")}


def _checkpoint(path: Path) -> Mapping[Partition, int]:
    """The offsets of a checkpoint file: version 0, the number of entries, then `topic partition offset` lines."""
    if not path.is_file():
        return {}
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


# Each file has all partitions, and is read for each of them. 64: three files per broker, for 21 brokers.
@lru_cache(maxsize=64)
def _parsed(path: Path, _written_ns: int, _size: int) -> Mapping[Partition, int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        # Brokers create the files empty when they start, and write each one when it has its first entry.
        return {}
    try:
        version, count, entries = int(lines[0]), int(lines[1]), [_entry(line) for line in lines[2:]]
    except (ValueError, IndexError) as error:
        raise DataDirectoryError(f"{path} is no checkpoint file: {error}") from error
    if version != 0 or count != len(entries):
        raise DataDirectoryError(f"{path} is no checkpoint file: version {version}, {len(entries)} of {count} entries")
    return dict(entries)


def _entry(line: str) -> tuple[Partition, int]:
    topic, partition, offset = line.split()
    return (topic, int(partition)), int(offset)


def by_partition(found: Sequence[Replica]) -> dict[tuple[str, int, str], list[Replica]]:
    """Replicas by topic, partition and topic id: a topic that was deleted and created again has another id."""
    groups: dict[tuple[str, int, str], list[Replica]] = {}
    for each in sorted(found, key=lambda one: (one.topic, one.partition, one.topic_id, one.holder)):
        groups.setdefault((each.topic, each.partition, each.topic_id), []).append(each)
    return groups
