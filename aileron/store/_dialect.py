"""The SQL that differs between databases, and the cursor that all statements are executed with.

Statements are written in the SQL that SQLite and PostgreSQL share. What has no common form is a fragment of a
L{SQLDialect}, which every cursor has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, overload

from attrs import field, frozen


@frozen
class SQLDialect:
    """The fragments of SQL for one kind of database. In templates, C{column}, C{start}, C{end} are SQL expressions.

    :ivar membership: the template of a condition that C{column} is in a list, which is one parameter.
    :ivar encode_list: returns the parameter for a list of texts.
    :ivar elapsed: the template of the seconds between the stored times C{start} and C{end}, at least 0.
    :ivar json_text: the template of the text of the value at the dotted C{path} in the JSON of C{column}. It is C{NULL}
        if the value is missing or null, or the column is not valid JSON. The text of false is one
        of L{FALSE}.
    :ivar now: the expression of the database's present time in seconds since 1970.
    :ivar erasing: the statements before and after a deletion whose bytes must be overwritten. Empty if the database
        overwrites deleted rows only later.
    """

    membership: str
    encode_list: Callable[[Sequence[str]], object]
    elapsed: str
    json_text: str
    now: str
    erasing: tuple[str, str] | tuple[()] = ()

    def among(self, column: str, values: Sequence[str]) -> tuple[str, object]:
        """Return the condition that C{column} is one of C{values}, and its value.

        If C{values} is empty, the value is None.
        """
        return self.membership.format(column=column), self.encode_list(values) if values else None

    def elapsed_seconds(self, start: str, end: str) -> str:
        """Return the expression of the seconds from C{start} to C{end}, columns with times, at least 0."""
        return self.elapsed.format(start=start, end=end)

    def text_at(self, column: str, path: str) -> str:
        """Return the expression of the text at the dotted C{path} in a column of JSON. See L{json_text}."""
        return self.json_text.format(column=column, path=path)


FALSE = "('0', 'false')"
"""The texts of false that L{SQLDialect.text_at} gives, as an SQL list."""


@frozen(eq=False)
class Insertion:
    """An C{INSERT} into one table.

    :ivar key: the columns by which a row replaces an earlier one. Empty if two rows with the same key are an error.
    :ivar conflict: the clause for a row whose key exists already, or an empty text.
    :ivar statement: the statement for one row.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    conflict: str = ""
    statement: str = field(init=False)

    @statement.default
    def _make_statement(self) -> str:
        places = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.table} ({', '.join(self.columns)}) VALUES ({places}) {self.conflict}"


@frozen(eq=False)
class RowUpdate:
    """An C{UPDATE} of one row, found by the values of some columns.

    :ivar changed: the columns that are set.
    :ivar found_by: the columns that must have the given values.
    :ivar statement: the statement for one row, with the values of C{changed} and then those of C{found_by}.
    """

    table: str
    changed: tuple[str, ...]
    found_by: tuple[str, ...]
    statement: str = field(init=False)

    @statement.default
    def _make_statement(self) -> str:
        changed = ", ".join(f"{column} = ?" for column in self.changed)
        return f"UPDATE {self.table} SET {changed} WHERE {' AND '.join(f'{column} = ?' for column in self.found_by)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row, in order."""
        return (*self.changed, *self.found_by)


@frozen
class RowLookup:
    """A C{SELECT} of one row by a unique column.

    :ivar selection: the selected columns.
    """

    table: str
    selection: str
    column: str

    @property
    def statement(self) -> str:
        """The statement, with a placeholder for the value."""
        return f"SELECT {self.selection} FROM {self.table} WHERE {self.column} = ?"


class ResultRow(Protocol):
    """A row of a result: its columns by number and by name."""

    @overload
    def __getitem__(self, key: int | str, /) -> Any: ...

    @overload
    def __getitem__(self, key: slice, /) -> tuple[Any, ...]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Cursor(Protocol):
    """The part of a DB-API 2 cursor that the store uses. Placeholders are C{?} in every dialect.

    :ivar rowcount: the number of rows that the last statement changed.
    """

    @property
    def dialect(self) -> SQLDialect:
        """The dialect of the database."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement changed."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Self:
        """Execute one statement, and return this cursor."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Self:
        """Execute one statement for each of C{rows}, and return this cursor."""

    def insert(self, insertion: Insertion, rows: Iterable[Sequence[Any]], /) -> None:
        """Insert rows, at once or, together with those of other callers, before the commit."""

    def update(self, update: RowUpdate, row: Sequence[Any], /) -> bool:
        """Update one row, at once or before the commit.

        The caller has read the row in this transaction. A later update that finds no row undoes the transaction, which
        is then done again statement by statement.

        :return: whether the row was there.
        """

    def last_pending(self, table: str, /) -> Mapping[str, Any] | None:
        """Return the newest row by column that waits to be inserted into a table, or None if there is none."""

    def settle(self, table: str, column: str, value: object, /) -> None:
        """Announce that the next statement reads only rows of a table that have a value in a column.

        Rows that wait for the commit are then written only if they are among these.
        """

    def find(self, lookup: RowLookup, value: object, /) -> Any:
        """Return the L{ResultRow} with a value in a unique column, or None if there is none."""

    def read_once(self, tables: Sequence[str], statement: str, parameters: Sequence[Any], /) -> Any:
        """Return the first L{ResultRow} of a C{SELECT}, or None if there is none.

        The statement may be executed once for several jobs of a batch. So it must lock the row, or no other transaction
        may change it before the commit in a way that matters.

        :param tables: the tables that it reads. After a job has changed one, the statement is executed again.
        """

    def fetchone(self) -> Any:
        """Return the next L{ResultRow}, or None if there is none."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows, each a L{ResultRow}."""

    def __iter__(self) -> Iterator[Any]: ...
