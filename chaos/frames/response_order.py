"""The order of answers on one connection.

Kafka answers a connection's requests in the order they were sent. Each request that goes on takes a place; an answer
finds its place by its correlation id, looking from the oldest on, because a request may be answered by nobody (Produce
with Acks 0, which only its body tells). Places that are passed over in this way are given up. A place may be *ready*:
its answer is ours and leaves when everything before it has left, so that what we answer never comes before its turn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from chaos.frames.request_fields import RequestFrame
from chaos.frames.rule import Rule

#: Clients keep 5 requests in flight, librdkafka at most a million; requests without answer must not pile up for ever.
PLACES_MAX = 10_000


@dataclass(slots=True, kw_only=True, eq=False)
class ResponseSlot:
    """Where the answer to one request belongs, and who is interested in it."""

    correlation_id: int
    asked: RequestFrame | None = None
    rules: tuple[Rule, ...] = ()
    met: tuple[Rule, int] | None = None
    ready: bytes | None = None


@dataclass(slots=True)
class ResponseOrder:
    """The places of one connection; `current` is that of the response which is passing now."""

    current: ResponseSlot | None = None
    _places: deque[ResponseSlot] = field(default_factory=deque)

    def expect(self, place: ResponseSlot) -> None:
        """A request goes on, or was answered by us."""
        self._places.append(place)
        if len(self._places) > PLACES_MAX:
            self._places.popleft()

    def begin(self, correlation_id: int) -> bytes:
        """A response begins: its place becomes the current one; answers of ours that must leave before it."""
        self.current = None
        for passed, place in enumerate(self._places):
            if place.ready is None and place.correlation_id == correlation_id:
                before = b"".join(self._places.popleft().ready or b"" for _ in range(passed))
                self.current = place
                return before
        return b""

    def end(self) -> bytes:
        """The response has passed; answers of ours that may leave now."""
        if self.current is not None and self._places and self._places[0] is self.current:
            self._places.popleft()
        self.current = None
        return self.due()

    def due(self) -> bytes:
        """Answers of ours before which nothing is left to wait for."""
        out = bytearray()
        while self._places and (ready := self._places[0].ready) is not None:
            out += ready
            self._places.popleft()
        return bytes(out)
