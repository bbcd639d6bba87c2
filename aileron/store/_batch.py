"""The transaction that several writes share: a cursor, and rows that are written together at its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, TypeVar

from attrs import define, field

T = TypeVar("T")
A = TypeVar("A")

AT_ONCE = 16
"""As many rows have a statement of their own for each number of them."""


@define(eq=False)
class Later(Generic[A]):
    """An answer that is known once what was owed is written."""

    answer: A = field(init=False)


class Batch(sqlite3.Cursor):
    """The cursor of one transaction of the writer.

    Each statement lets the other threads run, and may have to wait until it is let on.  So rows that nobody in the
    transaction reads back are owed, and few statements write them all.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._owed: dict[Callable[[sqlite3.Cursor, Sequence[Any]], object], list[Any]] = {}
        self._expected: dict[Callable[..., object], list[Later[Any]]] = {}

    def owe(self, write: Callable[[sqlite3.Cursor, Sequence[T]], None], rows: Iterable[T]) -> None:
        """Have C{write(cursor, rows)} called before the commit, once, with all the rows owed to it in their order."""
        self._owed.setdefault(write, []).extend(rows)

    def expect(self, write: Callable[[sqlite3.Cursor, Sequence[T]], Sequence[A]], row: T) -> Later[A]:
        """Owe C{row} to what answers each of its rows, in their order: what it will answer."""
        later: Later[A] = Later()
        self._owed.setdefault(write, []).append(row)
        self._expected.setdefault(write, []).append(later)
        return later

    def settle(self) -> None:
        """Write what is owed, in the order in which it was first owed to each.

        :raises sqlite3.Error: a row cannot be written; whose it is nobody can tell.
        """
        owed, self._owed = self._owed, {}
        for write, rows in owed.items():
            if rows:
                self._write(write, rows)

    def pay(self, write: Callable[[sqlite3.Cursor, Sequence[Any]], object]) -> None:
        """Have C{write} write now what is owed to it: somebody reads it back.  It keeps, or takes, its place.

        :raises sqlite3.Error: as of L{settle}.
        """
        rows, self._owed[write] = self._owed.get(write), []
        if rows:
            self._write(write, rows)

    def forget(self) -> None:
        """Owe nothing: what it belonged to was undone."""
        self._owed.clear()
        self._expected.clear()

    def _write(self, write: Callable[[sqlite3.Cursor, Sequence[Any]], Any], rows: Sequence[Any]) -> None:
        answers, expected = write(self, rows), self._expected.pop(write, None)
        if expected is not None:
            for later, answer in zip(expected, answers, strict=True):
                later.answer = answer


def insert_all(cursor: sqlite3.Cursor, head: str, rows: Sequence[Sequence[object]], tail: str = "") -> None:
    """Insert C{rows}, in order, many with one statement.

    :param head: the statement up to C{VALUES}.
    :param rows: all as wide as the first.
    :param tail: the rest of the statement.
    """
    width = len(rows[0])
    for done in range(0, len(rows), AT_ONCE):
        some = rows[done : done + AT_ONCE]
        cursor.execute(_statement(head, width, len(some), tail), [*chain.from_iterable(some)])


@lru_cache(maxsize=256)
def _statement(head: str, width: int, size: int, tail: str) -> str:
    return f"{head} {places(width, size)} {tail}"


def places(width: int, size: int) -> str:
    """C{VALUES} with a place for each value of C{size} rows."""
    row = f"({', '.join('?' * width)})"
    return f"VALUES {', '.join([row] * size)}"
