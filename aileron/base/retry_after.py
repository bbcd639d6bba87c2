"""The header C{Retry-After} of a response (RFC 9110 10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_RETRY_AFTER_SECONDS = 24 * 3600.0
_MOST_DIGITS = 12


def read_retry_after(text: str, now: datetime) -> float | None:
    """Return the seconds in C{Retry-After}, a number or a date, or None if it is invalid or over a day."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text) if len(text) < _MOST_DIGITS else MOST_RETRY_AFTER_SECONDS + 1
    else:
        try:
            until = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        seconds = max(((until if until.tzinfo else until.replace(tzinfo=UTC)) - now).total_seconds(), 0.0)
    return seconds if seconds <= MOST_RETRY_AFTER_SECONDS else None
