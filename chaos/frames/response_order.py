"""Keeps the answers of one connection in the order of their requests, including the relay's own answers.

Kafka answers the requests of a connection in the order they were sent. Each request that passes gets a slot. An answer
finds its slot by its correlation id, beginning with the oldest. Older slots are then given up: their requests had no
answer (Produce with Acks 0, which only its body shows). A slot may be *ready*: its answer comes from the relay and
leaves when everything before it has left.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from chaos.frames.request_fields import RequestFrame
from chaos.frames.rule import Rule

#: Clients keep 5 requests in flight, librdkafka at most a million; requests without answer must not pile up for ever.
SLOTS_MAX = 10_000


@dataclass(slots=True, kw_only=True, eq=False)
class ResponseSlot:
    """The position of the answer to one request, with the rules that want it."""

    correlation_id: int
    request: RequestFrame | None = None
    rules: tuple[Rule, ...] = ()
    met: tuple[tuple[Rule, int], ...] = ()
    ready: bytes | None = None


@dataclass(slots=True)
class ResponseOrder:
    """The slots of one connection; `current` is that of the response which is passing now."""

    current: ResponseSlot | None = None
    _slots: deque[ResponseSlot] = field(default_factory=deque)

    def expect(self, slot: ResponseSlot) -> None:
        """A request goes on, or the relay answered it."""
        self._slots.append(slot)
        if len(self._slots) > SLOTS_MAX:
            self._slots.popleft()

    def begin(self, correlation_id: int) -> bytes:
        """Begin a response: its slot becomes the current one. Returns the relay's answers that must leave before it."""
        self.current = None
        for passed, slot in enumerate(self._slots):
            if slot.ready is None and slot.correlation_id == correlation_id:
                before = b"".join(self._slots.popleft().ready or b"" for _ in range(passed))
                self.current = slot
                return before
        return b""

    def end(self) -> bytes:
        """End a response. Returns the relay's answers that may leave now."""
        if self.current is not None and self._slots and self._slots[0] is self.current:
            self._slots.popleft()
        self.current = None
        return self.due()

    def due(self) -> bytes:
        """The relay's answers with nothing left before them."""
        out = bytearray()
        while self._slots and (ready := self._slots[0].ready) is not None:
            out += ready
            self._slots.popleft()
        return bytes(out)
