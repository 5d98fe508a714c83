"""The data directory of a stopped broker: which replicas it holds, and how far the broker vouched for them.

A data directory is what `log.dirs` names. It holds one directory `<topic>-<partition>` per replica and checkpoint files
that the broker writes every few seconds and when it stops. What they say here:

    replication-offset-checkpoint   the high watermark: below it everything is committed, so every replica that knows a
                                    high watermark holds the same below it. It may be behind, never ahead, except for
                                    seconds after an unclean leader election.
    log-start-offset-checkpoint     where the log begins after records were deleted on request; retention deletes whole
                                    segments, so that the first segment's name says the rest
    cleaner-offset-checkpoint       below this offset the cleaner has compacted: an offset that is missing there proves
                                    nothing

Directories that end in `-delete`, `-future` or `-stray` are no replicas of anything any more, or not yet.
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

    `holder` is whose it is; `topic_id` is empty before Kafka 2.8. `high_watermark` and `compacted_below` are None where
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
        """Its log from `start` (default: where it begins) to `end` (default: where it ends)."""
        return SegmentLog(segments=self.segments, start=self.log_start if start is None else start, end=end)


def replicas(directory: Path) -> tuple[Replica, ...]:
    """Every replica in a data directory, by topic and partition.

    Raises DataDirectoryError when it is none, when its broker is running, and when a checkpoint cannot be read.
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
            f"{path} holds {unfinished[0]}: the broker died while it exchanged segments, which it ends when it starts; "
            "start it once, then stop it"
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
            f"{directory} is in use: stop its broker first, files that are written cannot be judged"
        )


def _locked(path: Path) -> bool:
    """Whether a broker holds its lock on the directory; it is asked for shared, so that readers may be many."""
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
    """The broker by its number, which both modes of Kafka write down under their own name."""
    said = _properties(directory / PROPERTIES, separator="=")
    number = said.get("node.id", said.get("broker.id"))
    return directory.name if number is None else f"broker {number}"


def _properties(path: Path, *, separator: str) -> Mapping[str, str]:
    """Lines `name<separator>value` of a file; nothing of one that is not there."""
    if not path.is_file():
        return {}
    pairs = (line.partition(separator) for line in path.read_text(encoding="utf-8").splitlines())
    return {name.strip(): value.strip() for name, found, value in pairs if found and not name.startswith("#")}


def _checkpoint(path: Path) -> Mapping[Partition, int]:
    """The offsets of a checkpoint file: version 0, how many, then `topic partition offset` lines."""
    if not path.is_file():
        return {}
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


# One file says it for all partitions, and is asked for each of them. 64: the three files of a broker, of more brokers
# than anybody compares at a time.
@lru_cache(maxsize=64)
def _parsed(path: Path, _written_ns: int, _size: int) -> Mapping[Partition, int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        # Brokers make the files when they start, and write into each when it first has something to say.
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
    """Replicas by topic, partition and topic id: a topic that was created anew is another one."""
    groups: dict[tuple[str, int, str], list[Replica]] = {}
    for each in sorted(found, key=lambda one: (one.topic, one.partition, one.topic_id, one.holder)):
        groups.setdefault((each.topic, each.partition, each.topic_id), []).append(each)
    return groups
