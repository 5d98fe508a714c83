"""`counts.jsonl.gz`: the key and the running count of each committed output of the topics of the shape `counted`.

The captures hold no values, so what an output says besides its reference is in this file. It has one line per partition
of each such topic, in the order in which a `read_committed` client received the outputs up to the pinned end.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from msgspec import ValidationError, convert

from verification.evidence.row_types import Row
from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.experiment import COUNTED, Experiment
from verification.vocabulary.identity import IDENTITY_LENGTH
from verification.vocabulary.strict_json import Int64

#: An offset, and the key and the count of the output there; both are None if it has none.
Counted = tuple[Int64, str | None, Int64 | None]
#: Behind the identity: a space, the count, a space, the key; anything may follow after one more space. No count is longer
#: than this, and so each fits 64 bits.
_SAID = re.compile(rb" ([0-9]{1,18}) ([^ ]{1,64})(?: .*)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """One line: the outputs of a partition that name an input, by offset."""

    topic_index: Int64
    partition: Int64
    counts: tuple[Counted, ...]


def key_and_count(value: bytes) -> tuple[str | None, int | None]:
    """What an output says behind the reference to its input; None and None if that is no count of a key."""
    said = _SAID.fullmatch(value, IDENTITY_LENGTH)
    try:
        return (None, None) if said is None else (said[2].decode("utf-8"), int(said[1]))
    except UnicodeDecodeError:
        return None, None


def places(experiment: Experiment) -> set[tuple[int, int]]:
    """Topic index and partition of every partition that has a line."""
    topics = enumerate(experiment.topics)
    return {
        (index, partition) for index, topic in topics if topic.shape == COUNTED for partition in range(topic.partitions)
    }


def write(path: Path, lines: Iterable[PartitionCounts]) -> None:
    """Write the file."""
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(line), separators=(",", ":")) + "\n" for line in lines)


def read(path: Path, experiment: Experiment) -> tuple[Row, ...]:
    """The outputs that count, as rows; none where no topic has that shape.

    Raises UnfitEvidenceError if the file is missing or cut, or does not have each partition once with rising offsets.
    """
    expected = places(experiment)
    if not expected:
        return ()
    try:
        with gzip.open(path, "rt", encoding="utf-8") as text:
            lines = [convert(json.loads(line), PartitionCounts) for line in text]
    except (OSError, EOFError, zlib.error, ValueError, ValidationError) as error:
        raise UnfitEvidenceError(f"{path} cannot be read as counts of outputs: {error!r}") from error
    offsets = [[offset for offset, _, _ in line.counts] for line in lines]
    whole = sorted((line.topic_index, line.partition) for line in lines) == sorted(expected)
    if not whole or any(sorted(set(each)) != each for each in offsets):
        raise UnfitEvidenceError(f"{path} does not have each counted partition once, in the order of offsets")
    names = ("topic_index", "partition", "offset", "key", "count")
    return tuple(
        dict(zip(names, (line.topic_index, line.partition, *counted), strict=True))
        for line in lines
        for counted in line.counts
    )
