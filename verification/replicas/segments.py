"""A log from its segment files: batches in order, and a rule for everything that is not one.

A `.log` file is a run of record batches (format v2) exactly as Fetch would answer them, so `wire.records` decodes both.
What stands behind the last whole batch is treated by one rule:

* In the **active** segment, the last one, a beginning of a batch whose end is missing is a *torn tail*: the broker died
  while it wrote, and never acknowledged it. Nothing but zeros is a file that was laid out in advance. Both end the log,
  and `tail` says what was left out. Kafka's own recovery cuts there too.
* Anything else is damage: a batch that is cut off in an earlier segment, a CRC that does not hold, offsets that go
  back, bytes that are no batch. Kafka's recovery would cut an active segment there as well; a judge does not, because
  bytes that changed after they were written look the same.

Damage raises where it is reached, after everything before it was given. Memory is one chunk, or the largest batch.

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

#: Read at a time: many batches, of which one is a megabyte at most by default; each replica has one in memory.
CHUNK_BYTES = 8 << 20


def base_of(path: Path) -> int:
    """The offset that a segment's name says it begins at."""
    return int(path.stem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Bytes behind the last whole batch of the active segment; `zeros` where they were only laid out in advance."""

    path: Path
    position: int
    size: int
    zeros: bool

    def __str__(self) -> str:
        what = "zeros laid out in advance" if self.zeros else "bytes of a batch whose end was never written"
        return f"{self.path.name} ends with {self.size} {what}, at byte {self.position}"


@dataclass(slots=True, kw_only=True)
class SegmentLog:
    """A log in [start, end) from its segments in order; iterate over it once for the batches.

    `end` None reads on to where the log ends. `position` is the offset after what was read, `tail` is known when
    the end was reached. The first batch may begin before `start`, the last may reach beyond `end`.
    """

    segments: tuple[Path, ...]
    start: int = 0
    end: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    position: int = -1
    tail: Tail | None = None
    _next: int = field(default=0, repr=False)  # no batch may begin below

    def __iter__(self) -> Iterator[Batch]:
        """Raises SegmentDamagedError and SegmentChecksumError where the files are not what they must be."""
        for batches in self.answers():
            yield from batches

    def answers(self) -> Iterator[list[Batch]]:
        """The same in lists, which is what `wire.columns` is quick with."""
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
                    # Where compaction emptied the rest of the range, the next batch lies behind its end.
                    self.position = max(self.position, self.end)
                    return

    def _whole(self, path: Path, *, active: bool) -> Iterator[list[Batch]]:
        """The whole batches of one file, chunk by chunk."""
        with path.open("rb") as file:
            size, at, buffer = os.fstat(file.fileno()).st_size, 0, b""
            # As long as there is more to read, and the batch that comes does not claim to end behind the file.
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
        """The sound batches at the beginning of a buffer, and what is wrong with the one behind them."""
        batches: list[Batch] = []
        try:
            for batch in decode(buffer):
                where = f"{path} at byte {at}: the batch at offset {batch.base_offset}"
                floor = max(self._next, base_of(path))
                if not batch.crc_ok:
                    return batches, SegmentChecksumError(f"{where} does not have the CRC that it says")
                if batch.base_offset < floor:
                    return batches, SegmentDamagedError(f"{where} stands where {floor} or later must follow")
                at, self._next = at + batch.size, batch.next_offset
                batches.append(batch)
        except BatchError as error:
            return batches, SegmentDamagedError(f"{path} at byte {at}: {error}")
        return batches, None


def _declared(buffer: bytes) -> int:
    """How many bytes the batch at the beginning of a buffer says that it has; 0 where the buffer does not reach."""
    if len(buffer) < LOG_OVERHEAD:
        return 0
    return LOG_OVERHEAD + int.from_bytes(buffer[8:LOG_OVERHEAD], "big", signed=True)


def _only_zeros(buffer: bytes, file: BinaryIO) -> bool:
    """Whether nothing but zeros stands in a buffer and, from here on, in its file, which is left where it was."""
    here = file.tell()
    piece = buffer
    while piece.count(0) == len(piece):
        piece = file.read(CHUNK_BYTES)
        if not piece:
            file.seek(here)
            return True
    file.seek(here)
    return False
