"""Putting an end to an agent that asks and asks: its session ended, and all that waits of it denied."""

from __future__ import annotations

from attrs import evolve

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import REASON, TEXT, list_of, made_of, ref
from aileron.errors import ApprovalStale, Conflict, NotFound
from aileron.values import JSON, Approval, Decision, Event, RunQuery, RunState

from .sessions import shown

TABLE = Table()

_AT_ONCE = 100
_LEFT = made_of({"id": TEXT, "message": TEXT})


@TABLE.route(
    "POST",
    "/v1/sessions/<session_id>/deny",
    operators=Who.OPERATOR,
    body=made_of({}, {"reason": REASON}),
    answers={200: made_of({"session": ref("Session"), "denied": list_of(TEXT), "left": list_of(_LEFT)})},
)
async def deny_session(visit: Visit, parts: Parts, session_id: str) -> Answer:
    """End a session, so that it asks for nothing more, then deny all that waits of it, each on record by itself."""
    session = await parts.sessions.get(session_id)
    if session is None:
        raise NotFound("There is no such session.")
    payload: dict[str, JSON] = {"exit_code": None}
    ended = Event(parts.ids(), "session.ended", parts.now(), visit.caller.actor, payload, session_id=session_id)
    session = await parts.sessions.end(session_id, None, (ended,))
    try:
        denied, left = await _deny_all(visit, parts, session_id)
    finally:  # only now: an agent that waits for one of them learns of its denial
        parts.session_ended(session_id)
    return answer({"session": shown(session, parts), "denied": denied, "left": left})


async def _deny_all(visit: Visit, parts: Parts, session_id: str) -> tuple[list[JSON], list[JSON]]:
    denied: list[JSON] = []
    left: list[JSON] = []
    for approval in await _waiting(parts, session_id):
        trouble = await _denied(visit, parts, approval)
        if trouble is None:
            denied.append(approval.run.id)
        else:
            left.append({"id": approval.run.id, "message": trouble})
    return denied, left


async def _waiting(parts: Parts, session_id: str) -> list[Approval]:
    """All that waits of it, read whole before any of it is denied."""
    query: RunQuery | None = RunQuery(states=(RunState.PENDING,), session_id=session_id, limit=_AT_ONCE)
    found: list[Approval] = []
    while query is not None:
        page = await parts.decisions.approvals(query)
        found += page.items
        query = None if page.cursor is None else evolve(query, cursor=page.cursor)
    return found


async def _denied(visit: Visit, parts: Parts, approval: Approval) -> str | None:
    """Why one could not be denied; one that was changed in this moment is denied as it is then."""
    for digest in (approval.digest, None):
        try:
            present = digest or (await parts.decisions.approval(approval.run.id)).digest
            word = Decision(False, present, visit.caller.actor.id, visit.text("reason"))
            await parts.decisions.decide(approval.run.id, word)
        except ApprovalStale as error:
            trouble = error.message
        except Conflict as error:
            return error.message
        else:
            return None
    return trouble
