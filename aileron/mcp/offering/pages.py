"""Long lists in pages; a page goes on behind the last thing of the one before, whatever came or went meanwhile."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_MARK = b"\x01"


class BadCursor(ValueError):
    """A cursor that no list of ours gave."""


def page(things: Sequence[T], key: Callable[[T], str], cursor: str | None, size: int) -> tuple[Sequence[T], str | None]:
    """One page, and the cursor of the next.

    :param key: by which C{things} are in order, no two alike.
    :param cursor: L{None}: the first page.
    :return: L{None} for a cursor at the end.
    :raises BadCursor: it is none of ours.
    """
    behind = None if cursor is None else _read(cursor)
    left = [thing for thing in things if behind is None or key(thing) > behind]
    shown = left[:size]
    return shown, _write(key(shown[-1])) if len(left) > size else None


def _write(key: str) -> str:
    return base64.urlsafe_b64encode(_MARK + key.encode()).decode("ascii").rstrip("=")


def _read(cursor: str) -> str:
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        key = whole.removeprefix(_MARK).decode()
    except (binascii.Error, ValueError):
        raise BadCursor("no such cursor") from None
    if not whole.startswith(_MARK) or _write(key) != cursor:
        raise BadCursor("no such cursor")
    return key
