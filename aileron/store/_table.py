"""Describes each table once: statements are made of the description, rows are read by it, and queries are paged."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import accumulate, islice, takewhile
from operator import attrgetter
from typing import Any, Generic, TypeVar

from attrs import AttrsInstance, field, frozen

from aileron.base.converter import from_json, to_json
from aileron.base.json import compact, from_timestamp, timestamp
from aileron.model.errors import InvalidRequest
from aileron.model.queries import Page

T = TypeVar("T")


@frozen
class Codec:
    """The way in which a column keeps a value.

    :ivar encode: what stands in the column for a value; L{None}: the value itself.
    :ivar decode: the value for what stands in the column; L{None}: that itself.
    """

    encode: Callable[[Any], object] | None = None
    decode: Callable[[Any], object] | None = None

    def or_null(self) -> Codec:
        """Write the same, where C{None} stands as C{NULL}."""
        return Codec(_unless_none(self.encode), _unless_none(self.decode))


def _unless_none(convert: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def value(cls: type[AttrsInstance]) -> Codec:
    """Store a value of C{cls} as JSON."""
    return Codec(lambda kept: compact(to_json(kept)), lambda text: from_json(cls, json.loads(text)))


def enum(values: type[StrEnum]) -> Codec:
    """Make the codec of a column that holds one of C{values}, by its text."""
    return Codec(lambda value: value.value, values)


PLAIN = Codec()
"""Text, a number or bytes; C{NULL} is L{None}."""

MOMENT = Codec(timestamp, from_timestamp)
JSON_TEXT = Codec(compact, json.loads)
FLAG = Codec(None, bool)


@frozen(eq=False)
class Table(Generic[T]):
    """One table, and the value that a row of it stands for.

    :ivar make: makes the value, by the names of its attributes.
    :ivar columns: how each column is kept.
    :ivar attributes: the attribute of a column that is named otherwise; dotted where it lies deeper.
    :ivar selection: the columns for a C{SELECT}, each under a name that no other table's has.
    :ivar insertion: the C{INSERT} of one row.
    """

    name: str
    make: Callable[..., T]
    columns: Mapping[str, Codec]
    attributes: Mapping[str, str] = field(factory=dict)
    selection: str = field(init=False)
    insertion: str = field(init=False)
    _values: Callable[[Any], tuple[Any, ...]] = field(init=False)
    _decoders: Sequence[tuple[str, str, Callable[[Any], object] | None]] = field(init=False)

    @selection.default
    def _make_selection(self) -> str:
        return ", ".join(f"{self.name}.{column} AS {self.name}_{column}" for column in self.columns)

    @insertion.default
    def _make_insertion(self) -> str:
        places = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({places})"

    @_values.default
    def _make_values(self) -> Callable[[Any], tuple[Any, ...]]:
        return attrgetter(*(self.attributes.get(column, column) for column in self.columns))

    @_decoders.default
    def _make_decoders(self) -> Sequence[tuple[str, str, Callable[[Any], object] | None]]:
        return [(column, f"{self.name}_{column}", codec.decode) for column, codec in self.columns.items()]

    def part(self, *columns: str) -> Table[T]:
        """Write the same, with some of its columns only: for an C{UPDATE}."""
        return Table(self.name, self.make, {name: self.columns[name] for name in columns}, self.attributes)

    def assignments(self) -> str:
        """Write the columns for the C{SET} of an C{UPDATE}, each with a place for its value."""
        return ", ".join(f"{column} = ?" for column in self.columns)

    def overwriting(self, *key: str, keep: Sequence[str] = ()) -> str:
        """Return the clause by which an L{insertion} overwrites a row of the same C{key}, but for C{keep}."""
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.columns if name not in (*key, *keep))
        return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"

    def row_of(self, value: Any) -> list[object]:
        """Return the contents of the columns for C{value}, in order."""
        codecs = self.columns.values()
        return [
            value if codec.encode is None else codec.encode(value)
            for codec, value in zip(codecs, self._values(value), strict=True)
        ]

    def read(self, row: sqlite3.Row) -> dict[str, Any]:
        """Read the values of one row of a L{selection}, by column."""
        return {column: row[name] if decode is None else decode(row[name]) for column, name, decode in self._decoders}

    def value_of(self, row: sqlite3.Row, **others: object) -> T:
        """Read the value of one row of a L{selection}; C{others} are attributes that no column has."""
        return self.make(
            **others, **{self.attributes.get(column, column): value for column, value in self.read(row).items()}
        )

    def insert(self, cursor: sqlite3.Cursor, values: Iterable[Any], conflict: str = "") -> None:
        """Add rows.

        :param conflict: what is done where there is one already, as L{overwriting} says it.
        """
        rows = [self.row_of(value) for value in values]
        if rows:
            cursor.executemany(f"{self.insertion} {conflict}", rows)

    def select(self, cursor: sqlite3.Cursor, tail: str, *values: object) -> tuple[T, ...]:
        """Return the values of the rows that C{tail}, the rest of the statement, selects."""
        return tuple(map(self.value_of, cursor.execute(f"SELECT {self.selection} FROM {self.name} {tail}", values)))

    def find(self, cursor: sqlite3.Cursor, tail: str, *values: object) -> T | None:
        """Return the value of the first row that C{tail} selects, or L{None}."""
        row = cursor.execute(f"SELECT {self.selection} FROM {self.name} {tail}", values).fetchone()
        return None if row is None else self.value_of(row)


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


def take_fitting(rows: Iterable[T], size: Callable[[T], int], most_bytes: int | None) -> Iterator[T]:
    """Yield C{rows} up to the first that no longer fits, with it, but two where there are two.

    Later rows are not read from the database.

    :param size: returns the size of a row in bytes.
    """
    total = 0
    for number, row in enumerate(rows):
        yield row
        total += size(row)
        if number and most_bytes is not None and total > most_bytes:
            return


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
