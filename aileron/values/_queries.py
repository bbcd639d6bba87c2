"""Queries of lists of runs or records, and one page of them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Generic, TypeVar

from attrs import frozen

from ._runs import RunState

T = TypeVar("T")


@frozen
class Page(Generic[T]):
    """Some items and where the next page begins.

    :ivar cursor: hand it back for more; L{None} at the end.  Opaque.
    """

    items: tuple[T, ...]
    cursor: str | None = None


MOST_PAGE_BYTES = 4 * 1024 * 1024
"""Of a page of runs that somebody is shown: agents say how large their runs are, and one answer is written at once."""


@frozen
class RunQuery:
    """Filters of a list of runs, newest first; every given field must match.

    :ivar most_bytes: a page ends sooner than C{limit} says where its runs would be larger together, but never without
        one; L{None}: it does not.
    """

    states: tuple[RunState, ...] = ()
    session_id: str | None = None
    action: str | None = None
    gated: bool | None = None
    limit: int = 100
    cursor: str | None = None
    oldest_first: bool = False
    parent_id: str | None = None
    undoes: str | None = None
    most_bytes: int | None = None


@frozen
class AuditQuery:
    """A query of records, newest first; every given field must match.

    :ivar types: any of these; none given: of every type.
    :ivar commands: L{False}: without the login and logout that each command of the operator's leaves.
    """

    since: datetime | None = None
    until: datetime | None = None
    type: str | None = None
    action: str | None = None
    connector: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    failure_class: str | None = None
    types: tuple[str, ...] = ()
    commands: bool = True
    limit: int = 100
    cursor: str | None = None


@frozen
class DailyWait:
    """The time that runs waited for a person, where the wait ended on this day in UTC.

    :ivar number: how many there were, never 0.
    :ivar median_seconds: half of them took no longer.
    :ivar slow_seconds: nine in ten took no longer.
    """

    day: date
    number: int
    median_seconds: float
    slow_seconds: float
