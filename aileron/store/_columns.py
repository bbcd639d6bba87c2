"""Values as columns keep them, and back; conditions of a query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from aileron.values import JSON, Fault, compact, from_timestamp, timestamp


def of_moment(moment: datetime | None) -> str | None:
    """A moment, where there is one."""
    return None if moment is None else timestamp(moment)


def moment_of(column: str | None) -> datetime | None:
    """What L{of_moment} wrote."""
    return None if column is None else from_timestamp(column)


def of_json(value: JSON) -> str | None:
    """A JSON value; C{null} is no value."""
    return None if value is None else compact(value)


def json_of(column: str | None) -> Any:
    """What L{of_json} wrote."""
    return None if column is None else json.loads(column)


def of_fault(fault: Fault | None) -> str | None:
    """A fault, where there is one."""
    return None if fault is None else compact(fault.as_json())


def fault_of(column: str | None) -> Fault | None:
    """What L{of_fault} wrote."""
    return None if column is None else Fault.from_json(json.loads(column))


def flag_of(column: int | None) -> bool | None:
    """A truth value, where there is one."""
    return None if column is None else bool(column)


def conditions(*terms: tuple[str, object]) -> tuple[str, list[object]]:
    """The C{WHERE} of those C{terms} that have a value, and the values.

    :param terms: an SQL condition with one placeholder, and its value or L{None}.
    """
    given = [(term, value) for term, value in terms if value is not None]
    where = " AND ".join(term for term, _ in given)
    return (f"WHERE {where}" if where else ""), [value for _, value in given]


def among(column: str, values: Sequence[str]) -> str:
    """A condition that C{column} is one of C{values}, for which L{one_of} is the value."""
    return f"{column} IN (SELECT value FROM json_each(?))" if values else "?"


def one_of(values: Sequence[str]) -> str | None:
    """The value that L{among} asks for."""
    return compact(list(values)) if values else None
