"""The conditions of a query, and the pages of what it finds."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate, islice, takewhile
from typing import TypeVar

from aileron.errors import InvalidRequest
from aileron.values import Page, compact, timestamp

T = TypeVar("T")


def moment(value: datetime | None) -> str | None:
    """Write a moment to compare with, where there is one."""
    return None if value is None else timestamp(value)


def conditions(*terms: tuple[str, object]) -> tuple[str, list[object]]:
    """Write the C{WHERE} of those C{terms} that have a value, and the values.

    :param terms: an SQL condition with one placeholder, and its value or L{None}.
    """
    given = [(term, value) for term, value in terms if value is not None]
    where = " AND ".join(term for term, _ in given)
    return (f"WHERE {where}" if where else ""), [value for _, value in given]


def among(column: str, values: Sequence[str]) -> tuple[str, str | None]:
    """Write the term that C{column} is one of C{values}; none given: any."""
    return f"{column} IN (SELECT value FROM json_each(?))", compact(list(values)) if values else None


def read_cursor(kind: str, cursor: str | None) -> int | None:
    """Read the position that C{cursor} stands for.

    :param kind: which list it must come from.
    :raises InvalidRequest: a cursor that this list did not give.
    """
    if cursor is None:
        return None
    given, _, key = _decode(cursor).partition(":")
    if given != kind or not key.isascii() or not key.isdigit() or len(key) > 18:
        raise InvalidRequest.listing("That is no cursor of this list.", ("/cursor", "this list did not give it"))
    return int(key)


def fit(sizes: Iterable[int], limit: int, most_bytes: int | None) -> int:
    """Count how many of the next rows make a page: C{limit} at most, and no more than fit, but one at least.

    :param sizes: of the rows, in bytes.
    """
    if most_bytes is None:
        return limit
    fitting = takewhile(lambda total: total <= most_bytes, accumulate(islice(sizes, limit)))
    return min(limit, max(1, sum(1 for _ in fitting)))


def make_page(kind: str, rows: Sequence[tuple[int, T]], limit: int) -> Page[T]:
    """One page of C{rows}, each with its position, which are one more than C{limit} where there is a next page."""
    items = tuple(item for _, item in rows[:limit])
    if len(rows) <= limit:
        return Page(items)
    word = base64.b64encode(f"{kind}:{rows[limit - 1][0]}".encode("ascii"), b"-_")
    return Page(items, word.decode("ascii"))


def _decode(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode("ascii")
    except ValueError:
        return ""
