"""Outage events: a case goes through them alone, or together with others (`runner.protocol.shared_outages`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OutageEvent:
    """The begin or the end of an outage. `act` makes it happen, once for all cases that share it."""

    name: str
    act: Callable[[], None] = field(compare=False)


OnOutage = Callable[[OutageEvent], None]


def at_once(event: OutageEvent) -> None:
    """Act without waiting, because no other case shares the outage."""
    event.act()
