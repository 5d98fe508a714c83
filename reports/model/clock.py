"""When something began, as values and for people.

Runs write the basic form of ISO 8601 in UTC (20261122T131845Z), histories the extended one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def instant(started: str) -> datetime | None:
    """When a run began, in UTC; None where its text is no instant of the calendar. Without a zone it is of UTC."""
    try:
        at = datetime.fromisoformat(started)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def later(at: datetime, by_ns: int) -> datetime | None:
    """The instant so many nanoseconds later; None where the calendar has ended or has not begun."""
    try:
        return at + timedelta(microseconds=by_ns // 1_000)
    except OverflowError:
        return None


def moment(started: str) -> str:
    """The instant as people write it, to the minute; what is no instant stays as it is."""
    at = instant(started)
    return started if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
