"""The operator's logins: each side proves to the other that it knows the key, and a browser gets in by a code."""

from __future__ import annotations

from twisted.internet.task import deferLater

from aileron.api._endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import MOMENT, TEXT, list_of, made_of, ref
from aileron.api.shapes.values import operator_json
from aileron.errors import Forbidden, NotFound, Unauthorized
from aileron.values import Actor, HandOverState, timestamp

TABLE = EndpointTable()

_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_SHORT: Schema = {"type": "string", "maxLength": 256}
_SESSIONS = made_of({"items": list_of(ref("OperatorSession"))})
_HANDED_OVER = made_of({"state": {"enum": [state.value for state in HandOverState]}})
_ENDED = made_of({"ended": list_of(TEXT)})


@TABLE.route(
    "POST",
    "/v1/operator/challenge",
    operators=Who.ANYONE,
    body=made_of({"nonce": _SECRET}, {"address": _SHORT}),
    answers={200: made_of({"nonce": TEXT, "proof": TEXT})},
)
async def challenge(context: RequestContext, deps: Dependencies) -> Answer:
    """Have the daemon prove itself first, for the address that the client believes to speak to."""
    address = context.text("address") or f"http://{context.received.host}"
    nonce, proof = deps.operators.challenge(str(context.body["nonce"]), address)
    return answer({"nonce": nonce, "proof": proof})


@TABLE.route(
    "POST",
    "/v1/operator/login",
    operators=Who.ANYONE,
    body=made_of({"nonce": _SECRET, "proof": _SECRET}),
    answers={200: made_of({"token": TEXT, "expires_at": MOMENT, "id": TEXT})},
)
async def login(context: RequestContext, deps: Dependencies) -> Answer:
    """Trade the client's proof for an operator token, shown this once; only a wrong proof is answered late."""
    delay_seconds = deps.operators.delay_seconds()
    try:
        token, session = deps.operators.login(str(context.body["nonce"]), str(context.body["proof"]))
    except Unauthorized:
        await deps.access_log.refuse()
        if delay_seconds:
            await deferLater(deps.clock, delay_seconds)
        raise
    context.received.keep_place(session.id)
    await deps.access_log.record("operator.login", Actor("human", session.id), {"browser": False})
    return answer({"token": token, "expires_at": timestamp(session.expires_at), "id": session.id})


@TABLE.route("POST", "/v1/operator/logout", operators=Who.OPERATOR, answers={200: _ENDED})
async def logout(context: RequestContext, deps: Dependencies) -> Answer:
    """End the caller's own session."""
    return await _end(context, deps, [context.caller.actor.id])


@TABLE.route("GET", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _SESSIONS})
async def list_logins(context: RequestContext, deps: Dependencies) -> Answer:
    """Live operator sessions, newest first."""
    caller = context.caller.operator
    return answer({"items": [operator_json(session, caller) for session in deps.operators.list()]})


@TABLE.route("DELETE", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_logins(context: RequestContext, deps: Dependencies) -> Answer:
    """End every operator session but the caller's own."""
    others = [session.id for session in deps.operators.list() if session.id != context.caller.actor.id]
    return await _end(context, deps, others)


@TABLE.route("DELETE", "/v1/operator/sessions/<session_id>", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_login(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """End one operator session."""
    if session_id not in {session.id for session in deps.operators.list()}:
        raise NotFound("There is no such operator session.")
    return await _end(context, deps, [session_id])


async def _end(context: RequestContext, deps: Dependencies, session_ids: list[str]) -> Answer:
    for session_id in session_ids:
        deps.operators.log_out(session_id)
        deps.forget_places(session_id)
    for session_id in session_ids:
        await deps.access_log.record("operator.logout", context.caller.actor, {"session": session_id})
    return answer({"ended": list(session_ids)})


@TABLE.route("POST", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: made_of({"code": TEXT})})
async def hand_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Mint the code by which one browser comes to the door, once, within a minute."""
    return answer({"code": deps.operators.hand_over(_terminal(context))})


@TABLE.route("GET", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: _HANDED_OVER})
async def handed_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Tell how far the caller's last hand-over is."""
    state = deps.operators.handed_over(_terminal(context))
    if state is None:
        raise NotFound("Nothing was handed over.")
    return answer({"state": state.value})


@TABLE.route(
    "POST",
    "/v1/operator/handover/confirm",
    operators=Who.OPERATOR,
    body=made_of({"words": _SHORT}),
    answers={200: ref("OperatorSession")},
)
async def confirm(context: RequestContext, deps: Dependencies) -> Answer:
    """Let the browser in that shows these two words; wrong ones end it."""
    actor = context.caller.actor
    try:
        session = deps.operators.confirm(_terminal(context), str(context.body["words"]))
    except Forbidden:
        await deps.access_log.record("operator.handover_refused", actor, {"reason": HandOverState.WRONG.value})
        raise
    await deps.access_log.record("operator.login", Actor("human", session.id), {"browser": True, "from": actor.id})
    return answer(operator_json(session))


def _terminal(context: RequestContext) -> str:
    """Require a terminal's token: a browser has none, and has no say in who else comes in."""
    if context.caller.token is None:
        raise Forbidden("A browser cannot let another browser in: use a terminal.")
    return context.caller.token
