"""`history.jsonl`: a header line, one line per entry, and a footer line with the number of entries.

A missing footer means that the run was cut; the judge refuses such a history. A transaction is *one* line, not one per
record: the acknowledgements of records are in `acks/`. The header holds one wall-clock anchor; all other times are on the
clock that the header names.

A soak of 10^8 records has a million lines, and all are read before the judgement. msgspec decodes a line straight into
its entry and checks the types of the fields, in a seventh of the time of `json` and constructors. Fields that a later
version added are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, convert
from msgspec.json import Decoder

from verification.vocabulary.history import TAGS, Entry, History
from verification.vocabulary.strict_json import Int64

FORMAT = 1
_TAG_OF = {entry: tag for tag, entry in TAGS.items()}
_DECODERS = {tag: Decoder(entry) for tag, entry in TAGS.items()}


class _Tagged(Struct):
    """The type of a line."""

    type: str


class _Header(Struct):
    """The first line, without type, format and clock."""

    run: str
    wall_clock_anchor: str
    anchor_ns: Int64


_TAGGED = Decoder(_Tagged)


class UnfitHistoryError(Exception):
    """The history cannot be judged: cut, foreign, of a newer format, or not parseable. The message says which."""


def header_line(*, run: str, wall_clock_anchor: str, anchor_ns: int) -> str:
    """The first line of a history; `wall_clock_anchor` is ISO 8601 UTC taken at `anchor_ns`."""
    header = {
        "type": "header",
        "format": FORMAT,
        "run": run,
        "clock": "CLOCK_MONOTONIC, nanoseconds",
        "wall_clock_anchor": wall_clock_anchor,
        "anchor_ns": anchor_ns,
    }
    return json.dumps(header)


def entry_line(entry: Entry) -> str:
    """One entry as a line; fields that are None are left out."""
    body = {name: value for name, value in asdict(entry).items() if value is not None}
    return json.dumps({"type": _TAG_OF[type(entry)], **body})


def footer_line(count: int) -> str:
    """The last line of a complete history; `count` entries stand between it and the header."""
    return json.dumps({"type": "footer", "entries": count})


def _tagged(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """The number, type and text of each line."""
    # As bytes: a line that is no UTF-8 is then reported as no JSON, with its number.
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                tag = _TAGGED.decode(line).type
            except ValidationError as error:
                raise UnfitHistoryError(f"{path}: line {number} is not a history entry") from error
            except (DecodeError, UnicodeDecodeError) as error:
                raise UnfitHistoryError(f"{path}: line {number} is not JSON ({error}); the run was cut") from error
            yield number, tag, line


def _header(path: Path, line: bytes) -> _Header:
    """The header of a history in a format that this version reads."""
    header: dict[str, Any] = json.loads(line or b'{"type": "nothing"}')
    if header["type"] != "header" or header.get("format") != FORMAT:
        raise UnfitHistoryError(
            f"{path} begins with type {header['type']!r} format {header.get('format')!r}; "
            f"this version reads history format {FORMAT}"
        )
    try:
        return convert(header, _Header)
    except ValidationError as error:
        raise UnfitHistoryError(f"{path} begins with a header that names no run or no clock: {error}") from error


def read(path: Path, *, allow_cut: bool = False) -> History:
    """Read a history.

    `allow_cut` accepts a missing footer; only reports use it, never a judgement.

    Raises UnfitHistoryError when the file is missing, foreign, of another format or cut.
    """
    if not path.is_file():
        raise UnfitHistoryError(
            f"{path} does not exist; this is not a run directory, or the run was cut before its start"
        )
    tagged = _tagged(path)
    _, _, first = next(tagged, (0, "", b""))
    header = _header(path, first)
    entries: list[Entry] = []
    counted: int | None = None
    try:
        for number, tag, line in tagged:
            try:
                if tag == "footer":
                    counted = json.loads(line).get("entries")
                else:
                    entries.append(_DECODERS[tag].decode(line))
            except (KeyError, ValueError) as error:
                raise UnfitHistoryError(f"{path}: line {number} does not fit its type: {error}") from error
    except UnfitHistoryError:
        if not allow_cut:
            raise
    if not allow_cut and counted != len(entries):
        raise UnfitHistoryError(f"{path} has no footer that counts its {len(entries)} entries; the run was cut")
    return History(
        run=header.run,
        wall_clock_anchor=header.wall_clock_anchor,
        anchor_ns=header.anchor_ns,
        entries=tuple(entries),
    )


def lines(*, run: str, wall_clock_anchor: str, anchor_ns: int, entries: Iterable[Entry]) -> Iterator[str]:
    """A whole history as lines; for planted histories and for copies."""
    count = 0
    yield header_line(run=run, wall_clock_anchor=wall_clock_anchor, anchor_ns=anchor_ns)
    for entry in entries:
        count += 1
        yield entry_line(entry)
    yield footer_line(count)
