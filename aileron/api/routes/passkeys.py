"""The operator's passkeys: a page proposes one, a terminal lets it count, and approvals ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from aileron.api._endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, TEXT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.errors import Forbidden
from aileron.values import JSON, Passkey, PasskeyRule, approval_statement

from .approvals import DECISION, read_decision
from .grants import read_new_grant

TABLE = EndpointTable()

FRESH = timedelta(minutes=15)
"""The greatest age of the login by which a passkey is added."""

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_RULE = made_of({"everything": BOOLEAN, "actions": {**list_of(_NAME), "maxItems": 100}})
_PASSKEY = described(Passkey)
_BOOK = made_of({"items": list_of(_PASSKEY), "rule": _RULE})
_WORDS: Schema = {"type": "string", "maxLength": 256}


@TABLE.route("GET", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def list_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """List the passkeys that count, oldest first, and what may not be approved without one."""
    return _book(deps)


@TABLE.route("POST", "/v1/operator/passkeys/offer", operators=Who.OPERATOR, answers={200: ANY_OBJECT})
async def offer_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Hand out what a page gives to the browser to make a passkey."""
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
    """Take what the browser made; it counts once its two words were typed in a terminal."""
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
    """Let a passkey count whose page shows these two words; wrong ones end it."""
    _in_terminal(context)
    key = deps.passkeys.confirm(str(context.body["words"]))
    await deps.access_log.record("operator.passkey_added", context.caller.actor, {"id": key.id, "name": key.name})
    return answer(to_json(key))


@TABLE.route("POST", "/v1/operator/passkeys/rule", operators=Who.OPERATOR, body=_RULE, answers={200: _BOOK})
async def require_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Ask for a passkey where this rule says so; it can only come to ask for more."""
    _in_terminal(context)
    names = cast("list[str]", context.body["actions"])
    rule = PasskeyRule(context.body["everything"] is True, tuple(dict.fromkeys(names)))
    deps.passkeys.require(rule)
    await deps.access_log.record("operator.passkey_required", context.caller.actor, to_json(rule))
    return _book(deps)


@TABLE.route("DELETE", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def reset_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """Forget every passkey, and ask for none any more."""
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
    return answer({"items": items, "rule": to_json(rule)})


def _in_fresh_browser(context: RequestContext, deps: Dependencies) -> None:
    caller = context.caller.operator
    if caller is None or not caller.browser:
        raise Forbidden("A passkey is made in a browser: run `aileron open passkeys`.")
    if deps.now() - caller.started_at > FRESH:
        raise Forbidden("This login is too old for that: run `aileron open passkeys` again.")


def _in_terminal(context: RequestContext) -> None:
    """Require that the passphrase was typed for it: no page has a say in what stands between it and you."""
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
