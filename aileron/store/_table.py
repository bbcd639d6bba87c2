"""Describes each table once, to generate its statements, convert its rows and page its queries."""

from __future__ import annotations

import base64
import json
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

from ._dialect import Cursor, Insertion, ResultRow, RowLookup, RowUpdate

T = TypeVar("T")


@frozen
class Codec:
    """The conversion between a value and its column.

    :ivar encode: returns the column for a value, or None if the value is stored unchanged.
    :ivar decode: returns the value for a column, or None if the column is used unchanged.
    """

    encode: Callable[[Any], object] | None = None
    decode: Callable[[Any], object] | None = None

    def or_null(self) -> Codec:
        """Return a codec that also stores C{None}, as C{NULL}."""
        return Codec(_unless_none(self.encode), _unless_none(self.decode))


def _unless_none(convert: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def value(cls: type[AttrsInstance]) -> Codec:
    """Return the codec of a column that stores a C{cls} as JSON."""
    return Codec(lambda kept: compact(to_json(kept)), lambda text: from_json(cls, json.loads(text)))


def enum(values: type[StrEnum]) -> Codec:
    """Return the codec of a column that stores a member of an enum by its text."""
    return Codec(lambda value: value.value, values)


PLAIN = Codec()
"""Text, a number or bytes. C{NULL} is None."""

MOMENT = Codec(timestamp, from_timestamp)
JSON_TEXT = Codec(compact, json.loads)
FLAG = Codec(int, bool)
"""A bool, stored as 0 or 1."""


@frozen(eq=False)
class Table(Generic[T]):
    """A table and the type of its rows' values.

    :ivar make: creates the value from its attributes by name.
    :ivar columns: the codec of each column.
    :ivar attributes: the attribute of each column with another name, dotted for nested attributes.
    :ivar selection: the columns for a C{SELECT}, each with an alias that is unique to the table.
    :ivar insertion: the C{INSERT} of one row.
    """

    name: str
    make: Callable[..., T]
    columns: Mapping[str, Codec]
    attributes: Mapping[str, str] = field(factory=dict)
    selection: str = field(init=False)
    insertion: Insertion = field(init=False)
    _values: Callable[[Any], tuple[Any, ...]] = field(init=False)
    _decoders: Sequence[tuple[str, str, Callable[[Any], object] | None]] = field(init=False)

    @selection.default
    def _make_selection(self) -> str:
        return ", ".join(f"{self.name}.{column} AS {self.name}_{column}" for column in self.columns)

    @insertion.default
    def _make_insertion(self) -> Insertion:
        return Insertion(self.name, tuple(self.columns))

    @_values.default
    def _make_values(self) -> Callable[[Any], tuple[Any, ...]]:
        return attrgetter(*(self.attributes.get(column, column) for column in self.columns))

    @_decoders.default
    def _make_decoders(self) -> Sequence[tuple[str, str, Callable[[Any], object] | None]]:
        return [(column, f"{self.name}_{column}", codec.decode) for column, codec in self.columns.items()]

    def part(self, *columns: str) -> Table[T]:
        """Return the table reduced to some columns, for an C{UPDATE}."""
        return Table(self.name, self.make, {name: self.columns[name] for name in columns}, self.attributes)

    def updating(self, *found_by: str) -> RowUpdate:
        """Return the C{UPDATE} of all columns in the row that has given values in the columns C{found_by}."""
        return RowUpdate(self.name, tuple(self.columns), found_by)

    def overwriting(self, *key: str, keep: Sequence[str] = (), only: str = "") -> Insertion:
        """Return the C{INSERT} that overwrites a row with an equal C{key}, except its columns C{keep}.

        :param only: the condition under which a row is overwritten, by default always.
        """
        changed = ", ".join(f"{name} = excluded.{name}" for name in self.columns if name not in (*key, *keep))
        where = f" WHERE {only}" if only else ""
        return Insertion(
            self.name, tuple(self.columns), key, f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}{where}"
        )

    def row_of(self, value: Any) -> list[object]:
        """Return the contents of the columns for C{value}, in order."""
        codecs = self.columns.values()
        return [
            value if codec.encode is None else codec.encode(value)
            for codec, value in zip(codecs, self._values(value), strict=True)
        ]

    def read(self, row: ResultRow) -> dict[str, Any]:
        """Return the values of one row of a L{selection} by column."""
        return {column: row[name] if decode is None else decode(row[name]) for column, name, decode in self._decoders}

    def value_of(self, row: ResultRow, **others: object) -> T:
        """Return the value of one row of a L{selection}. C{others} are attributes without a column."""
        return self.make(
            **others, **{self.attributes.get(column, column): value for column, value in self.read(row).items()}
        )

    def insert(self, cursor: Cursor, values: Iterable[Any], insertion: Insertion | None = None) -> None:
        """Insert rows.

        :param insertion: an insertion from L{overwriting}, by default one that refuses rows that exist already.
        """
        rows = [self.row_of(value) for value in values]
        if rows:
            cursor.insert(insertion or self.insertion, rows)

    def select(self, cursor: Cursor, tail: str, *values: object) -> tuple[T, ...]:
        """Return the values of the rows that C{tail}, the rest of the statement, selects."""
        return tuple(map(self.value_of, cursor.execute(f"SELECT {self.selection} FROM {self.name} {tail}", values)))

    def find(self, cursor: Cursor, tail: str, *values: object) -> T | None:
        """Return the value of the first row that C{tail} selects, or None if there is none."""
        row = cursor.execute(f"SELECT {self.selection} FROM {self.name} {tail}", values).fetchone()
        return None if row is None else self.value_of(row)

    def find_by(self, cursor: Cursor, column: str, wanted: str) -> T | None:
        """Return the value of the row with C{wanted} in a unique column, or None if there is none."""
        row = cursor.find(self.looking(column), wanted)
        return None if row is None else self.value_of(row)

    def looking(self, column: str) -> RowLookup:
        """Return the C{SELECT} of the row that has a given value in a unique column."""
        return RowLookup(self.name, self.selection, column)


def moment(value: datetime | None) -> str | None:
    """Return the text of a time for comparisons, or None for None."""
    return None if value is None else timestamp(value)


def conditions(*terms: tuple[str, object]) -> tuple[str, list[object]]:
    """Return a C{WHERE} clause of those C{terms} that have a value, and the values.

    :param terms: an SQL condition with one placeholder, and its value or None.
    """
    given = [(term, value) for term, value in terms if value is not None]
    where = " AND ".join(term for term, _ in given)
    return (f"WHERE {where}" if where else ""), [value for _, value in given]


def read_cursor(kind: str, cursor: str | None) -> int | None:
    """Return the position in C{cursor}, or None if there is no cursor.

    :param kind: the list that the cursor must come from.
    :raises InvalidRequest: if the cursor is not from this list.
    """
    if cursor is None:
        return None
    given, _, key = _decode(cursor).partition(":")
    if given != kind or not key.isascii() or not key.isdigit() or len(key) > 18:
        raise InvalidRequest.listing("That is no cursor of this list.", ("/cursor", "this list did not give it"))
    return int(key)


def fit(sizes: Iterable[int], limit: int, most_bytes: int | None) -> int:
    """Return the number of rows on a page: at most C{limit} and as many as fit in C{most_bytes}, but at least one.

    :param sizes: the sizes of the rows in bytes.
    """
    if most_bytes is None:
        return limit
    fitting = takewhile(lambda total: total <= most_bytes, accumulate(islice(sizes, limit)))
    return min(limit, max(1, sum(1 for _ in fitting)))


def take_fitting(rows: Iterable[T], size: Callable[[T], int], most_bytes: int | None) -> Iterator[T]:
    """Yield C{rows} up to and including the first that does not fit, but at least two if available.

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
    """Return a page of C{rows}, pairs of position and item. If there are more than C{limit}, the page has a cursor."""
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
