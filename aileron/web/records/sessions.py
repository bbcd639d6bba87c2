"""Sessions of agents: who is at work, and what each has done."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Tag, tags

from aileron.errors import NotFound
from aileron.values import Run, RunQuery, RunState, Session, SessionTally, Traffic
from aileron.web._blocks import (
    Cell,
    Part,
    act,
    answer,
    back,
    chip,
    choice,
    facts,
    filters,
    heading,
    link,
    older,
    page,
    quiet,
    table,
)
from aileron.web._parts import PageParts, Visit
from aileron.web._texts import process, segment

from .runs import runs_table
from .timeline import MOST_DRAWN, Lane, draw

_MOST = 50
_SENT = frozenset((RunState.EXECUTING, RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN))


async def draw_sessions(parts: PageParts, visit: Visit) -> Tag:
    """Sessions, newest first."""
    live = visit.query.get("live", "")
    found = await parts.sessions.list(live == "yes", _MOST, visit.query.get("cursor"))
    heads = ("Agent", "State", "Since", "Seen", "Directory", "Model requests", "Tokens in", "Tokens out")
    return page(
        "Sessions",
        f"{len(found.items)} sessions",
        heading("Sessions"),
        filters(
            "/sessions", choice("live", "Which", [("", "all"), ("yes", "only those at work")], live), given=bool(live)
        ),
        table("Sessions, newest first", heads, (_row(parts, each) for each in found.items), "No agent was here yet."),
        older("/sessions", {"live": live} if live else {}, found.cursor),
    )


async def draw_session(parts: PageParts, visit: Visit, session_id: str) -> Tag:
    """One session, with what it asked for over time."""
    session = await parts.sessions.get(session_id)
    if session is None:
        raise NotFound("There is no such session.")
    found = await parts.submission.runs(RunQuery(session_id=session_id, limit=MOST_DRAWN))
    more = f" Only the newest {MOST_DRAWN} are here." if found.cursor else ""
    return page(
        f"{session.agent}, session",
        f"{session.agent}: {len(found.items)} calls",
        back("/sessions", "All sessions"),
        heading(session.agent, "as it calls itself"),
        tags.p(_state(parts, session), " ", *_choices(parts, session), " ", answer()),
        facts(_about(parts, session, await parts.sessions.tally(session_id))),
        tags.h2("What it asked for"),
        quiet(f"Dashed: it waited for you. Full: it was being done.{more}") if found.items else "",
        draw([await _lane(parts, run) for run in reversed(found.items)], parts.now()) if found.items else "",
        runs_table(found.items, "Its calls, newest first"),
        older("/runs", {"session": session_id}, found.cursor),
    )


def _row(parts: PageParts, session: Session) -> tuple[Cell, ...]:
    name = link(f"/sessions/{session.id}", session.agent)
    return (
        name,
        _state(parts, session),
        session.started_at,
        session.seen_at,
        session.working_dir,
        *_tokens(parts, session),
    )


def _tokens(parts: PageParts, session: Session) -> tuple[Cell, Cell, Cell]:
    traffic = _traffic(parts, session)
    if traffic is None:
        return None, None, None
    return traffic.begun, traffic.usage.input, traffic.usage.output


def _traffic(parts: PageParts, session: Session) -> Traffic | None:
    return None if parts.totals is None else parts.totals.of_session(session.id)


def _paused(parts: PageParts, session: Session) -> bool:
    return any(each.session_id == session.id for each in parts.limits.pauses())


def _state(parts: PageParts, session: Session) -> Tag:
    if not session.live:
        code = "" if session.exit_code is None else f" with {session.exit_code}"
        return chip(f"ended{code}" if session.ending is None else session.ending.value, "quiet")
    return chip("paused", "waits") if _paused(parts, session) else chip("at work", "moves")


def _choices(parts: PageParts, session: Session) -> Iterator[Part]:
    if not session.live:
        return
    which = {"session": session.id}
    if _paused(parts, session):
        yield act("Resume it", "POST /v1/resume", which, name="resume-session")
    else:
        yield act("Pause it", "POST /v1/pause", which, name="pause-session")
    yield " "
    sure = "Its keys open nothing from then on. Sure?"
    yield act("End it", f"POST /v1/sessions/{segment(session.id)}/end", sure=sure, name="end-session")


def _about(parts: PageParts, session: Session, tally: SessionTally) -> Iterator[tuple[str, Cell]]:
    yield "Session", session.id
    yield "Directory, as it says", session.working_dir
    yield "Opened by", process(session.peer)
    yield "Began", session.started_at
    yield "Last seen", session.seen_at
    yield "Ended", session.ended_at
    yield "Ends by itself", _ends(session)
    yield "Calls", tally.calls
    yield "Approved", tally.approvals
    yield "Denied", tally.denials
    yield "Done", tally.effects
    yield "In doubt", tally.in_doubt
    yield "Waiting for you", tally.waiting
    requests, read, written = _tokens(parts, session)
    yield "Requests to models", requests
    yield "Tokens read", read
    yield "Tokens written", written
    yield "On record", link(f"/audit?session={session.id}", "what was recorded of it")


def _ends(session: Session) -> Cell:
    if not session.live:
        return None
    return "when its launcher is gone" if session.leased else session.ends_at


async def _lane(parts: PageParts, run: Run) -> Lane:
    """When a call waited and when it was done; no history is read of what never was."""
    if run.state not in _SENT:
        return Lane(run)
    _, attempts = await parts.submission.history(run.id)
    decided = (await parts.decisions.approval(run.id)).decided_at if run.gated else None
    return Lane(run, decided, min((each.started_at for each in attempts), default=run.changed_at))
