"""The transaction that several writes share: a cursor, and rows that are written together at its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")

_AT_ONCE = (16, 4, 1)


class Batch(sqlite3.Cursor):
    """The cursor of one transaction of the writer.

    Each statement lets the other threads run, and may have to wait until it is let on.  So rows that nobody in the
    transaction reads back are owed, and few statements write them all.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._owed: dict[Callable[[sqlite3.Cursor, Sequence[Any]], None], list[Any]] = {}

    def owe(self, write: Callable[[sqlite3.Cursor, Sequence[T]], None], rows: Iterable[T]) -> None:
        """Have C{write(cursor, rows)} called before the commit, once, with all the rows owed to it in their order."""
        self._owed.setdefault(write, []).extend(rows)

    def settle(self) -> None:
        """Write what is owed, in the order in which it was first owed to each.

        :raises sqlite3.Error: a row cannot be written; whose it is nobody can tell.
        """
        owed, self._owed = self._owed, {}
        for write, rows in owed.items():
            if rows:
                write(self, rows)

    def pay(self, write: Callable[[sqlite3.Cursor, Sequence[Any]], None]) -> None:
        """Have C{write} write now what is owed to it: somebody reads it back.  It keeps, or takes, its place.

        :raises sqlite3.Error: as of L{settle}.
        """
        rows, self._owed[write] = self._owed.get(write), []
        if rows:
            write(self, rows)

    def forget(self) -> None:
        """Owe nothing: what it belonged to was undone."""
        self._owed.clear()


def insert_all(cursor: sqlite3.Cursor, head: str, rows: Sequence[Sequence[object]], tail: str = "") -> None:
    """Insert C{rows}, in order, with as few statements as a handful of texts allow.

    :param head: the statement up to C{VALUES}.
    :param rows: all as wide as the first.
    :param tail: the rest of the statement.
    """
    done = 0
    for size in _AT_ONCE:
        while len(rows) - done >= size:
            statement = _statement(head, len(rows[0]), size, tail)
            cursor.execute(statement, [*chain.from_iterable(rows[done : done + size])])
            done += size


@lru_cache(maxsize=64)
def _statement(head: str, width: int, size: int, tail: str) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{head} VALUES {', '.join([row] * size)} {tail}"
