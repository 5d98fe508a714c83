"""Start times, as values and as text for readers.

Runs write the basic form of ISO 8601 in UTC (20261122T131845Z), histories the extended form.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def instant(started: str) -> datetime | None:
    """Parse a start time to UTC; None where the text is no date and time. Without a zone it counts as UTC."""
    try:
        at = datetime.fromisoformat(started)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def later(at: datetime, by_ns: int) -> datetime | None:
    """The instant so many nanoseconds later; None outside the calendar (years 1 to 9999)."""
    try:
        return at + timedelta(microseconds=by_ns // 1_000)
    except OverflowError:
        return None


def moment(started: str) -> str:
    """The start time for readers, to the minute; a text that cannot be parsed stays as it is."""
    at = instant(started)
    return started if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
