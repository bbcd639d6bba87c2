"""The pages of runs: the list, and one whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from twisted.web.template import Tag

from aileron.api import Dependencies
from aileron.model.faults import Fault
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Run, RunState

from .blocks import (
    Cell,
    chip,
    choice,
    draw_whole,
    field,
    filters,
    heading,
    link,
    older,
    page,
    table,
)
from .parts import Drawing, Visit
from .texts import STATES, count

_MOST = 50
_KINDS = {
    RunState.COMPLETED: "good",
    RunState.FAILED: "bad",
    RunState.UNKNOWN: "bad",
    RunState.PENDING: "waits",
    RunState.AWAITING_VAULT: "waits",
    RunState.AWAITING_CREDENTIAL: "waits",
    RunState.APPROVED: "moves",
    RunState.EXECUTING: "moves",
}


def state_chip(state: RunState) -> Tag:
    """Draw a run state as a chip."""
    return chip(STATES[state], _KINDS.get(state, "quiet"))


def draw_state(run: Run) -> Tag:
    """Draw the state of a run. A run that was run again is drawn as "Run again"."""
    return chip("Run again", "quiet") if run.superseded_by is not None else state_chip(run.state)


def took(start: datetime, end: datetime | None) -> str:
    """Return a duration in words, or an empty string if it has no end."""
    if end is None:
        return ""
    seconds = max(timedelta(), end - start).total_seconds()
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def runs_table(runs: Iterable[Run], caption: str) -> Tag:
    """Draw runs as a table."""
    return table(caption, ("Action", "State", "Requested", "Duration", "Reason"), map(_row, runs), "No matching runs")


async def draw_runs(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the list of runs, newest first."""
    query = visit.query
    state, action, session = (query.get(name, "") for name in ("state", "action", "session"))
    states = tuple(each for each in RunState if each.value == state)
    wanted = RunQuery(states, session or None, action or None, limit=_MOST, cursor=query.get("cursor"))
    found = await deps.submission.runs(wanted)
    return Drawing(lambda: _list(found, query))


def _list(found: Page[Run], query: Mapping[str, str]) -> Tag:
    options = [("", "Any"), *((each.value, STATES[each]) for each in RunState)]
    state, action, session = (query.get(name, "") for name in ("state", "action", "session"))
    return page(
        "Runs",
        count(len(found.items), "run", "runs"),
        heading("Runs"),
        filters(
            "/runs",
            choice("state", "State", options, state),
            field("action", "Action", action),
            field("session", "Session", session),
            given=bool(state or action or session),
        ),
        runs_table(found.items, "Runs, newest first"),
        older("/runs", {name: query[name] for name in ("state", "action", "session") if name in query}, found.cursor),
    )


def _row(run: Run) -> tuple[Cell, ...]:
    why = run.fault.message if run.fault is not None else run.reason
    state, lasted = draw_state(run), took(run.received_at, run.changed_at if run.state.settled else None)
    return link(f"/runs/{run.id}", run.action), state, run.received_at, lasted, why or ""


def _fault(fault: Fault) -> Iterator[tuple[str, Cell]]:
    yield "Class", fault.kind
    yield "Message", fault.message
    yield "Where", fault.boundary
    yield "Retriable", "Yes" if fault.retriable else "No"
    yield "Details", draw_whole("details", dict(fault.details), "Details") if fault.details else None
