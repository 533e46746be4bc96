"""Times in output, and dates that users give."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(time_ms: int) -> str | None:
    """A time in ms as text in UTC with ms; None for a time that is not set (negative)."""
    if time_ms < 0:
        return None
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"  # after the year 9999
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_ms(text: str) -> int | None:
    """The time in ms of a date in ISO 8601, in UTC unless it names a zone; None for other texts."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
