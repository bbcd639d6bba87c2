"""Moments: aware, UTC, and written in one way."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

_WRITTEN = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"


def utc(seconds: float) -> datetime:
    """Return the moment C{seconds} after the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


@lru_cache(maxsize=256)  # one moment is written several times: in a row, in an event, in its seal
def timestamp(moment: datetime) -> str:
    """RFC 3339 with microseconds and C{Z}: sorts as text in the order of time."""
    at = moment.astimezone(UTC)  # isoformat would take thrice as long
    return _WRITTEN % (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def from_timestamp(text: str) -> datetime:
    """Read what L{timestamp} wrote.

    :raises ValueError: it is no such text.
    """
    return datetime.fromisoformat(text).astimezone(UTC)
