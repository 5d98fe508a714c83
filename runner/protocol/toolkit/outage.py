"""An outage as a case goes through it: alone, or together with others (`runner.protocol.shared_outages`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OutageEvent:
    """Something that happens to the brokers once, when everybody who shares it is there: `act` does `what`."""

    what: str
    act: Callable[[], None] = field(compare=False)


Together = Callable[[OutageEvent], None]


def alone(moment: OutageEvent) -> None:
    """There is nobody to be waited for."""
    moment.act()
