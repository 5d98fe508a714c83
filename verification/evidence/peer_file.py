"""`peer.jsonl.gz`: the second cluster of a pipeline, with the copies of inputs there and the decisions behind them.

Nothing on that cluster is judged: a copy that is lost or doubled there comes back to an output, where it is judged. The
file can only show why it was (`known_bugs/signatures/dropped_at_peer.py`). It has one line per partition.

Free of pyspark.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import ValidationError, convert

from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.strict_json import Int64


class PeerRow(NamedTuple):
    """A record or a marker: `decision` is that of a marker; `input` is the number of the input that a record copies."""

    offset: Int64
    producer_id: Int64
    producer_epoch: Int64
    decision: Literal["commit", "abort"] | None
    input: Int64 | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPartition:
    """One line: a partition with its ends after the timeout of transactions, and its rows in the order of offsets."""

    topic: str
    partition: Int64
    high_watermark: Int64
    last_stable_offset: Int64
    rows: tuple[PeerRow, ...]


def write(path: Path, lines: Iterable[PeerPartition]) -> None:
    """Write the file."""
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(line), separators=(",", ":")) + "\n" for line in lines)


def read(path: Path) -> tuple[PeerPartition, ...]:
    """The lines; none without the file. Raises UnfitEvidenceError if it is cut or foreign, or offsets do not rise."""
    if not path.exists():
        return ()
    try:
        with gzip.open(path, "rt", encoding="utf-8") as text:
            lines = tuple(convert(json.loads(line), PeerPartition) for line in text)
    except (OSError, EOFError, zlib.error, ValueError, ValidationError) as error:
        raise UnfitEvidenceError(f"{path} cannot be read as the log of a second cluster: {error!r}") from error
    for line in lines:
        if any(after.offset <= before.offset for before, after in pairwise(line.rows)):
            raise UnfitEvidenceError(f"{path} does not have {line.topic}-{line.partition} in the order of offsets")
    return lines
