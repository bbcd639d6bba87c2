"""A moment as a person types it: a date and time, or how long from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_AHEAD = re.compile(r"\+([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_of(text: str, now: datetime) -> datetime:
    """The moment that C{text} means: C{+2h}, or RFC 3339, without an offset in the zone of this machine.

    :raises click.BadParameter: it is neither.
    """
    ahead = _AHEAD.fullmatch(text)
    if ahead is not None:
        return now + timedelta(**{_UNITS[ahead[2]]: int(ahead[1])})
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is neither such as +2h nor such as 2026-03-01T09:00.") from None
