"""Reads a log from its segment files: the batches in order, the tail, and damage.

A `.log` file is a sequence of record batches (format v2) exactly as in a Fetch answer, so `wire.records` decodes both.
One rule applies to the bytes after the last whole batch:

* In the **active** segment, the last one, a batch whose end is missing is a *torn tail*: the broker died while it wrote,
  and never acknowledged the batch. Zeros alone are a file that was allocated in advance. Both end the log, and `tail`
  describes the bytes that are left out. Kafka's recovery truncates there too.
* Everything else is damage: a batch that is cut off in an earlier segment, a wrong CRC, offsets that go back, bytes that
  are no batch. Kafka's recovery would truncate an active segment there too. A judge does not, because bytes that changed
  after they were written look the same.

Damage raises an error when the reader reaches it, after all batches before it. Memory is one chunk, or the largest batch.

Source of the format: Kafka's documentation, "Message Format" and "Log"; of recovery: `LogSegment.recover`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from verification.vocabulary.errors import SegmentChecksumError, SegmentDamagedError
from wire.errors import BatchError
from wire.records import HEADER, LOG_OVERHEAD, Batch, decode

#: Bytes that are read at a time: many batches, each at most 1 MB by default. Each replica has one chunk in memory.
CHUNK_BYTES = 8 << 20


def base_of(path: Path) -> int:
    """The first offset of a segment, which is its name."""
    return int(path.stem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Bytes after the last whole batch of the active segment; `zeros` if they were only allocated in advance."""

    path: Path
    position: int
    size: int
    zeros: bool

    def __str__(self) -> str:
        what = "zeros allocated in advance" if self.zeros else "bytes of a batch whose end was never written"
        return f"{self.path.name} ends with {self.size} {what}, at byte {self.position}"


@dataclass(slots=True, kw_only=True)
class SegmentLog:
    """A log in [start, end) from its segments in order; iterate over it once for the batches.

    With `end` None it reads to the end of the log. `position` is the offset after the last batch that was read; `tail`
    is known at the end. The first batch may begin before `start`, and the last may reach beyond `end`.
    """

    segments: tuple[Path, ...]
    start: int = 0
    end: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    position: int = -1
    tail: Tail | None = None
    _next: int = field(default=0, repr=False)  # no batch may begin below

    def __iter__(self) -> Iterator[Batch]:
        """Raises SegmentDamagedError and SegmentChecksumError for damage."""
        for batches in self.answers():
            yield from batches

    def answers(self) -> Iterator[list[Batch]]:
        """The same batches in lists, which `wire.columns` decodes faster."""
        self.position = self.start
        for path, following in zip(self.segments, (*self.segments[1:], None), strict=True):
            if following is not None and base_of(following) <= self.start:
                continue
            for batches in self._whole(path, active=following is None):
                kept = [
                    each
                    for each in batches
                    if each.next_offset > self.start and (self.end is None or each.base_offset < self.end)
                ]
                if kept:
                    self.position = kept[-1].next_offset
                    yield kept
                if self.end is not None and self._next >= self.end:
                    # If compaction emptied the rest of the range, the next batch begins after its end.
                    self.position = max(self.position, self.end)
                    return

    def _whole(self, path: Path, *, active: bool) -> Iterator[list[Batch]]:
        """The whole batches of one file, chunk by chunk."""
        with path.open("rb") as file:
            size, at, buffer = os.fstat(file.fileno()).st_size, 0, b""
            # As long as there is more to read, and the next batch does not claim to end after the end of the file.
            while at + len(buffer) < size and at + _declared(buffer) <= size:
                buffer += file.read(max(self.chunk_bytes, _declared(buffer), HEADER.size) - len(buffer))
                batches, fault = self._decoded(path, at, buffer)
                used = sum(each.size for each in batches)
                at, buffer = at + used, buffer[used:]
                if batches:
                    yield batches
                if fault is not None:
                    if not _only_zeros(buffer, file):
                        raise fault
                    break
            if at == size:
                return
            if not active:
                raise SegmentDamagedError(f"{path} is cut off at byte {at}; only the last segment of a log may be")
            zeros = _only_zeros(buffer, file)
            self.tail = Tail(path=path, position=at, size=size - at, zeros=zeros)

    def _decoded(self, path: Path, at: int, buffer: bytes) -> tuple[list[Batch], SegmentDamagedError | None]:
        """The sound batches at the beginning of a buffer, and the damage of the one after them."""
        batches: list[Batch] = []
        try:
            for batch in decode(buffer):
                where = f"{path} at byte {at}: the batch at offset {batch.base_offset}"
                floor = max(self._next, base_of(path))
                if not batch.crc_ok:
                    return batches, SegmentChecksumError(f"{where} does not have the CRC that its header says")
                if batch.base_offset < floor:
                    return batches, SegmentDamagedError(f"{where} follows where {floor} or later is expected")
                at, self._next = at + batch.size, batch.next_offset
                batches.append(batch)
        except BatchError as error:
            return batches, SegmentDamagedError(f"{path} at byte {at}: {error}")
        return batches, None


def _declared(buffer: bytes) -> int:
    """The size in bytes that the first batch of a buffer declares; 0 if the buffer is too short to say."""
    if len(buffer) < LOG_OVERHEAD:
        return 0
    return LOG_OVERHEAD + int.from_bytes(buffer[8:LOG_OVERHEAD], "big", signed=True)


def _only_zeros(buffer: bytes, file: BinaryIO) -> bool:
    """Whether a buffer and the rest of its file are only zeros; the position in the file stays as it was."""
    here = file.tell()
    piece = buffer
    while piece.count(0) == len(piece):
        piece = file.read(CHUNK_BYTES)
        if not piece:
            file.seek(here)
            return True
    file.seek(here)
    return False
