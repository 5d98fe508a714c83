"""Splits one direction of a connection into frames while its bytes pass.

A frame is four length bytes and so many more. Its *head* is the length and the first bytes behind it: API key, version
and correlation id of a request, or the correlation id of a response. At the head `begin` decides whether the frame is
passed on as it comes, or collected and yielded whole. Passing on costs no memory, for any length. `begin` and `end`, which
is called at the end of a frame, may return bytes to insert there. So the relay's own answers come between frames.

Bytes never wait without need: a head that is cut in two is passed on at once unless `withhold` is set. It is set while a
rule exists that may want the frame. A length that no Kafka frame has (negative, or above 128 MiB, as TLS records look)
makes the rest of the stream *opaque*: it is passed on without being read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

#: Brokers refuse requests above 100 MiB (socket.request.max.bytes); the first bytes of TLS read as at least 320 MiB.
SIZE_MAX = 128 << 20
_LENGTH = 4


class Whole(bytes):
    """A collected frame with its length; other bytes just pass."""

    __slots__ = ()


class _Cursor:
    """A chunk: bytes before `start` were yielded, bytes from `start` to `position` were read but not yielded."""

    __slots__ = ("chunk", "position", "size", "start")

    def __init__(self, chunk: bytes) -> None:
        self.chunk, self.position, self.start, self.size = chunk, 0, 0, len(chunk)

    def run(self) -> bytes:
        """The bytes that were read and not yielded."""
        start, self.start = self.start, self.position
        return self.chunk[start : self.position]

    def skip(self, count: int) -> bytes:
        """The next bytes, which belong to no run."""
        start = self.position
        self.position = self.start = start + count
        return self.chunk[start : start + count]

    def cut(self) -> bytes:
        """All bytes that were not read; the chunk then ends before them."""
        rest, self.chunk, self.size = self.chunk[self.position :], self.chunk[: self.position], self.position
        return rest


class Framer:
    """The state of one direction. Feed it the bytes that were read; pass on the pieces that it yields, in order.

    `begin(head, size, collectable)` is called once per frame, in order, when everything before it has been yielded or
    will be with it. It returns bytes to go before the frame, and whether to collect it. `end()` is called after the last
    byte of a passing frame, or after a collected one was handled; it returns bytes to go behind the frame.
    """

    def __init__(
        self,
        head_bytes: int,
        begin: Callable[[bytes, int, bool], tuple[bytes, bool]],
        end: Callable[[], bytes],
        *,
        frame_bytes_max: int,
    ) -> None:
        self.opaque = False
        self.inside = False
        """Whether part of a frame has passed and the rest has not: nothing may be inserted now."""
        self._head_bytes, self._begin, self._end, self._collect_max = head_bytes, begin, end, frame_bytes_max
        self._carry = b""  # a head's first bytes, withheld
        self._begun = b""  # a head's first bytes, passed on
        self._late = b""  # bytes to insert after the current frame
        self._left = 0  # bytes of the current frame that are still to come, once its head is known
        self._whole: bytearray | None = None

    def feed(self, chunk: bytes, *, withhold: bool) -> Iterator[bytes | Whole]:
        """The pieces that may go on, in order; handle each piece before taking the next one."""
        cursor, self._carry = _Cursor(self._carry + chunk), b""
        while cursor.position < cursor.size and not self.opaque:
            if not self._left and not (yield from self._enter(cursor, withhold=withhold)):
                break
            step = min(self._left, cursor.size - cursor.position)
            if self._whole is not None:
                self._whole += cursor.skip(step)
            else:
                cursor.position += step
            self._left -= step
            if not self._left:
                yield from self._leave(cursor)
        cursor.position = cursor.size
        if run := cursor.run():
            yield run

    def rest(self) -> bytes:
        """The bytes kept of a frame that stays incomplete because the stream ended."""
        kept = self._carry + bytes(self._whole or b"")
        self._carry, self._whole = b"", None
        return kept

    def _head(self, chunk: bytes, position: int) -> bytes | None:
        """The whole head that begins here, or before this chunk; None when it is cut off or the stream is opaque."""
        seen = self._begun + chunk[position : position + _LENGTH + self._head_bytes - len(self._begun)]
        if len(seen) < _LENGTH:
            return None
        size = int.from_bytes(seen[:_LENGTH], "big", signed=True)
        if not 0 <= size <= SIZE_MAX:
            self.opaque = True
            return None
        known = _LENGTH + min(size, self._head_bytes)
        return seen[:known] if len(seen) >= known else None

    def _enter(self, cursor: _Cursor, *, withhold: bool) -> Generator[bytes, None, bool]:
        """Begin a frame: insert the bytes before it. False when its head is cut off or the stream is opaque."""
        head = self._head(cursor.chunk, cursor.position)
        if head is None:
            self._interrupted(cursor, withhold=withhold)
            return False
        size, begun = int.from_bytes(head[:_LENGTH], "big"), len(self._begun)
        collectable = not begun and _LENGTH + size <= self._collect_max
        insert, wanted = self._begin(head, size, collectable)
        if begun:
            self._late, insert = insert, b""  # its first bytes have left, so the inserted bytes must follow it
        self._left, self._begun, self.inside = _LENGTH + size - len(head), b"", not (wanted and collectable)
        if insert or not self.inside:
            if run := cursor.run():
                yield run
            if insert:
                yield insert
        if self.inside:
            cursor.position += len(head) - begun
        else:
            self._whole = bytearray(cursor.skip(len(head)))
        return True

    def _leave(self, cursor: _Cursor) -> Iterator[bytes | Whole]:
        """End a frame: yield it if it was collected, and insert the bytes behind it."""
        whole, self._whole = self._whole, None
        if whole is not None:
            yield Whole(whole)
        self.inside = False
        insert, self._late = self._late + self._end(), b""
        if insert:
            if run := cursor.run():
                yield run
            yield insert

    def _interrupted(self, cursor: _Cursor, *, withhold: bool) -> None:
        """The chunk ends inside a head, or is opaque from here on: withhold the rest, or pass it on."""
        if withhold and not self._begun and not self.opaque:
            self._carry = cursor.cut()
        else:
            self._begun += cursor.chunk[cursor.position :]
            self.inside = True
