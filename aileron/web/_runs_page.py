"""Activity: the list of runs, with the time that each waited and ran, and a search."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from attrs import evolve, frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.json import JSON, plain, strings_in
from aileron.base.text import visible
from aileron.model.errors import NotFound
from aileron.model.queries import RunQuery
from aileron.model.runs import Approval, Run, RunState

from .blocks import (
    Cell,
    Part,
    chip,
    choice,
    empty,
    field,
    filters,
    heading,
    link,
    older,
    page,
    part,
    quiet,
    segments,
    table,
)
from .parts import Drawing, Visit
from .texts import STATES, count, find_address, name_run

VIEWS = {"/runs": "Runs", "/history": "History"}
"""The views of the activity by path."""

_MOST = 50
_AT_A_TIME, _MOST_READ = 100, 2000
_SEARCHED_BYTES = 512 * 1024
"""The size of runs in bytes that a search reads at once, which takes about ten milliseconds."""

_FILTERS = ("state", "action", "session", "text")
_MOST_CHARACTERS, _AROUND = 100, 40
SENT = frozenset((RunState.EXECUTING, RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN))
"""The states of a run of which a request may have been sent."""

_LONG_UNITS = ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (60, 60, "min"))
"""From which number of seconds on a unit is used, its size, and its name."""

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
    """Return a duration for people, such as C{47 ms}, C{1.2 s} or C{3 min}, or an empty string if it has no end."""
    if end is None:
        return ""
    seconds = max(timedelta(), end - start).total_seconds()
    if seconds < 1:
        return f"{round(1000 * seconds)} ms"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    size, unit = next((size, unit) for least, size, unit in _LONG_UNITS if seconds >= least)
    return f"{seconds / size:.0f} {unit}"


@frozen
class Lane:
    """A run with the times at which it stopped waiting and started running, for a row of a list or timeline.

    :ivar decided: when the operator decided, or None if the run is pending or needed no approval.
    :ivar began: when its first request was sent, or None if none was.
    """

    run: Run
    decided: datetime | None = None
    began: datetime | None = None

    @property
    def waited(self) -> str:
        """The time that the run waited for a decision, in words. Empty if it needed no decision or is pending."""
        ended = self.run.changed_at if self.run.state.settled and self.began is None else None
        return took(self.run.received_at, self.decided or ended) if self.run.gated else ""

    @property
    def ran(self) -> str:
        """The time that the run took, in words. Empty if it never started or is still running."""
        return took(self.began, self.run.changed_at if self.run.state.settled else None) if self.began else ""


async def read_lanes(deps: Dependencies, runs: Sequence[Run]) -> list[Lane]:
    """Read the title of each run, the time of its decision, and its start."""
    return [await _read_lane(deps, run) for run in runs]


async def _read_lane(deps: Dependencies, run: Run) -> Lane:
    approval = await read_approval(deps, run)
    decided = None if approval is None else approval.decided_at
    if run.state not in SENT:
        return Lane(run, decided)
    _, attempts = await deps.submission.history(run.id)
    return Lane(run, decided, min((each.started_at for each in attempts), default=run.changed_at))


async def read_approval(deps: Dependencies, run: Run) -> Approval | None:
    """Return the approval of a run, or None if the run needed no approval or was refused before requesting it."""
    try:
        return await deps.decisions.approval(run.id, only_read=True) if run.gated else None
    except NotFound:
        return None


def runs_table(lanes: Sequence[Lane], caption: str, text: str = "", nothing: Part = "No runs yet") -> Tag:
    """Draw runs as a table.

    :param text: the text that was searched for; each row then shows where it occurs.
    :param nothing: the content to draw if there are no runs.
    """
    heads = ("Request", "State", "Requested", "Waited", "Ran", "Reason")
    return table(caption, heads, (_row(each, text) for each in lanes), nothing)


def _draw_nothing(filtered: bool) -> Tag:
    if filtered:
        return empty("No matching runs", tags.p(link("/runs", "Show all runs")))
    return empty(
        "No runs yet",
        tags.p("Each call of an action by an agent is listed here, with its outcome."),
        tags.p(link("/home", "See the setup steps")),
    )


async def draw_runs(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the runs that match the filters, newest first, pending and denied ones included.

    :raises InvalidRequest: if the cursor is not of this list.
    """
    given = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    states = tuple(each for each in RunState if each.value == given.get("state"))
    wanted = RunQuery(states, given.get("session"), given.get("action"), limit=_MOST, cursor=visit.query.get("cursor"))
    found = await _find(deps, wanted, given.get("text", ""))
    lanes = await read_lanes(deps, found.runs)
    return Drawing(lambda: _list(found, lanes, given))


@frozen
class FoundRuns:
    """One page of runs.

    :ivar read: how many runs were searched.
    :ivar cursor: where the next page begins, or None if there are no older runs.
    """

    runs: Sequence[Run]
    read: int
    cursor: str | None


async def _find(deps: Dependencies, query: RunQuery, text: str) -> FoundRuns:
    """Read one page of runs. If a search text is set, read more until enough runs match or the limit is reached.

    :raises InvalidRequest: if the cursor is not valid.
    """
    runs: list[Run] = []
    read, wanted = 0, text.casefold()
    query = evolve(query, limit=_AT_A_TIME, most_bytes=_SEARCHED_BYTES) if wanted else query
    while True:
        found = await deps.submission.runs(query)
        read += len(found.items)
        runs += [each for each in found.items if wanted in _searched(each).casefold()] if wanted else found.items
        if found.cursor is None or not wanted or len(runs) >= _MOST or read >= _MOST_READ:
            return FoundRuns(runs, read, found.cursor)
        query = evolve(query, cursor=found.cursor)


def _searched(run: Run) -> str:
    """Return the text that a search looks through: the title, action, arguments, reason, failure and result."""
    failure = "" if run.fault is None else run.fault.message
    shown = (json.dumps(plain(each), ensure_ascii=False) for each in (run.arguments, run.result) if each is not None)
    return "\n".join((run.title, run.action, run.id, *shown, run.reason or "", failure))


def _list(found: FoundRuns, lanes: Sequence[Lane], given: Mapping[str, str]) -> Tag:
    options = [("", "Any"), *((each.value, STATES[each]) for each in RunState)]
    state, action, session, text = (given.get(name, "") for name in _FILTERS)
    searched = f"Searched {found.read:,} runs. Older runs may match." if text and found.cursor is not None else ""
    return page(
        "Activity",
        count(len(lanes), "run", "runs"),
        heading("Activity"),
        segments("/runs", VIEWS),
        filters(
            "/runs",
            choice("state", "State", options, state),
            field("action", "Action", action),
            field("session", "Session", session),
            given=bool(state or action or session),
            search=field("text", "Search", text, "search"),
        ),
        part(
            "results",
            runs_table(lanes, "Runs, newest first", text, _draw_nothing(bool(given))),
            quiet(searched) if searched else "",
            older("/runs", given, found.cursor),
        ),
    )


def _row(lane: Lane, text: str) -> tuple[Cell, ...]:
    run = lane.run
    why = run.fault.message if run.fault is not None else run.reason
    found = _find_snippet(run, text) if text and text.casefold() not in name_run(run).casefold() else ""
    words = found or " · ".join(filter(None, (run.action if run.title else "", describe_arguments(run.arguments))))
    about = tags.small(visible(words), **{"class": "quiet"})
    name = tags.div(link(find_address(run), name_run(run)), tags.br(), about)
    return name, draw_state(run), run.received_at, lane.waited, lane.ran, why or ""


def describe_arguments(arguments: Mapping[str, JSON]) -> str:
    """Return the beginnings of a run's texts and numbers as one short line, such as C{#deploys · Deploy of 2.1}."""
    said, left = [], _MOST_CHARACTERS
    for each in (text for value in arguments.values() for text in _shown_in(value)):
        words = _cut(" ".join(each[:_MOST_CHARACTERS].split()), _MOST_CHARACTERS // 2)
        if words and left > 0:
            said.append(words)
        left -= len(words)
        if left <= 0:
            break
    return _cut(" · ".join(said), _MOST_CHARACTERS)


def _shown_in(value: JSON) -> Iterator[str]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    else:
        yield from strings_in(value)


def _find_snippet(run: Run, text: str) -> str:
    """Return the text around the first occurrence of the searched text, or an empty text if it does not occur."""
    whole = " ".join(_searched(run).split())
    at = whole.casefold().find(" ".join(text.casefold().split()))
    if at < 0:
        return ""
    start, end = max(at - _AROUND, 0), at + len(text) + _AROUND
    return f"{'…' if start else ''}{whole[start:end]}{'…' if end < len(whole) else ''}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
