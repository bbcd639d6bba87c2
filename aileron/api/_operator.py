"""The operator's logins: each side proves to the other that it knows the key, and a browser gets in by a code."""

from __future__ import annotations

from aileron.errors import Forbidden, NotFound
from aileron.values import Actor, Event, timestamp

from ._endpoint import Parts, Schema, Table, Visit
from ._faults import Answer, answer
from ._guard import Who
from ._schemas import MOMENT, TEXT, list_of, made_of, ref
from ._shapes import operator_json

TABLE = Table()

_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_ADDRESS: Schema = {"type": "string", "maxLength": 256}
_SESSIONS = made_of({"items": list_of(ref("OperatorSession"))})
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
    """Trade the client's proof for an operator token, shown this once."""
    token, session = parts.operators.login(str(visit.body["nonce"]), str(visit.body["proof"]))
    event = Event(parts.ids(), "operator.login", parts.now(), Actor("human", session.id))
    await parts.audit.append(event)
    return answer({"token": token, "expires_at": timestamp(session.expires_at), "id": session.id})


@TABLE.route("POST", "/v1/operator/logout", operators=Who.OPERATOR, answers={200: _ENDED})
async def logout(visit: Visit, parts: Parts) -> Answer:
    """End the caller's own session."""
    own = visit.caller.actor.id
    parts.operators.log_out(own)
    return answer({"ended": [own]})


@TABLE.route("GET", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _SESSIONS})
async def list_logins(visit: Visit, parts: Parts) -> Answer:
    """Live operator sessions, newest first."""
    return answer({"items": [operator_json(session) for session in parts.operators.list()]})


@TABLE.route("DELETE", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_logins(visit: Visit, parts: Parts) -> Answer:
    """End every operator session, the caller's own included."""
    ended = [session.id for session in parts.operators.list()]
    for session_id in ended:
        parts.operators.log_out(session_id)
    return answer({"ended": list(ended)})


@TABLE.route("DELETE", "/v1/operator/sessions/<session_id>", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_login(visit: Visit, parts: Parts, session_id: str) -> Answer:
    """End one operator session."""
    if session_id not in {session.id for session in parts.operators.list()}:
        raise NotFound("There is no such operator session.")
    parts.operators.log_out(session_id)
    return answer({"ended": [session_id]})


@TABLE.route("POST", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: made_of({"code": TEXT})})
async def hand_over(visit: Visit, parts: Parts) -> Answer:
    """Mint the code by which one browser gets in, once, within a minute."""
    if visit.caller.token is None:
        raise Forbidden("A browser cannot let another browser in: use a terminal.")
    return answer({"code": parts.operators.hand_over(visit.caller.token)})
