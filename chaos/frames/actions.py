"""What happens to a selected frame. Each action is a frozen value; what is honest about it is said here.

`Hold` and `Delay` are what a slow path does. TCP keeps the order of one connection, so whatever follows a held frame
on its connection and in its direction waits behind it, and so does the end of the connection. **Nothing overtakes.**
A client that gives up, closes and connects again finds its new connection free; the held frame and, behind it, the end
of the old connection still arrive when they are let go. That is exactly how a delayed request comes to be carried
out after its own retry. A frame that shall overtake in the same connection does not exist in any network; to bring
an old one to a broker before younger ones, re-send it on a connection of its own (`FrameLinks.resend`, `Duplicate`).

`Drop` swallows. No network takes one frame out of a connection and delivers the next one: after a loss nothing more
arrives. So by default everything behind the frame on its connection and in its direction is lost, too, and the
connection stays open until a side tires of it. `alone=True` swallows the one frame only. Kafka's answers come in order,
so the slot of a lone dropped request's answer is missing for ever: librdkafka looks answers up by correlation id and
times that one request out; kafka-clients (and brokers among themselves, who use it) and this project's wire client
expect them in order and raise at the next answer, which says something about `alone` and nothing about them.

`Duplicate` lets the frame pass and sends the same bytes again, `times` times, each `after_s` seconds after the one
before, on a fresh connection of its own to the same broker. The answers are kept as evidence and given to nobody. A
listener that wants SASL or TLS does not accept such a connection, and the copy says so.

`Respond` answers for the broker. As an action on requests the broker never sees the frame; on responses the broker has
done what it was asked, and the client is told something else. It takes an error code, or the whole body.

`Cut` closes the connection, in both directions, instead of delivering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from chaos.frames.selector import Direction, FrameFilter


class FrameAction(Protocol):
    """What happens to a selected frame."""

    @property
    def verb(self) -> str:
        """What was done, for a proof: "held"."""

    def flaw(self) -> str | None:
        """Why it cannot be done, None when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep it, and what follows it, until the rule releases it."""

    verb = "held"

    def flaw(self) -> str | None:
        """Always possible."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Keep it, and what follows it, for so many seconds from when it was read, or until the rule releases it."""

    delay_s: float
    verb = "delayed"

    def flaw(self) -> str | None:
        """A delay takes time."""
        return None if self.delay_s > 0 else f"a delay of {self.delay_s:g} s is none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Swallow it, and by default everything that follows it on its connection and in its direction."""

    alone: bool = False
    verb = "dropped"

    def flaw(self) -> str | None:
        """Always possible."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Let it pass, and send it `times` times again, each `after_s` after the one before, on connections of its own."""

    times: int = 1
    after_s: float = 0.0
    verb = "duplicated"

    def flaw(self) -> str | None:
        """At least one copy, and none before the frame itself."""
        return None if self.times >= 1 and self.after_s >= 0 else f"{self.times} copies after {self.after_s:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Respond:
    """Answer for the broker: with `error_code` wherever the response has one, or with this `body`."""

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
    """Why a rule of these two could do nothing, None when it could."""
    if isinstance(action, Duplicate) and frames.direction is Direction.RESPONSE:
        return "a response cannot be duplicated: no client waits for a second one"
    return frames.flaw() or action.flaw()
