"""When something began, as values and for people.

Runs write the basic form of ISO 8601 in UTC (20261122T131845Z), histories the extended one.
"""

from __future__ import annotations

from datetime import UTC, datetime


def instant(started: str) -> datetime | None:
    """When a run began, None where its text is no instant; a run without a zone is of UTC."""
    try:
        at = datetime.fromisoformat(started)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def moment(started: str) -> str:
    """The instant as people write it, to the minute; what is no instant stays as it is."""
    at = instant(started)
    return started if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
