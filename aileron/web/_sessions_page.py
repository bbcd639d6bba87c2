"""The pages of agent sessions: the active sessions, their token usage, and the calls of each on a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from attrs import frozen
from twisted.web.template import Tag, tags

from aileron.api import COMMAND_SESSION, Dependencies
from aileron.base.text import visible
from aileron.model.errors import NotFound
from aileron.model.queries import RunQuery
from aileron.model.runs import Run, RunState
from aileron.model.sessions import Session, SessionTally
from aileron.model.usage import UsageSum

from ._runs_page import Lane, describe_arguments, draw_state, read_lanes, runs_table
from .blocks import (
    Cell,
    Part,
    act,
    answer,
    back,
    bars,
    chip,
    choice,
    command_line,
    copied,
    drawn_time,
    empty,
    facts,
    filters,
    heading,
    link,
    older,
    page,
    quiet,
    table,
)
from .parts import Visit
from .texts import COST, STATES, count, dollars, find_address, moment, name_run, process, segment

MOST_DRAWN = 100
_WIDTH, _LANE, _LEFT, _TOP = 900, 18, 250, 24
_NARROW = 3
_NAME = 36
_MOST_BARS, _SHORT = 10, 10
_ENDED_WITHOUT = frozenset((RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED))


def draw_timeline(lanes: Sequence[Lane], now: datetime) -> Tag:
    """Draw a timeline of calls, the oldest at the top."""
    start = min(each.run.received_at for each in lanes)
    scale = _Scale(start, max(_end(each, now) for each in lanes))
    height = _TOP + _LANE * len(lanes)
    words = f"Timeline of {count(len(lanes), 'call', 'calls')}. Also listed in the table below."
    drawn = [part for place, lane in enumerate(lanes) for part in _draw_lane(lane, place, scale, now)]
    box = {"viewBox": f"0 0 {_WIDTH} {height}", "role": "img", "aria-label": words, "class": "timeline"}
    return Tag("svg")(*_draw_axis(scale, height), *drawn, **box)


@frozen
class _Scale:
    start: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        """Return the x coordinate of a moment in the drawing. A moment before or after the scale is at its end."""
        whole = max((self.end - self.start).total_seconds(), 0.001)
        part = min(max((moment - self.start).total_seconds() / whole, 0.0), 1.0)
        return _LEFT + part * (_WIDTH - _LEFT - _NARROW)


def _draw_axis(scale: _Scale, height: int) -> Iterator[Tag]:
    yield _text(_LEFT, 12, drawn_time(scale.start, "clock"), "start")
    yield _text(_WIDTH, 12, drawn_time(scale.end, "clock"), "end")
    for x in (_LEFT, _WIDTH - 1):
        yield Tag("line")(**_numbers(x1=x, x2=x, y1=16, y2=height))


def _draw_lane(lane: Lane, place: int, scale: _Scale, now: datetime) -> Iterator[Tag]:
    y, end, run = _TOP + place * _LANE, _end(lane, now), lane.run
    name = name_run(run)
    shown = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    yield _text(0, y + 12, shown, "start")(Tag("title")(name))
    waited_until = end if lane.began is None else lane.decided or lane.began
    if run.gated:
        yield _draw_bar(scale, run.received_at, waited_until, y, "waited", f"{name}: waited for approval")
    if lane.began is not None:
        yield _draw_bar(scale, lane.began, end, y, f"did {run.state.value}", f"{name}: {STATES[run.state]}")
    elif not run.gated or run.state in _ENDED_WITHOUT:
        yield _draw_bar(scale, end, end, y, f"did {run.state.value}", f"{name}: {STATES[run.state]}")


def _draw_bar(scale: _Scale, start: datetime, end: datetime, y: int, kind: str, words: str) -> Tag:
    x = scale.at(start)
    place = _numbers(x=x, y=y + 2, width=max(scale.at(end) - x, _NARROW), height=_LANE - 4, rx=2)
    return Tag("rect")(Tag("title")(visible(words)), **place, **{"class": kind})


def _text(x: int, y: int, words: Part, anchor: str) -> Tag:
    return Tag("text")(words, **_numbers(x=x, y=y), **{"text-anchor": anchor})


def _numbers(**given: float) -> dict[str, str]:
    return {name: f"{value:.1f}".removesuffix(".0") for name, value in given.items()}


def _end(lane: Lane, now: datetime) -> datetime:
    return lane.run.changed_at if lane.run.state.settled else max(now, lane.run.changed_at)


_MOST = 50
_SHOWN = [("", "All agents"), ("yes", "Active"), ("all", "All, with those of commands")]


@frozen
class AgentActivity:
    """The present activity of an active session.

    :ivar last: its newest call, or None if it made none.
    :ivar approvals: how many of its requests are pending.
    :ivar others: how many other decisions, such as about hosts, features wait for.
    :ivar used: the usage of its calls to language models, or None if that is unknown.
    """

    session: Session
    last: Run | None
    approvals: int
    others: int
    used: UsageSum | None


async def draw_sessions(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the activity of each active session, charts of the LLM use, and the list of ended sessions, newest first.

    :raises InvalidRequest: if the cursor is not of this list.
    """
    live = visit.query.get("live", "")
    without = None if live == "all" else COMMAND_SESSION
    found = await deps.sessions.list(live == "yes", _MOST, visit.query.get("cursor"), without)
    used = await deps.usage.of_sessions([each.id for each in found.items])
    active = [await _read_activity(deps, each, used.get(each.id)) for each in found.items if each.live]
    ended = [each for each in found.items if not each.live]
    heads = ("Agent", "State", "Started", "Last seen", "Directory", "LLM requests", "Input tokens", "Output tokens")
    past = table("Ended sessions, newest first", heads, (_row(deps, each, used) for each in ended), "")
    return page(
        "Agents",
        count(len(found.items), "session", "sessions"),
        heading("Agents"),
        filters("/sessions", choice("live", "State", _SHOWN, live), given=bool(live)),
        tags.div(*(_draw_activity(deps, each) for each in active), **{"data-part": "active"}),
        *([] if active else [_draw_nothing(deps, live)]),
        tags.div(*_draw_used(found.items, used), **{"data-part": "used"}),
        *([tags.h2("Ended"), past] if ended else []),
        older("/sessions", {"live": live} if live else {}, found.cursor),
    )


def _draw_nothing(deps: Dependencies, live: str) -> Tag:
    """Draw the empty list: with a link to all sessions if it lists active ones only, else how to start an agent."""
    if live == "yes":
        return empty("No active sessions", tags.p(link("/sessions", "Show all sessions")))
    steps = deps.features.features.next_steps("first") or ("aileron mcp config CLIENT",)
    return empty(
        "No agent is running",
        tags.p("Start an agent in your terminal. Its session is listed here, with each of its calls."),
        *map(command_line, steps),
    )


async def _read_activity(deps: Dependencies, session: Session, used: UsageSum | None) -> AgentActivity:
    newest = (await deps.submission.runs(RunQuery(session_id=session.id, limit=1))).items
    approvals = await deps.decisions.pending(session.id)
    return AgentActivity(session, next(iter(newest), None), approvals, deps.features.pending(session.id), used)


def _draw_activity(deps: Dependencies, activity: AgentActivity) -> Tag:
    session, waiting = activity.session, activity.approvals + activity.others
    words = f"{count(waiting, 'decision waits', 'decisions wait')} for you"
    return tags.section(
        tags.h2(link(f"/sessions/{session.id}", session.agent), " ", _state(deps, session)),
        tags.p(*_choices(deps, session, visible(session.id)), " ", answer(), **{"class": "buttons"}),
        quiet(tags.bdi(visible(session.working_dir)), ", started ", moment(session.started_at)),
        tags.p(tags.a(chip(words, "waits"), href="/approvals")) if waiting else "",
        facts(_describe_activity(activity)),
        id=f"agent-{visible(session.id)}",
        **{"class": "card agent", "data-row": visible(session.id)},
    )


def _describe_activity(activity: AgentActivity) -> Iterator[tuple[str, Cell]]:
    run = activity.last
    if run is None:
        yield "Last call", "None yet"
    else:
        words = link(find_address(run), name_run(run)), " ", draw_state(run), " ", moment(run.received_at)
        below = filter(None, (run.action if run.title else "", describe_arguments(run.arguments)))
        about = tags.small(visible(" · ".join(below)), **{"class": "quiet"})
        yield "Last call", tags.div(*words, tags.br(), about)
    yield "Last seen", activity.session.seen_at
    requests, read, written = _tokens(activity.used)
    yield "LLM requests", requests
    yield "Input tokens", read
    yield "Output tokens", written
    yield COST, None if activity.used is None else dollars(activity.used.usage.cost_microdollars)


async def draw_session(deps: Dependencies, visit: Visit, session_id: str) -> Tag:
    """Draw one session with its calls on a timeline.

    :raises NotFound: if no session has this ID.
    """
    session = await deps.sessions.get(session_id)
    if session is None:
        raise NotFound("No session has this ID.")
    found = await deps.submission.runs(RunQuery(session_id=session_id, limit=MOST_DRAWN))
    more = f" Only the newest {MOST_DRAWN} are shown." if found.cursor else ""
    lanes = await read_lanes(deps, found.items[::-1])
    added = [part for draw in deps.features.features.slots("session") for part in await draw(deps, visit, session)]
    tally, used = await deps.sessions.tally(session_id), await deps.usage.of_sessions([session_id])
    return page(
        f"{session.agent}, session",
        f"{session.agent}: {count(len(found.items), 'call', 'calls')}",
        back("/sessions", "Agents"),
        heading(session.agent, "self-reported"),
        tags.p(_state(deps, session), " ", *_choices(deps, session), " ", answer()),
        facts(_about(session, tally, used.get(session_id))),
        *added,
        tags.h2("Calls"),
        quiet(f"Dashed: waiting for your approval. Solid: running.{more}") if lanes else "",
        draw_timeline(lanes, deps.now()) if lanes else "",
        runs_table(lanes[::-1], "Calls, newest first"),
        older("/runs", {"session": session_id}, found.cursor),
    )


def _row(deps: Dependencies, session: Session, used: Mapping[str, UsageSum]) -> tuple[Cell, ...]:
    name = link(f"/sessions/{session.id}", session.agent)
    return (
        name,
        _state(deps, session),
        session.started_at,
        session.seen_at,
        session.working_dir,
        *_tokens(used.get(session.id)),
    )


def _draw_used(sessions: Sequence[Session], used: Mapping[str, UsageSum]) -> Iterator[Part]:
    """Draw the sessions that used the most tokens and those that cost the most, with input and output in a table."""
    known = [(each, used[each.id].usage) for each in sessions if each.id in used]
    tokens = [(each, usage.input + usage.output) for each, usage in known]
    costs = [(each, usage.cost_microdollars or 0) for each, usage in known]
    charts = (
        ("LLM tokens", "Tokens, input and output together", tokens, "{:,}".format),
        ("LLM cost", COST, costs, dollars),
    )
    for title, label, counted, write in charts:
        most = sorted((each for each in counted if each[1]), key=lambda each: -each[1])[:_MOST_BARS]
        rows = [(each.agent[:_SHORT], float(number), write(number) or "") for each, number in most]
        if rows:
            yield tags.h2(title)
            yield bars(f"{label}, by session (start in UTC)", rows, [each.started_at for each, _ in most])


def _tokens(used: UsageSum | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if used is None else (used.calls, used.usage.input, used.usage.output)


def _is_paused(deps: Dependencies, session: Session) -> bool:
    return any(each.session_id == session.id for each in deps.limits.pauses())


def _state(deps: Dependencies, session: Session) -> Tag:
    if not session.live:
        code = "" if session.exit_code is None else f" (exit code {session.exit_code})"
        return chip(f"Ended{code}" if session.ending is None else session.ending.value.capitalize(), "quiet")
    return chip("Paused", "waits") if _is_paused(deps, session) else chip("Active", "good")


def _choices(deps: Dependencies, session: Session, suffix: str = "session") -> Iterator[Part]:
    """Draw the buttons that pause, resume or end a session that has not ended.

    :param suffix: the end of their IDs on the page.
    """
    if not session.live:
        return
    which = {"session": session.id}
    if _is_paused(deps, session):
        yield act("Resume", "POST /v1/resume", which, name=f"resume-{suffix}")
    else:
        yield act("Pause", "POST /v1/pause", which, name=f"pause-{suffix}")
    yield " "
    sure = "Confirm: end session and revoke its keys"
    yield act("End session", f"POST /v1/sessions/{segment(session.id)}/end", sure=sure, name=f"end-{suffix}")


def _about(session: Session, tally: SessionTally, used: UsageSum | None) -> Iterator[tuple[str, Cell]]:
    yield "Session ID", copied(session.id, "session ID")
    yield "Working directory (self-reported)", session.working_dir
    yield "Opened by", process(session.peer)
    yield "Started", session.started_at
    yield "Last seen", session.seen_at
    yield "Ended", session.ended_at
    yield "Ends", _ends(session)
    yield "In-band mode", "yes" if session.in_band else None
    yield "Calls", describe_calls(tally)
    requests, read, written = _tokens(used)
    yield "LLM requests", requests
    yield "Input tokens", read
    yield "Output tokens", written
    yield COST, None if used is None else dollars(used.usage.cost_microdollars)
    yield "Audit log", link(f"/audit?session={session.id}", "Records of this session")


def describe_calls(tally: SessionTally) -> str:
    """Return the number of calls, and how many of them came to what, without what did not occur."""
    counts = {
        "pending": tally.waiting,
        "approved": tally.approvals,
        "denied": tally.denials,
        "executed": tally.effects,
        "outcome unknown": tally.in_doubt,
    }
    said = ", ".join(f"{number:,} {words}" for words, number in counts.items() if number)
    return f"{tally.calls:,} ({said})" if said else f"{tally.calls:,}"


def _ends(session: Session) -> Cell:
    if not session.live:
        return None
    return "When its launcher exits" if session.leased else session.ends_at
