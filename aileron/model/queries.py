"""Queries for lists of runs or records, and one page of a list."""

from __future__ import annotations

from datetime import date, datetime
from typing import Generic, TypeVar

from attrs import frozen

from .runs import RunState

T = TypeVar("T")


@frozen
class Page(Generic[T]):
    """One page of a list.

    :ivar cursor: the opaque cursor of the next page, or None at the end.
    """

    items: tuple[T, ...]
    cursor: str | None = None


MOST_PAGE_BYTES = 4 * 1024 * 1024
"""The size at which a page of runs or records ends: agents choose their size, and a page is held in memory."""


@frozen
class RunQuery:
    """A query for runs, newest first. Every filter that is set must match.

    :ivar most_bytes: the size at which a page ends before C{limit}, after at least one run, or
        None if only C{limit} ends it.
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
    """A query for records, newest first. Every filter that is set must match.

    :ivar types: the types of events to return, or empty for all types.
    :ivar commands: False to leave out the login and logout of each operator command.
    :ivar most_bytes: the size of contents at which a page ends before C{limit}, after at least one record, or
        None if only C{limit} ends it.
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
    """The time that runs waited for a person, for waits that ended on one day in UTC.

    :ivar number: the number of waits, at least 1.
    :ivar median_seconds: the median wait.
    :ivar slow_seconds: the 90th percentile of the waits.
    """

    day: date
    number: int
    median_seconds: float
    slow_seconds: float
