"""`transaction_log.jsonl.gz`: the records that coordinators wrote during a run, of all partitions of `__transaction_state`.

The first line is a header, the last a footer with the number of entries between them; a missing footer means that the
file was cut. A subject whose transaction log cannot be read has a file too, and its header says why: a log that was not
judged must not look like one without findings.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from msgspec import convert

from verification.vocabulary.errors import UnfitEvidenceError
from verification.vocabulary.strict_json import Int64
from verification.vocabulary.transaction_log import Entry

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The offsets read of one partition: from its end at the start of the run to its end at quiescence."""

    partition: Int64
    start: Int64
    end: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLeader:
    """The leader of a partition, which coordinates its ids, in one leadership, by the metadata."""

    partition: Int64
    leader_epoch: Int64
    broker: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHeader:
    """The first line. `unavailable` says why the log could not be read; it is empty when it was.

    `new_ids` are transactional ids that were never used before the ranges, so that their histories are whole. `leaders`
    are the known ones: of the leaderships at the start and the end of the run, and not of all between.
    """

    run: str
    ranges: tuple[LogRange, ...] = ()
    new_ids: tuple[str, ...] = ()
    unavailable: str = ""
    leaders: tuple[LogLeader, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLog:
    """The whole file."""

    header: LogHeader
    entries: tuple[Entry, ...] = ()

    @property
    def starts(self) -> dict[int, int]:
        """Partition → the first offset that was read."""
        return {each.partition: each.start for each in self.header.ranges}


def _line(type_: str, body: Mapping[str, Any]) -> str:
    return json.dumps({"type": type_, **body}) + "\n"


def write(path: Path, log: TransactionLog) -> None:
    """Write the file."""
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.write(_line("header", {"format": FORMAT, **asdict(log.header)}))
        for entry in log.entries:
            body = {name: getattr(entry, name) for name in _FIELDS}
            lines.write(_line("entry", {**body, "places": sorted(entry.places)}))
        lines.write(_line("footer", {"entries": len(log.entries)}))


_FIELDS = tuple(field.name for field in fields(Entry))


def read(path: Path) -> TransactionLog | None:
    """Read the file; None when there is none, as in older evidence. Raises UnfitEvidenceError for a bad one."""
    if not path.exists():
        return None
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            bodies = [json.loads(line) for line in lines]
        return _log(path, bodies)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise UnfitEvidenceError(f"{path} cannot be read as a transaction log of format {FORMAT}: {error!r}") from error


def _log(path: Path, bodies: list[dict[str, Any]]) -> TransactionLog:
    if not bodies or bodies[0].pop("type") != "header":
        raise UnfitEvidenceError(f"{path} has no header")
    header = bodies[0]
    if (format_ := header.pop("format")) != FORMAT:
        raise UnfitEvidenceError(f"{path} has format {format_}; this version reads {FORMAT}")
    if bodies[-1] != {"type": "footer", "entries": len(bodies) - 2}:
        raise UnfitEvidenceError(f"{path} has no footer that counts {len(bodies) - 2} entries; the run was cut")
    if any(body.pop("type") != "entry" for body in bodies[1:-1]):
        raise ValueError("a line between header and footer is no entry")
    log = TransactionLog(header=convert(header, LogHeader), entries=convert(bodies[1:-1], tuple[Entry, ...]))
    _check(path, log)
    return log


def _check(path: Path, log: TransactionLog) -> None:
    """Check that entries lie within the ranges, one at an offset: outside of them nothing may be judged."""
    ranges = {each.partition: each for each in log.header.ranges}
    seen: set[tuple[int, int]] = set()
    for entry in log.entries:
        within = ranges.get(entry.partition)
        if within is None or not within.start <= entry.offset < within.end:
            raise UnfitEvidenceError(f"{path}: {entry} lies outside the ranges of the header")
        if (entry.partition, entry.offset) in seen:
            raise UnfitEvidenceError(f"{path}: {entry} shares its offset with another record")
        seen.add((entry.partition, entry.offset))
