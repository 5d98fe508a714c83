"""Cuts one direction of a connection into frames while its bytes pass.

A frame is four length bytes and so many more. Its *head*, the length and the first bytes behind it (API key, version
and correlation id of a request; the correlation id of a response), decides whether it is passed on as it comes, which
costs no memory however long it is, or collected and given out whole. What is asked at a head (`begin`) and told at a
frame's end (`end`) may name bytes to be put in at that place, which is how answers of our own come between frames.

Bytes never wait without need: a head that is cut in two is passed on at once unless `withhold` is set, that is while a
rule exists that may want the frame. A length that no Kafka frame has (negative, or above 128 MiB: TLS records read
so) makes the rest of the stream *opaque*: passed on and never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

#: Brokers refuse requests above 100 MiB (socket.request.max.bytes); the first bytes of TLS read as at least 320 MiB.
SIZE_MAX = 128 << 20
_LENGTH = 4


class Whole(bytes):
    """A collected frame with its length, as against bytes that just pass."""

    __slots__ = ()


class _Cursor:
    """A chunk, how far it has been looked at, and from where on that has not been given out."""

    __slots__ = ("chunk", "position", "size", "start")

    def __init__(self, chunk: bytes) -> None:
        self.chunk, self.position, self.start, self.size = chunk, 0, 0, len(chunk)

    def run(self) -> bytes:
        """What has been looked at and not given out."""
        start, self.start = self.start, self.position
        return self.chunk[start : self.position]

    def skip(self, count: int) -> bytes:
        """The next bytes, which are not part of any run."""
        start = self.position
        self.position = self.start = start + count
        return self.chunk[start : start + count]

    def cut(self) -> bytes:
        """Everything that has not been looked at; the chunk ends before it."""
        rest, self.chunk, self.size = self.chunk[self.position :], self.chunk[: self.position], self.position
        return rest


class Framer:
    """The state of one direction. Give it what was read; what it yields goes on, in this order.

    `begin(head, size, collectable)` is called once per frame, in order, when everything before it has been yielded or
    will be with it; it returns bytes to go before the frame, and whether to collect it. `end()` is called when a
    passing frame's last byte was seen, or when a collected one was dealt with.
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
        """Whether part of a frame has passed and the rest has not: nothing may be put in here."""
        self._head_bytes, self._begin, self._end, self._collect_max = head_bytes, begin, end, frame_bytes_max
        self._carry = b""  # a head's first bytes, withheld
        self._begun = b""  # a head's first bytes, passed on
        self._late = b""  # what is put in when the present frame has ended
        self._left = 0  # bytes of the present frame that are still to come, its head being known
        self._whole: bytearray | None = None

    def feed(self, chunk: bytes, *, withhold: bool) -> Iterator[bytes | Whole]:
        """What may go on, in order; act on each piece before asking for the next one."""
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
        """What is kept of a frame whose end will never come, because the stream ended."""
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
        """A frame begins: put in what goes before it; False when its head is cut off or the stream is opaque."""
        head = self._head(cursor.chunk, cursor.position)
        if head is None:
            self._interrupted(cursor, withhold=withhold)
            return False
        size, begun = int.from_bytes(head[:_LENGTH], "big"), len(self._begun)
        collectable = not begun and _LENGTH + size <= self._collect_max
        insert, wanted = self._begin(head, size, collectable)
        if begun:
            self._late, insert = insert, b""  # its first bytes have left: what should go before it must go behind it
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
        """A frame ends: give it out if it was collected, and put in what goes behind it."""
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
        """The chunk ends inside a head, or is opaque from here on: withhold it, or let it go."""
        if withhold and not self._begun and not self.opaque:
            self._carry = cursor.cut()
        else:
            self._begun += cursor.chunk[cursor.position :]
            self.inside = True
