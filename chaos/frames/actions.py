"""The actions of rules: frozen values that say what to do with a selected frame, and how far a network does the same.

`Hold` and `Delay` act like a slow path. TCP keeps the order of a connection. So all later bytes of the connection in that
direction wait behind a held frame, and so does its end. **Nothing overtakes.** A
client that gives up, closes and connects again has a free new connection. The held frame and, behind it, the end of the
old connection still arrive when they are released. In this way a delayed request is carried out after its own retry. No
network lets a frame overtake on one connection. To bring an old frame to a broker before younger ones, send it again on
a connection of its own (`Duplicate`).

`Drop` loses the frame. No network takes one frame out of a connection and delivers the next one: after a loss nothing
more arrives. So by default everything behind the frame in its direction is lost, too, and the connection stays open
until one side closes it. `alone=True` drops only the one frame. Kafka answers in order, so the answer to such a request
is missing for ever. librdkafka finds answers by correlation id, and only that one request times out. kafka-clients,
which brokers use among themselves, and the wire client of this project expect answers in order and raise at the next
one. That error comes from `alone` and is no defect of the client.

`Duplicate` lets the frame pass and sends the same bytes `times` times more, each `after_s` seconds after the one before.
Each copy has a fresh connection to the same broker. The answers are kept as evidence and not delivered. A listener with
SASL or TLS does not accept such a connection; the record of the copy then says so.

`Respond` answers in place of the broker. As an action on requests the broker never sees the frame. On responses the
broker has carried out the request, and the client receives another answer. It takes an error code, or the whole body.

`Cut` closes the connection, in both directions, instead of delivering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from chaos.frames.selector import Direction, FrameFilter


class FrameAction(Protocol):
    """An action on a selected frame."""

    @property
    def verb(self) -> str:
        """The action in a proof: "held"."""

    def flaw(self) -> str | None:
        """Why it cannot be done, None when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep the frame, and all bytes behind it, until the rule releases it."""

    verb = "held"

    def flaw(self) -> str | None:
        """Always possible."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Keep the frame, and all bytes behind it, `delay_s` seconds after it was read, or until the rule releases it."""

    delay_s: float
    verb = "delayed"

    def flaw(self) -> str | None:
        """A delay takes time."""
        return None if self.delay_s > 0 else f"a delay of {self.delay_s:g} s changes nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Drop the frame, and by default everything behind it on its connection and in its direction."""

    alone: bool = False
    verb = "dropped"

    def flaw(self) -> str | None:
        """Always possible."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Let the frame pass and send it `times` times more, each `after_s` after the one before, on its own connections."""

    times: int = 1
    after_s: float = 0.0
    verb = "duplicated"

    def flaw(self) -> str | None:
        """There must be at least one copy, and none before the frame itself."""
        return (
            None
            if self.times >= 1 and self.after_s >= 0
            else f"{self.times} copies after {self.after_s:g} s are impossible"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Respond:
    """Answer in place of the broker: with `error_code` wherever the response has one, or with this `body`."""

    error_code: int | None = None
    body: Mapping[str, Any] | None = None
    verb = "answered"

    def flaw(self) -> str | None:
        """Exactly one of the two."""
        return None if (self.error_code is None) != (self.body is None) else "give either an error code or a body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Close the connection instead of delivering."""

    verb = "cut at"

    def flaw(self) -> str | None:
        """Always possible."""
        return None


def flaw(frames: FrameFilter, action: FrameAction) -> str | None:
    """Why a rule of these two could never act, None when it could."""
    if isinstance(action, Duplicate) and frames.direction is Direction.RESPONSE:
        return "a response cannot be duplicated: no client waits for a second one"
    return frames.flaw() or action.flaw()
