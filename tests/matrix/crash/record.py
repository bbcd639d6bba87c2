"""The record of a home that nobody serves, checked from the first event to the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from aileron.home.paths import Home
from aileron.model.audit import Event, Record
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Run, RunState
from aileron.store import ServerAddress
from aileron.testing import check_chain, unopened_store

_PASSING = (RunState.RECEIVED, RunState.EXECUTING)


def unsound(root: Path) -> Iterator[str]:
    """What is wrong with it."""
    return unsound_store(Home(root).database)


def unsound_store(place: Path | ServerAddress) -> Iterator[str]:
    """What is wrong with the record in a file or a database on a server."""
    store = unopened_store(place)
    _now(store.open())
    records = list(_records(store))
    broken = check_chain(records)
    if broken is not None:
        yield f"the record does not hold from {broken} on"
    begun = [record.event.run_id for record in records if record.event.type == "execution.started"]
    if len(begun) != len(set(begun)):
        yield "a run began twice"
    for run in _now(store.runs.list(RunQuery(states=_PASSING))).items:
        yield f"{run.id} stays {run.state.value}"
    _now(store.close())


def told(root: Path) -> Counter[str]:
    """How often it tells of what, by the types of its events."""
    store = unopened_store(Home(root).database)
    _now(store.open())
    types = Counter(record.event.type for record in _records(store))
    _now(store.close())
    return types


def read(root: Path) -> tuple[list[Run], list[Event]]:
    """All runs, and all events, oldest first."""
    return read_store(Home(root).database)


def read_store(place: Path | ServerAddress) -> tuple[list[Run], list[Event]]:
    """All runs, and all events, oldest first, of a file or a database on a server."""
    store = unopened_store(place)
    _now(store.open())
    runs = list(_pages(lambda cursor: store.runs.list(RunQuery(limit=1000, cursor=cursor))))
    events = [record.event for record in _records(store)]
    _now(store.close())
    return runs, events


def _records(store: Any) -> Iterator[Record]:
    newest_first = list(_pages(lambda cursor: store.audit.list(AuditQuery(limit=1000, cursor=cursor))))
    yield from reversed(newest_first)


def _pages(ask: Callable[[str | None], Any]) -> Iterator[Any]:
    cursor = None
    while True:
        page = _now(ask(cursor))
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def _now(work: Any) -> Any:
    """What C{work} answers, which it does at once."""
    told: list[Any] = []
    Deferred.fromCoroutine(work).addBoth(told.append)
    (found,) = told
    if isinstance(found, Failure):
        found.raiseException()
    return found
