"""History: runs, sessions and all other events as one timeline in words, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from attrs import evolve, frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.json import plain
from aileron.base.text import visible
from aileron.model.audit import Event, EventName, Record
from aileron.model.errors import InvalidRequest
from aileron.model.queries import AuditQuery
from aileron.model.sessions import Session

from ._daily import Day, draw_days, read_days
from ._runs_page import VIEWS
from .blocks import Part, chip, choice, empty, field, filters, heading, link, older, page, part, quiet, segments
from .event_names import KINDS, PERSON, event_names
from .parts import Drawing, Visit
from .texts import agent, count, moment

_FEW = 50
_AT_A_TIME = 100
_MOST_READ = 2000
_FILTERS = ("kind", "action", "session", "day", "text")
_DAY = timedelta(days=1)


@frozen
class Timeline:
    """One page of the history.

    :ivar sessions: the sessions that the entries name, by ID, without those no longer stored.
    :ivar names: the words for event types.
    :ivar read: how many events were searched.
    :ivar cursor: where the next page begins, or None if there are no older entries.
    """

    records: Sequence[Record]
    sessions: Mapping[str, Session]
    names: Mapping[str, EventName]
    read: int
    cursor: str | None


async def draw_history(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the events that match the filters, newest first.

    :raises InvalidRequest: if the day is not a date, or the cursor is not from this list.
    """
    given = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    names = event_names(deps.features.features)
    found = await _find(deps, names, _read_wanted(given, names, visit.query.get("cursor")), given.get("text", ""))
    days = [] if given or visit.query.get("cursor") else await read_days(deps)
    return Drawing(lambda: _page(found, given, days))


def _read_wanted(given: Mapping[str, str], names: Mapping[str, EventName], cursor: str | None) -> AuditQuery:
    since, until = _read_day(given.get("day"))
    return AuditQuery(
        since=since,
        until=until,
        action=given.get("action"),
        session_id=given.get("session"),
        types=tuple(name for name, known in names.items() if known.kind == given.get("kind")),
        commands=not _leaves_out_logins(given),
        limit=_FEW,
        cursor=cursor,
    )


def _leaves_out_logins(given: Mapping[str, str]) -> bool:
    """Return True if logins and logouts of commands are hidden: no filter is set."""
    return not given.keys() - {"day"}


def _read_day(text: str | None) -> tuple[datetime | None, datetime | None]:
    if text is None:
        return None, None
    try:
        start = datetime.combine(date.fromisoformat(text), time(), UTC)
        return start, start + _DAY
    except (ValueError, OverflowError):
        raise InvalidRequest("Day is not a valid date. Write it as 2026-01-31.") from None


async def _find(deps: Dependencies, names: Mapping[str, EventName], query: AuditQuery, text: str) -> Timeline:
    """Read one page of events. If a search text is set, read more until enough match or the limit is reached.

    :raises InvalidRequest: if the cursor is not valid.
    """
    records: list[Record] = []
    read, wanted = 0, text.casefold()
    query = evolve(query, limit=_AT_A_TIME) if wanted else query
    while True:
        found = await deps.audit.list(query)
        read += len(found.items)
        records += [each for each in found.items if wanted in _searched(each.event, names)] if wanted else found.items
        if found.cursor is None or not wanted or len(records) >= _FEW or read >= _MOST_READ:
            break
        query = evolve(query, cursor=found.cursor)
    named = {each.event.session_id for each in records} - {None}
    sessions = {each: await deps.sessions.get(each) for each in sorted(filter(None, named))}
    known = {name: each for name, each in sessions.items() if each is not None}
    return Timeline(records, known, names, read, found.cursor)


def _name_event(event: Event, names: Mapping[str, EventName]) -> EventName:
    return names.get(event.type) or EventName(event.type)


def _searched(event: Event, names: Mapping[str, EventName]) -> str:
    """Return the searchable text of an event, in lower case."""
    about = (_name_event(event, names).words, event.type, event.action, event.connector, event.failure_class)
    ids = (event.run_id, event.session_id, event.actor.id, json.dumps(plain(event.payload), ensure_ascii=False))
    return "\n".join(filter(None, (*about, *ids))).casefold()


def _page(found: Timeline, given: Mapping[str, str], days: Sequence[Day]) -> Tag:
    kind, action, session, day, text = (given.get(name, "") for name in _FILTERS)
    searched = f"Searched {found.read:,} records. " if text and found.cursor is not None else ""
    return page(
        "History",
        count(len(found.records), "entry", "entries"),
        heading("History"),
        segments("/history", VIEWS),
        filters(
            "/history",
            choice("kind", "Kind", [("", "Any"), *KINDS.items()], kind),
            field("action", "Action", action),
            field("session", "Session", session),
            field("day", "Day (UTC)", day, "date"),
            given=bool(given.keys() - {"text"}),
            search=field("text", "Search", text, "search"),
        ),
        part(
            "results",
            *draw_days(days),
            *_draw_entries(found, given, searched),
            older("/history", given, found.cursor),
        ),
    )


def _draw_entries(found: Timeline, given: Mapping[str, str], searched: str) -> Iterator[Part]:
    """Draw the entries, or how to show more if there are none.

    :param searched: how much was searched, if that was not everything.
    """
    if _leaves_out_logins(given):
        logins = link("/history?kind=logins", KINDS["logins"])
        yield quiet("The login and logout of each command are left out: ", logins)
    if found.records:
        yield tags.ol(*(_entry(each, found) for each in found.records), **{"class": "history"})
    else:
        yield _draw_nothing(bool(given))
    if searched:
        yield quiet(f"{searched}Older entries may match.")


def _draw_nothing(filtered: bool) -> Tag:
    if filtered:
        return empty("No matching entries", tags.p(link("/history", "Show the whole history")))
    return empty("No entries yet", tags.p("What agents request and what you do is listed here, in words."))


def _entry(record: Record, found: Timeline) -> Tag:
    event, known, sessions = record.event, _name_event(record.event, found.names), found.sessions
    return tags.li(
        tags.div(chip(known.words, known.colour), " ", *_subject(event, sessions)),
        tags.small(moment(event.at), *_about(record, sessions), **{"class": "quiet"}),
    )


def _subject(event: Event, sessions: Mapping[str, Session]) -> Iterator[Part]:
    """Draw the subject of an event with a link to its run or session."""
    name = event.payload.get("name")
    words = event.action or event.connector or (name if isinstance(name, str) else "")
    if event.run_id is not None:
        yield link(f"/runs/{event.run_id}", words or event.run_id)
    elif words:
        yield visible(words)
    elif event.session_id is not None:
        yield link(f"/sessions/{event.session_id}", _agent(event.session_id, sessions))


def _agent(session_id: str, sessions: Mapping[str, Session]) -> str:
    session = sessions.get(session_id)
    return session_id if session is None else agent(session)


def _about(record: Record, sessions: Mapping[str, Session]) -> Iterator[Part]:
    event = record.event
    if event.actor.type == PERSON:
        yield f", by {visible(event.actor.person or 'you')}"
    if event.session_id is not None and event.run_id is not None:
        yield ", session of "
        yield link(f"/sessions/{event.session_id}", _agent(event.session_id, sessions))
    yield ", "
    yield link(f"/audit/{event.id}", f"record {record.sequence:,}")
