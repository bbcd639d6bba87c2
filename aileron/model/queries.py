"""Queries of lists of runs or records, and one page of them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Generic, TypeVar

from attrs import frozen

from .runs import RunState

T = TypeVar("T")


@frozen
class Page(Generic[T]):
    """Some items and where the next page begins.

    :ivar cursor: hand it back for more; L{None} at the end.  Opaque.
    """

    items: tuple[T, ...]
    cursor: str | None = None


MOST_PAGE_BYTES = 4 * 1024 * 1024
"""The size at which a page of runs or records ends: agents decide how large those are, and a page is held at once."""


@frozen
class RunQuery:
    """Filters of a list of runs, newest first; every given field must match.

    :ivar most_bytes: a page ends before C{limit} where its runs would be larger together, but it has one at least;
        L{None}: only C{limit} ends it.
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
    most_bytes: int | None = MOST_PAGE_BYTES


@frozen
class AuditQuery:
    """A query of records, newest first; every given field must match.

    :ivar types: any of these; none given: of every type.
    :ivar commands: L{False}: without the login and logout that each command of the operator's leaves.
    :ivar most_bytes: a page ends before C{limit} where the contents of its records would be larger together, but it
        has one at least; L{None}: only C{limit} ends it.
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
    most_bytes: int | None = MOST_PAGE_BYTES


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
