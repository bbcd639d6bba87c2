"""PostgreSQL: its dialect, and a cursor that writes many rows in few statements.

Statements cost more than commits here. So rows that are inserted or updated are collected, and written with one
statement for each table before the commit, or before a statement that may read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import starmap
from typing import Any, Self

import psycopg
from attrs import define, field

from ._dialect import Insertion, RowLookup, RowUpdate, SQLDialect

_FIRST = ("sessions", "runs", "audit_events")
"""Tables to which rows of others refer. Their rows are written first."""

POSTGRESQL = SQLDialect(
    membership="{column} = ANY(?)",
    encode_list=list,
    elapsed="CAST(greatest(0.0, extract(epoch FROM CAST({end} AS timestamptz) - CAST({start} AS timestamptz)))"
    " AS double precision)",
    json_text="text_at({column}, '{path}')",
    now="CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
)


class Row(tuple[Any, ...]):
    """A row of a result, by number and by name."""

    __slots__ = ()
    places: Mapping[str, int] = {}

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self.places[key] if isinstance(key, str) else key)


@cache
def _row_class(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"__slots__": (), "places": {name: place for place, name in enumerate(names)}})


def make_rows(cursor: psycopg.Cursor[Any]) -> type[Row]:
    """Return the class of the rows of a cursor's result: the C{row_factory} of a connection."""
    return _row_class(tuple(column.name for column in cursor.description or ()))


@cache
def _translate(statement: str) -> str:
    """Return a statement with psycopg's placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")


class AgainError(Exception):
    """Raised if a batch must be done again, statement by statement."""


@define(eq=False)
class PostgreSQLCursor:
    """A cursor whose inserted and updated rows wait for the end of the transaction.

    :param types: the type of each column, by table and column.
    :param together: whether rows wait. If not, everything is executed at once.
    """

    _inner: psycopg.Cursor[Any]
    _types: Mapping[tuple[str, str], str]
    _together: bool = False
    _pending: dict[Insertion | RowUpdate, dict[object, Sequence[Any]]] = field(factory=dict, init=False)
    _marks: dict[Insertion | RowUpdate, int] = field(factory=dict, init=False)
    _wrote: bool = field(default=False, init=False)
    _settled: bool = field(default=False, init=False)
    _found: dict[RowLookup, dict[object, Any]] = field(factory=dict, init=False)
    _once: dict[tuple[Sequence[str], str, Sequence[Any]], Any] = field(factory=dict, init=False)

    dialect = POSTGRESQL

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement changed."""
        return self._inner.rowcount

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Self:
        """Write what waits, unless it was announced that the statement does not read it. Then execute the statement."""
        if not self._settled:
            self.flush()
        self._settled = False
        if not statement.lstrip().startswith("SELECT"):
            self._wrote = True
            self._found.clear()
            self._once.clear()
        self._inner.execute(_translate(statement), parameters or None)
        return self

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Self:
        """Execute one statement for each row."""
        for row in rows:
            self.execute(statement, row)
        return self

    def insert(self, insertion: Insertion, rows: Iterable[Sequence[Any]], /) -> None:
        """Insert rows, at once or before the commit."""
        if not self._together:
            self.executemany(insertion.statement, rows)
            return
        places = _key_places(insertion)
        for row in rows:
            key = tuple([row[place] for place in places])
            if key and key in self._pending.get(insertion, ()):
                self.flush()  # PostgreSQL refuses two rows with the same key in one statement
            self._put(insertion, row, key)

    def update(self, update: RowUpdate, row: Sequence[Any], /) -> bool:
        """Update one row, at once or before the commit. Then a row that is not there undoes the transaction."""
        if not self._together:
            return self.execute(update.statement, row).rowcount == 1
        self._put(update, row)
        return True

    def _put(self, each: Insertion | RowUpdate, row: Sequence[Any], key: tuple[object, ...] = ()) -> None:
        """Hold a row back until the batch is written, and drop what was read of it before."""
        for lookup, rows in self._found.items():
            if lookup.table == each.table:
                rows.pop(row[each.columns.index(lookup.column)], None)
        for read in [read for read in self._once if each.table in read[0]]:
            del self._once[read]
        waiting = self._pending.setdefault(each, {})
        waiting[key or len(waiting)] = row

    def last_pending(self, table: str, /) -> Mapping[str, Any] | None:
        """Return the newest row by column that waits to be inserted into a table, or None if there is none."""
        for each, rows in self._pending.items():
            if each.table == table and rows:
                return dict(zip(each.columns, next(reversed(rows.values())), strict=True))
        return None

    def settle(self, table: str, column: str, value: object, /) -> None:
        """Write what waits if a row of a table may have a value in a column. Else the next statement writes nothing."""
        for each, rows in self._pending.items():
            if each.table != table or not rows:
                continue
            place = each.columns.index(column) if column in each.columns else None
            if place is None or any(row[place] == value for row in rows.values()):
                self.flush()
                return
        self._settled = True

    def find(self, lookup: RowLookup, value: object, /) -> Any:
        """Return the row with a value in a unique column, or None if there is none."""
        known = self._found.get(lookup, {})
        if value in known:
            return known[value]
        self.settle(lookup.table, lookup.column, value)
        return self.execute(lookup.statement, (value,)).fetchone()

    def read_once(self, tables: Sequence[str], statement: str, parameters: Sequence[Any], /) -> Any:
        """Return the first row of a C{SELECT}, or None: that of an earlier call, if rows still wait to be written."""
        read = (tables, statement, parameters)
        # If rows do not wait, there are savepoints, and a rollback to one would release the row's lock.
        if read not in self._once or not self._together:
            self._settled = not any(each.table in tables and rows for each, rows in self._pending.items())
            self._once[read] = self.execute(statement, parameters).fetchone()
        return self._once[read]

    def find_all(self, lookup: RowLookup, values: Sequence[Any]) -> None:
        """Find the rows with these values by one statement, for later calls of L{find}."""
        self._inner.execute(
            f"SELECT {lookup.selection}, {lookup.column} FROM {lookup.table} WHERE {lookup.column} = ANY(%s)",
            [values],
        )
        self._found[lookup] = {**dict.fromkeys(values), **{row[-1]: row for row in self._inner}}

    def flush(self) -> None:
        """Write the rows that wait, one statement for each table.

        :raises AgainError: if a row to be updated was not there.
        """
        self._settled = False
        pending, self._pending = self._pending, {}
        self._wrote = self._wrote or any(len(rows) > self._marks.get(each, 0) for each, rows in pending.items())
        self._marks = {}
        for each in sorted(pending, key=_order):
            if pending[each]:
                self._write(each, list(pending[each].values()))

    def begin_job(self) -> None:
        """Remember which rows wait, so that those of one job can be dropped."""
        self._marks = {each: len(rows) for each, rows in self._pending.items()}
        self._wrote = False

    def drop_job(self) -> bool:
        """Drop the rows that wait since L{begin_job}. Return False if some were written already."""
        for each, rows in self._pending.items():
            for key in list(rows)[self._marks.get(each, 0) :]:
                del rows[key]
        return not self._wrote

    def fetchone(self) -> Any:
        """Return the next row, or None if there is none."""
        return self._inner.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        return self._inner.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)

    def _write(self, each: Insertion | RowUpdate, rows: Sequence[Sequence[Any]]) -> None:
        statement = _set_wise(each, self._arrays(each)) if len(rows) > 1 else _translate(each.statement)
        values: Sequence[Any] = [_array(column) for column in zip(*rows, strict=True)] if len(rows) > 1 else rows[0]
        self._inner.execute(statement, values)
        if isinstance(each, RowUpdate) and self._inner.rowcount != len(rows):
            raise AgainError

    def _arrays(self, each: Insertion | RowUpdate) -> str:
        return ", ".join(f"%s::{self._types[each.table, column]}[]" for column in each.columns)


@cache
def _key_places(insertion: Insertion) -> Sequence[int]:
    return [insertion.columns.index(column) for column in insertion.key]


def _array(values: Sequence[object]) -> str:
    """Return the text of an array. A list, which psycopg would convert, costs several times as much."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: object) -> str:
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    if value is None:
        return "NULL"
    return f'"\\\\x{value.hex()}"' if isinstance(value, bytes) else str(value)


def _order(each: Insertion | RowUpdate) -> tuple[bool, int]:
    """Return the key by which statements are sorted: insertions before updates, referred tables first."""
    return isinstance(each, RowUpdate), _FIRST.index(each.table) if each.table in _FIRST else len(_FIRST)


@cache
def _set_wise(each: Insertion | RowUpdate, arrays: str) -> str:
    """Return the statement for many rows, whose parameters are one array for each column."""
    if isinstance(each, Insertion):
        return f"INSERT INTO {each.table} ({', '.join(each.columns)}) SELECT * FROM unnest({arrays}) {each.conflict}"
    names = [f"new{number}" for number in range(len(each.columns))]
    pairs = list(zip(each.columns, names, strict=True))
    changed, found_by = pairs[: len(each.changed)], pairs[len(each.changed) :]
    return (
        f"UPDATE {each.table} SET {', '.join(starmap('{} = {}'.format, changed))} "
        f"FROM unnest({arrays}) AS new_rows({', '.join(names)}) "
        f"WHERE {' AND '.join(f'{each.table}.{column} = {name}' for column, name in found_by)}"
    )
