"""The routes of the operator's logins, in a terminal and by a code in a browser, and of passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from twisted.internet.task import deferLater

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, MOMENT, TEXT, described, list_of, made_of, ref
from aileron.api.shapes.values import operator_json, to_json
from aileron.base.json import JSON, timestamp
from aileron.model.audit import Actor
from aileron.model.authority import Passkey, PasskeyRule, approval_statement
from aileron.model.errors import Forbidden, NotFound, Unauthorized
from aileron.model.sessions import HandOverState

from .approvals import DECISION, read_decision
from .grants import read_new_grant

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
    """Return the daemon's proof of identity, for the address that the client believes to be the daemon's."""
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
    """Exchange the client's proof for an operator token, shown only once. The answer to a wrong proof is delayed."""
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


@TABLE.route("POST", "/v1/operator/logout", operators=Who.OPERATOR | Who.WATCHER, answers={200: _ENDED})
async def logout(context: RequestContext, deps: Dependencies) -> Answer:
    """End the caller's own session."""
    return await _end(context, deps, [context.caller.actor.id])


@TABLE.route("GET", "/v1/operator/sessions", operators=READERS, answers={200: _SESSIONS})
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


@TABLE.route(
    "POST",
    "/v1/operator/handover",
    operators=Who.OPERATOR,
    body=made_of({}, {"typed": BOOLEAN}),
    answers={200: made_of({"code": TEXT})},
)
async def hand_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Mint the code by which one browser comes to the door, once, within a minute; typed: short, and within two."""
    return answer({"code": deps.operators.hand_over(_terminal(context), context.body.get("typed") is True)})


@TABLE.route("GET", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: _HANDED_OVER})
async def handed_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the state of the caller's last hand-over."""
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
    """Log in the browser that shows these two words. Wrong words end the hand-over."""
    actor, known = context.caller.actor, {session.id for session in deps.operators.list()}
    try:
        session = deps.operators.confirm(_terminal(context), str(context.body["words"]))
    except Forbidden:
        await deps.access_log.record("operator.handover_refused", actor, {"reason": HandOverState.WRONG.value})
        raise
    kind = "operator.login_raised" if session.id in known else "operator.login"
    await deps.access_log.record(kind, Actor("human", session.id), {"browser": True, "from": actor.id})
    return answer(operator_json(session))


def _terminal(context: RequestContext) -> str:
    """Return the terminal's token, or raise. A browser has no token and cannot admit other browsers."""
    if context.caller.token is None:
        raise Forbidden("A browser cannot let another browser in: use a terminal.")
    return context.caller.token


FRESH = timedelta(minutes=15)
"""The greatest age of a login that may add a passkey."""

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_RULE = made_of({"everything": BOOLEAN, "actions": {**list_of(_NAME), "maxItems": 100}})
_PASSKEY = described(Passkey)
_BOOK = made_of({"items": list_of(_PASSKEY), "rule": _RULE, "site": {"type": ["string", "null"]}})
_WORDS: Schema = {"type": "string", "maxLength": 256}


@TABLE.route("GET", "/v1/operator/passkeys", operators=READERS, answers={200: _BOOK})
async def list_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """List the passkeys, oldest first, and the rule of approvals that need one."""
    return _book(deps)


@TABLE.route("POST", "/v1/operator/passkeys/offer", operators=Who.OPERATOR, answers={200: ANY_OBJECT})
async def offer_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the options with which a page asks the browser to create a passkey."""
    _in_fresh_browser(context, deps)
    return answer(dict(deps.passkeys.offer()))


@TABLE.route(
    "POST",
    "/v1/operator/passkeys",
    operators=Who.OPERATOR,
    body=made_of({"name": _NAME, "credential": ANY_OBJECT}),
    answers={202: made_of({"words": TEXT})},
)
async def propose_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Propose the passkey that the browser created. It is added when its two words are typed in a terminal."""
    _in_fresh_browser(context, deps)
    credential = cast("Mapping[str, JSON]", context.body["credential"])
    words = deps.passkeys.propose(str(context.body["name"]), credential)
    await deps.access_log.record("operator.passkey_proposed", context.caller.actor, {"name": str(context.body["name"])})
    return answer({"words": words}, 202)


@TABLE.route(
    "POST",
    "/v1/operator/passkeys/confirm",
    operators=Who.OPERATOR,
    body=made_of({"words": _WORDS}),
    answers={200: _PASSKEY},
)
async def confirm_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Add the proposed passkey whose page shows these two words. Wrong words discard the proposal."""
    _in_terminal(context)
    key = deps.passkeys.confirm(str(context.body["words"]))
    await deps.access_log.record("operator.passkey_added", context.caller.actor, {"id": key.id, "name": key.name})
    return answer(to_json(key))


@TABLE.route("POST", "/v1/operator/passkeys/rule", operators=Who.OPERATOR, body=_RULE, answers={200: _BOOK})
async def require_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Set the rule of approvals that need a passkey. A new rule must not require less."""
    _in_terminal(context)
    names = cast("list[str]", context.body["actions"])
    rule = PasskeyRule(context.body["everything"] is True, tuple(dict.fromkeys(names)))
    deps.passkeys.require(rule)
    await deps.access_log.record("operator.passkey_required", context.caller.actor, to_json(rule))
    return _book(deps)


@TABLE.route("DELETE", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def reset_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """Remove every passkey and the rule that requires passkeys."""
    _in_terminal(context)
    ids: list[JSON] = [key.id for key in deps.passkeys.passkeys()]
    deps.passkeys.reset()
    await deps.access_log.record("operator.passkey_reset", context.caller.actor, {"ids": ids})
    return _book(deps)


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/passkey",
    operators=Who.OPERATOR,
    body=DECISION,
    answers={200: made_of({"nonce": TEXT, "options": ANY_OBJECT})},
)
async def ask_passkey(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Hand out what a page gives to the browser, so that a passkey signs exactly this decision."""
    wish = None if context.body.get("grant") is None else read_new_grant(context)
    nonce, options = deps.passkeys.ask(approval_statement(approval_id, read_decision(context), wish))
    return answer({"nonce": nonce, "options": dict(options)})


def _book(deps: Dependencies) -> Answer:
    rule = deps.passkeys.passkey_rule()
    items: list[JSON] = [to_json(key) for key in deps.passkeys.passkeys()]
    return answer({"items": items, "rule": to_json(rule), "site": deps.passkeys.site()})


def _in_fresh_browser(context: RequestContext, deps: Dependencies) -> None:
    caller = context.caller.operator
    if caller is None or not caller.browser:
        raise Forbidden("A passkey is made in a browser: run `aileron open passkeys`.")
    if deps.now() - caller.proved_at > FRESH:
        raise Forbidden("This login is too old for that: run `aileron open passkeys` again.")


def _in_terminal(context: RequestContext) -> None:
    """Require a login by a typed passphrase in a terminal. A browser's page cannot change the rule of passkeys."""
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
