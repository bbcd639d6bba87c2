"""Where a page ended, as a word that callers hand back without reading it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeVar

from aileron.errors import InvalidRequest
from aileron.values import Page

T = TypeVar("T")


def after(kind: str, cursor: str | None) -> int | None:
    """The key that C{cursor} stands for.

    :param kind: which list it must come from.
    :raises InvalidRequest: a cursor that this list did not give.
    """
    if cursor is None:
        return None
    given, _, key = _read(cursor).partition(":")
    if given != kind or not key.isascii() or not key.isdigit() or len(key) > 18:
        raise InvalidRequest.listing("That is no cursor of this list.", ("/cursor", "this list did not give it"))
    return int(key)


def page(kind: str, rows: Sequence[tuple[int, T]], limit: int) -> Page[T]:
    """One page of C{rows}, which are one more than C{limit} where there is a next page."""
    items = tuple(item for _, item in rows[:limit])
    if len(rows) <= limit:
        return Page(items)
    word = base64.b64encode(f"{kind}:{rows[limit - 1][0]}".encode("ascii"), b"-_")
    return Page(items, word.decode("ascii"))


def _read(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, b"-_", validate=True).decode("ascii")
    except ValueError:
        return ""
