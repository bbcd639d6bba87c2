"""The operator's passkeys: a page proposes one, a terminal lets it count, and approvals ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from aileron.api._endpoint import Parts, Schema, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, COUNT, MOMENT, TEXT, list_of, made_of
from aileron.errors import Forbidden
from aileron.values import JSON, Passkey, PasskeyRule, approval_statement, timestamp

from .approvals import DECISION, decision_of
from .grants import wish_of

TABLE = Table()

FRESH = timedelta(minutes=15)
"""How old the login may be by which a passkey is added."""

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_RULE = made_of({"everything": BOOLEAN, "actions": {**list_of(_NAME), "maxItems": 100}})
_PASSKEY = made_of({"id": TEXT, "name": TEXT, "made_at": MOMENT, "count": COUNT})
_BOOK = made_of({"items": list_of(_PASSKEY), "rule": _RULE})
_WORDS: Schema = {"type": "string", "maxLength": 256}


@TABLE.route("GET", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def list_passkeys(visit: Visit, parts: Parts) -> Answer:
    """The passkeys that count, oldest first, and what may not be approved without one."""
    return _book(parts)


@TABLE.route("POST", "/v1/operator/passkeys/offer", operators=Who.OPERATOR, answers={200: ANY_OBJECT})
async def offer_passkey(visit: Visit, parts: Parts) -> Answer:
    """What a page hands to the browser to make a passkey."""
    _in_fresh_browser(visit, parts)
    return answer(dict(parts.passkeys.offer()))


@TABLE.route(
    "POST",
    "/v1/operator/passkeys",
    operators=Who.OPERATOR,
    body=made_of({"name": _NAME, "credential": ANY_OBJECT}),
    answers={202: made_of({"words": TEXT})},
)
async def propose_passkey(visit: Visit, parts: Parts) -> Answer:
    """Take what the browser made; it counts once its two words were typed in a terminal."""
    _in_fresh_browser(visit, parts)
    credential = cast("Mapping[str, JSON]", visit.body["credential"])
    words = parts.passkeys.propose(str(visit.body["name"]), credential)
    await parts.door.record("operator.passkey_proposed", visit.caller.actor, {"name": str(visit.body["name"])})
    return answer({"words": words}, 202)


@TABLE.route(
    "POST",
    "/v1/operator/passkeys/confirm",
    operators=Who.OPERATOR,
    body=made_of({"words": _WORDS}),
    answers={200: _PASSKEY},
)
async def confirm_passkey(visit: Visit, parts: Parts) -> Answer:
    """Let a passkey count whose page shows these two words; wrong ones end it."""
    _in_terminal(visit)
    key = parts.passkeys.confirm(str(visit.body["words"]))
    await parts.door.record("operator.passkey_added", visit.caller.actor, {"id": key.id, "name": key.name})
    return answer(_shown(key))


@TABLE.route("POST", "/v1/operator/passkeys/rule", operators=Who.OPERATOR, body=_RULE, answers={200: _BOOK})
async def require_passkey(visit: Visit, parts: Parts) -> Answer:
    """Ask for a passkey where this rule says so; it can only come to ask for more."""
    _in_terminal(visit)
    names = cast("list[str]", visit.body["actions"])
    rule = PasskeyRule(visit.body["everything"] is True, tuple(dict.fromkeys(names)))
    parts.passkeys.require(rule)
    told: dict[str, JSON] = {"everything": rule.everything, "actions": list(rule.actions)}
    await parts.door.record("operator.passkey_required", visit.caller.actor, told)
    return _book(parts)


@TABLE.route("DELETE", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def reset_passkeys(visit: Visit, parts: Parts) -> Answer:
    """Forget every passkey, and ask for none any more."""
    _in_terminal(visit)
    ids: list[JSON] = [key.id for key in parts.passkeys.passkeys()]
    parts.passkeys.reset()
    await parts.door.record("operator.passkey_reset", visit.caller.actor, {"ids": ids})
    return _book(parts)


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/passkey",
    operators=Who.OPERATOR,
    body=DECISION,
    answers={200: made_of({"nonce": TEXT, "options": ANY_OBJECT})},
)
async def ask_passkey(visit: Visit, parts: Parts, approval_id: str) -> Answer:
    """What a page hands to the browser, so that a passkey signs exactly this decision."""
    wish = None if visit.body.get("grant") is None else wish_of(visit)
    nonce, options = parts.passkeys.ask(approval_statement(approval_id, decision_of(visit), wish))
    return answer({"nonce": nonce, "options": dict(options)})


def _book(parts: Parts) -> Answer:
    rule = parts.passkeys.passkey_rule()
    items: list[JSON] = [_shown(key) for key in parts.passkeys.passkeys()]
    return answer({"items": items, "rule": {"everything": rule.everything, "actions": list(rule.actions)}})


def _shown(key: Passkey) -> dict[str, JSON]:
    return {"id": key.id, "name": key.name, "made_at": timestamp(key.made_at), "count": key.count}


def _in_fresh_browser(visit: Visit, parts: Parts) -> None:
    caller = visit.caller.operator
    if caller is None or not caller.browser:
        raise Forbidden("A passkey is made in a browser: run `aileron open passkeys`.")
    if parts.now() - caller.started_at > FRESH:
        raise Forbidden("This login is too old for that: run `aileron open passkeys` again.")


def _in_terminal(visit: Visit) -> None:
    """The passphrase was typed for it: no page has a say in what stands between it and you."""
    if visit.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
