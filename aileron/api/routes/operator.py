"""The operator's logins: each side proves to the other that it knows the key, and a browser gets in by a code."""

from __future__ import annotations

from twisted.internet.task import deferLater

from aileron.api._endpoint import Parts, Schema, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import MOMENT, TEXT, list_of, made_of, ref
from aileron.api.shapes.values import operator_json
from aileron.errors import Forbidden, NotFound, Unauthorized
from aileron.values import Actor, HandOverState, timestamp

TABLE = Table()

_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_WORDS: Schema = {"type": "string", "maxLength": 256}
_ADDRESS: Schema = {"type": "string", "maxLength": 256}
_SESSIONS = made_of({"items": list_of(ref("OperatorSession"))})
_HANDED_OVER = made_of({"state": {"enum": [state.value for state in HandOverState]}})
_ENDED = made_of({"ended": list_of(TEXT)})


@TABLE.route(
    "POST",
    "/v1/operator/challenge",
    operators=Who.ANYONE,
    body=made_of({"nonce": _SECRET}, {"address": _ADDRESS}),
    answers={200: made_of({"nonce": TEXT, "proof": TEXT})},
)
async def challenge(visit: Visit, parts: Parts) -> Answer:
    """Have the daemon prove itself first, for the address that the client believes to speak to."""
    address = visit.text("address") or f"http://{visit.host}"
    nonce, proof = parts.operators.challenge(str(visit.body["nonce"]), address)
    return answer({"nonce": nonce, "proof": proof})


@TABLE.route(
    "POST",
    "/v1/operator/login",
    operators=Who.ANYONE,
    body=made_of({"nonce": _SECRET, "proof": _SECRET}),
    answers={200: made_of({"token": TEXT, "expires_at": MOMENT, "id": TEXT})},
)
async def login(visit: Visit, parts: Parts) -> Answer:
    """Trade the client's proof for an operator token, shown this once; only a wrong proof is answered late."""
    delay_seconds = parts.operators.delay_seconds()
    try:
        token, session = parts.operators.login(str(visit.body["nonce"]), str(visit.body["proof"]))
    except Unauthorized:
        await parts.door.refuse()
        if delay_seconds:
            await deferLater(parts.clock, delay_seconds)
        raise
    visit.keep_place(session.id)
    await parts.door.record("operator.login", Actor("human", session.id), {"browser": False})
    return answer({"token": token, "expires_at": timestamp(session.expires_at), "id": session.id})


@TABLE.route("POST", "/v1/operator/logout", operators=Who.OPERATOR, answers={200: _ENDED})
async def logout(visit: Visit, parts: Parts) -> Answer:
    """End the caller's own session."""
    return await _end(visit, parts, [visit.caller.actor.id])


@TABLE.route("GET", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _SESSIONS})
async def list_logins(visit: Visit, parts: Parts) -> Answer:
    """Live operator sessions, newest first."""
    caller = visit.caller.operator
    return answer({"items": [operator_json(session, caller) for session in parts.operators.list()]})


@TABLE.route("DELETE", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_logins(visit: Visit, parts: Parts) -> Answer:
    """End every operator session but the caller's own."""
    others = [session.id for session in parts.operators.list() if session.id != visit.caller.actor.id]
    return await _end(visit, parts, others)


@TABLE.route("DELETE", "/v1/operator/sessions/<session_id>", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_login(visit: Visit, parts: Parts, session_id: str) -> Answer:
    """End one operator session."""
    if session_id not in {session.id for session in parts.operators.list()}:
        raise NotFound("There is no such operator session.")
    return await _end(visit, parts, [session_id])


async def _end(visit: Visit, parts: Parts, session_ids: list[str]) -> Answer:
    for session_id in session_ids:
        parts.operators.log_out(session_id)
        parts.forget_places(session_id)
    for session_id in session_ids:
        await parts.door.record("operator.logout", visit.caller.actor, {"session": session_id})
    return answer({"ended": list(session_ids)})


@TABLE.route("POST", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: made_of({"code": TEXT})})
async def hand_over(visit: Visit, parts: Parts) -> Answer:
    """Mint the code by which one browser comes to the door, once, within a minute."""
    return answer({"code": parts.operators.hand_over(_terminal(visit))})


@TABLE.route("GET", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: _HANDED_OVER})
async def handed_over(visit: Visit, parts: Parts) -> Answer:
    """How far the caller's last hand-over is."""
    state = parts.operators.handed_over(_terminal(visit))
    if state is None:
        raise NotFound("Nothing was handed over.")
    return answer({"state": state.value})


@TABLE.route(
    "POST",
    "/v1/operator/handover/confirm",
    operators=Who.OPERATOR,
    body=made_of({"words": _WORDS}),
    answers={200: ref("OperatorSession")},
)
async def confirm(visit: Visit, parts: Parts) -> Answer:
    """Let the browser in that shows these two words; wrong ones end it."""
    actor = visit.caller.actor
    try:
        session = parts.operators.confirm(_terminal(visit), str(visit.body["words"]))
    except Forbidden:
        await parts.door.record("operator.handover_refused", actor, {"reason": HandOverState.WRONG.value})
        raise
    await parts.door.record("operator.login", Actor("human", session.id), {"browser": True, "from": actor.id})
    return answer(operator_json(session))


def _terminal(visit: Visit) -> str:
    """The caller's token: a browser has none, and has no say in who else comes in."""
    if visit.caller.token is None:
        raise Forbidden("A browser cannot let another browser in: use a terminal.")
    return visit.caller.token
