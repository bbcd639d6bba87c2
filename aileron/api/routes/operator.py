"""The routes of the operator's logins, in a terminal and by a code in a browser, and of passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from twisted.internet.task import deferLater

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who, login_payload
from aileron.api.shapes.schemas import ANY_OBJECT, BOOLEAN, MOMENT, TEXT, described, list_of, made_of, ref
from aileron.api.shapes.values import operator_json, to_json
from aileron.base.json import JSON, timestamp
from aileron.model.audit import Actor
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.errors import Forbidden, NotFound, Unauthorized
from aileron.model.sessions import HandOverState

from .approvals import DECISION, read_decision
from .grants import read_wish

TABLE = EndpointTable()

_PUBLIC_KEY: Schema = {"type": "string", "minLength": 1, "maxLength": 1024}
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
    answers={200: made_of({"nonce": TEXT, "proof": TEXT, "takes_key": BOOLEAN})},
)
async def challenge(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the daemon's proof of identity, for the address that the client believes to be the daemon's.

    :raises VaultLocked: if the vault is not unlocked.
    :raises InvalidRequest: if the nonce is malformed.
    :raises Forbidden: if the address is not an address of this daemon.
    """
    address = context.text("address") or f"http://{context.received.host}"
    nonce, proof = deps.operators.challenge(str(context.body["nonce"]), address)
    return answer({"nonce": nonce, "proof": proof, "takes_key": True})


@TABLE.route(
    "POST",
    "/v1/operator/login",
    operators=Who.ANYONE,
    body=made_of({"nonce": _SECRET, "proof": _SECRET}, {"public_key": _PUBLIC_KEY}),
    answers={200: made_of({"token": TEXT, "expires_at": MOMENT, "id": TEXT})},
)
async def login(context: RequestContext, deps: Dependencies) -> Answer:
    """Exchange the client's proof for an operator token, shown only once. The answer to a wrong proof is delayed.

    Each login and each refused login is recorded.

    :raises Unauthorized: if the proof is wrong.
    :raises InvalidRequest: if the public key is malformed.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    delay_seconds = deps.operators.delay_seconds()
    try:
        given = str(context.body["nonce"]), str(context.body["proof"]), context.text("public_key") or ""
        token, session = deps.operators.login(*given)
    except Unauthorized:
        await deps.access_log.refuse()
        if delay_seconds:
            await deferLater(deps.clock, delay_seconds)
        raise
    context.received.keep_place(session.id)
    await deps.access_log.record("operator.login", Actor("human", session.id), login_payload(deps, session))
    return answer({"token": token, "expires_at": timestamp(session.expires_at), "id": session.id})


@TABLE.route("POST", "/v1/operator/logout", operators=Who.OPERATOR | Who.WATCHER, answers={200: _ENDED})
async def logout(context: RequestContext, deps: Dependencies) -> Answer:
    """End the caller's own session."""
    return await _end(context, deps, [context.caller.actor.id])


@TABLE.route("GET", "/v1/operator/sessions", operators=READERS, answers={200: _SESSIONS})
async def list_logins(context: RequestContext, deps: Dependencies) -> Answer:
    """List the live operator sessions, newest first."""
    caller = context.caller.operator
    return answer({"items": [operator_json(session, caller) for session in deps.operators.list()]})


@TABLE.route("DELETE", "/v1/operator/sessions", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_logins(context: RequestContext, deps: Dependencies) -> Answer:
    """End every operator session but the caller's own."""
    others = [session.id for session in deps.operators.list() if session.id != context.caller.actor.id]
    return await _end(context, deps, others)


@TABLE.route("DELETE", "/v1/operator/sessions/<session_id>", operators=Who.OPERATOR, answers={200: _ENDED})
async def end_login(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """End one operator session.

    :raises NotFound: if there is no such session.
    """
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
    body=made_of({}, {"typed": BOOLEAN, "adds_passkey": BOOLEAN}),
    answers={200: made_of({"code": TEXT})},
)
async def hand_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Create a code that logs in one browser within one minute. With C{typed}, a short code, valid for two minutes.

    With C{adds_passkey}, the browser's page makes a passkey before it shows its two words.

    :raises Forbidden: if the caller is a browser.
    :raises Unauthorized: if the caller's login has ended.
    """
    typed, adds_passkey = (context.body.get(name) is True for name in ("typed", "adds_passkey"))
    return answer({"code": deps.operators.hand_over(_terminal(context), typed, adds_passkey)})


@TABLE.route("GET", "/v1/operator/handover", operators=Who.OPERATOR, answers={200: _HANDED_OVER})
async def handed_over(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the state of the caller's last hand-over.

    :raises NotFound: if nothing was handed over.
    :raises Forbidden: if the caller is a browser.
    """
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
    """Log in the browser that shows these two words. Wrong words end the hand-over.

    The login, or that the words were wrong, is recorded.

    :raises Forbidden: if the words are wrong, or the caller is a browser.
    :raises Conflict: if no browser waits for words.
    :raises Unauthorized: if the caller's login has ended.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    actor, known = context.caller.actor, {session.id for session in deps.operators.list()}
    try:
        session = deps.operators.confirm(_terminal(context), str(context.body["words"]))
    except Forbidden:
        await deps.access_log.record("operator.handover_refused", actor, {"reason": HandOverState.WRONG.value})
        raise
    kind = "operator.login_raised" if session.id in known else "operator.login"
    await deps.access_log.record(kind, Actor("human", session.id), {**login_payload(deps, session), "from": actor.id})
    return answer(operator_json(session))


def _terminal(context: RequestContext) -> str:
    """Return the token of a login in a terminal.

    :raises Forbidden: if the caller is a browser, which has no token and cannot admit other browsers.
    """
    if context.caller.token is None:
        raise Forbidden("A browser cannot let another browser in: use a terminal.")
    return context.caller.token


FRESH = timedelta(minutes=15)
"""The greatest age of a login that may add a passkey."""

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_RULE = made_of({"everything": BOOLEAN, "actions": {**list_of(_NAME), "maxItems": 100}})
_PASSKEY = described(Passkey)
_BOOK = made_of({"items": list_of(_PASSKEY), "rule": _RULE, "site": {"type": ["string", "null"]}, "proposed": BOOLEAN})
_WORDS: Schema = {"type": "string", "maxLength": 256}
_ASKED = made_of({"nonce": TEXT, "options": ANY_OBJECT})


@TABLE.route("GET", "/v1/operator/passkeys", operators=READERS, answers={200: _BOOK})
async def list_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """List the passkeys, oldest first, and the rule of approvals that need one."""
    return _book(deps)


@TABLE.route("POST", "/v1/operator/passkeys/offer", operators=Who.OPERATOR, answers={200: ANY_OBJECT})
async def offer_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the options with which a page asks the browser to create a passkey.

    :raises Forbidden: if the caller is no browser that was logged in lately.
    :raises Conflict: if passkeys are unavailable.
    """
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
    """Propose the passkey that the browser created. It is added when its two words are typed in a terminal.

    The proposal is recorded. The answer has the two words.

    :raises Forbidden: if the caller is no browser that was logged in lately.
    :raises InvalidRequest: if the credential answers no offer, or is not a valid passkey of this site.
    :raises Conflict: if passkeys are unavailable, or this one is registered already.
    :raises StoreUnavailable: if it cannot be recorded.
    """
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
    """Add the proposed passkey whose page shows these two words. Wrong words discard the proposal.

    The event C{operator.passkey_added} is recorded.

    :raises Forbidden: if the words are wrong, or the caller is a browser.
    :raises Conflict: if no passkey was proposed.
    :raises VaultLocked: if the vault is not unlocked.
    :raises BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _in_terminal(context)
    key = deps.passkeys.confirm(str(context.body["words"]))
    told: dict[str, JSON] = {"id": key.id, "name": key.name, "synced": key.synced}
    public_key = deps.passkeys.key_of(key.id)
    if public_key is not None:
        told["key"] = to_json(public_key)
    await deps.access_log.record("operator.passkey_added", context.caller.actor, told)
    return answer(to_json(key))


@TABLE.route("POST", "/v1/operator/passkeys/rule", operators=Who.OPERATOR, body=_RULE, answers={200: _BOOK})
async def require_passkey(context: RequestContext, deps: Dependencies) -> Answer:
    """Set the rule of approvals that need a passkey. A new rule must not require less.

    The event C{operator.passkey_required} is recorded.

    :raises Forbidden: if the caller is a browser.
    :raises Conflict: if there is no passkey, or the current rule requires more.
    :raises VaultLocked: if the vault is not unlocked.
    :raises BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _in_terminal(context)
    names = cast("list[str]", context.body["actions"])
    rule = PasskeyRule(context.body["everything"] is True, tuple(dict.fromkeys(names)))
    deps.passkeys.require(rule)
    await deps.access_log.record("operator.passkey_required", context.caller.actor, to_json(rule))
    return _book(deps)


@TABLE.route("DELETE", "/v1/operator/passkeys", operators=Who.OPERATOR, answers={200: _BOOK})
async def reset_passkeys(context: RequestContext, deps: Dependencies) -> Answer:
    """Remove every passkey and the rule that requires passkeys. Return the rest: no passkey, and no rule.

    The event C{operator.passkey_reset} is recorded.

    :raises Forbidden: if the caller is a browser.
    :raises VaultLocked: if the vault is not unlocked.
    :raises BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _in_terminal(context)
    ids: list[JSON] = [key.id for key in deps.passkeys.passkeys()]
    deps.passkeys.reset()
    await deps.access_log.record("operator.passkey_reset", context.caller.actor, {"ids": ids})
    return _book(deps)


@TABLE.route("DELETE", "/v1/operator/passkeys/<passkey_id>", operators=Who.OPERATOR, answers={200: _PASSKEY})
async def remove_passkey(context: RequestContext, deps: Dependencies, passkey_id: str) -> Answer:
    """Remove one passkey, such as that of a lost phone. The rule stays.

    The event C{operator.passkey_removed} is recorded.

    :raises Forbidden: if the caller is a browser.
    :raises NotFound: if there is no such passkey.
    :raises VaultLocked: if the vault is not unlocked.
    :raises BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _in_terminal(context)
    gone = deps.passkeys.remove(passkey_id)
    await deps.access_log.record(
        "operator.passkey_removed", context.caller.actor, {"ids": [gone.id], "name": gone.name}
    )
    return answer(to_json(gone))


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/passkey",
    operators=Who.OPERATOR,
    body=DECISION,
    answers={200: _ASKED},
)
async def ask_passkey(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Return the options with which the browser asks a passkey to sign exactly this decision.

    :raises Conflict: if passkeys are unavailable, or there is none for the present address.
    :raises InvalidRequest: if a time in the decision is not valid.
    """
    nonce, options = deps.approvers.ask(approval_id, read_decision(context), read_wish(context))
    return answer({"nonce": nonce, "options": dict(options)})


@TABLE.route(
    "POST",
    "/v1/operator/passkeys/ask",
    operators=Who.OPERATOR,
    answers={200: made_of({"instance": TEXT, "nonce": TEXT, "options": ANY_OBJECT})},
)
async def ask_for_list(context: RequestContext, deps: Dependencies) -> Answer:
    """Return what a page needs so that a passkey signs a list of decisions with one touch, within one minute.

    The page makes the text of the list (ADR 78), and adds its SHA-256 to the options as the challenge.

    :raises Conflict: if passkeys are unavailable, or there is none for the present address.
    """
    instance, nonce, options = deps.approvers.offer()
    return answer({"instance": instance, "nonce": nonce, "options": dict(options)})


@TABLE.route("POST", "/v1/operator/raise/ask", operators=Who.WATCHER, answers={200: _ASKED})
async def ask_raise(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the options with which the caller's page asks a passkey to let its lapsed login decide again.

    :raises VaultLocked: if the vault is not unlocked.
    :raises Conflict: if the login may decide already, is not a browser's at this address, or has no passkey.
    """
    nonce, options = deps.approvers.ask_raise(deps.operators.find_lapsed(context.caller.actor.id))
    return answer({"nonce": nonce, "options": dict(options)})


@TABLE.route(
    "POST",
    "/v1/operator/raise",
    # guard of signing: only a page that watches is raised by a touch -> api.test_raise.RaiseTests.test_others,
    #    instead Who.WATCHER | Who.OPERATOR | Who.LOCAL
    operators=Who.WATCHER,
    body=made_of({"nonce": TEXT, "credential": ANY_OBJECT}),
    answers={200: ref("OperatorSession")},
)
async def raise_login(context: RequestContext, deps: Dependencies) -> Answer:
    """Allow the caller's lapsed login to decide again, after a passkey signed the login, the page's key and nonce.

    The login, or its refusal, is recorded.

    :raises VaultLocked: if the vault is not unlocked.
    :raises Conflict: if the login may decide already, or is not a browser's at this address.
    :raises Forbidden: if no passkey signed it.
    :raises BindingFailed, StoreUnavailable: if it cannot be recorded.
    """
    actor = context.caller.actor
    lapsed = deps.operators.find_lapsed(actor.id)
    credential = cast("Mapping[str, JSON]", context.body["credential"])
    try:
        passkey = deps.approvers.check_raise(lapsed, str(context.body["nonce"]), credential)
    except Forbidden:
        await deps.access_log.refuse()
        raise
    session = deps.operators.raise_touched(lapsed)
    try:
        payload = {**login_payload(deps, session), "passkey": passkey}
        await deps.access_log.record("operator.login_raised", actor, payload)
    except BaseException:
        # guard of signing: a raise that is not on record does not count -> api.test_raise.RaiseTests.test_unrecorded
        deps.operators.restrict(session.id)
        raise
    return answer(operator_json(session, session))


def _book(deps: Dependencies) -> Answer:
    rule = deps.passkeys.passkey_rule()
    items: list[JSON] = [to_json(key) for key in deps.passkeys.passkeys()]
    site, proposed = deps.passkeys.site(), deps.passkeys.is_proposed()
    return answer({"items": items, "rule": to_json(rule), "site": site, "proposed": proposed})


def _in_fresh_browser(context: RequestContext, deps: Dependencies) -> None:
    caller = context.caller.operator
    if caller is None or not caller.browser:
        raise Forbidden("A passkey is made in a browser: run `aileron passkey add`.")
    if deps.now() - caller.proved_at > FRESH:
        raise Forbidden("This login is too old for that: run `aileron passkey add`.")


def _in_terminal(context: RequestContext) -> None:
    """Require a login by a typed passphrase in a terminal.

    :raises Forbidden: if the caller is a browser, whose pages cannot change the rule of passkeys.
    """
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
