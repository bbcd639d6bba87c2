"""The operator's routes about the phone's pages: their state and certificate, and the pairing of phones."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import BOOLEAN, MOMENT, TEXT, list_of, made_of, or_null
from aileron.api.shapes.values import moment, to_json
from aileron.base.json import JSON
from aileron.model.errors import Forbidden, NotFound
from aileron.model.sessions import HandOverState

from .running import RunningPhone
from .values import PhoneTls

TABLE = EndpointTable()

STATUS = made_of(
    {
        "url": TEXT,
        "tls": {"enum": [each.value for each in PhoneTls]},
        "problem": or_null(TEXT),
        "certificate_ends_at": or_null(MOMENT),
    }
)
_CERTIFICATE = made_of({"pem": TEXT, "fingerprint": TEXT, "own": BOOLEAN, "ends_at": MOMENT})
_PHONE = made_of({"id": TEXT, "name": TEXT, "made_at": MOMENT, "synced": or_null(BOOLEAN)})
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
_PEM: Schema = {"type": "string", "minLength": 1, "maxLength": 64 * 1024}
_STATE = made_of({"state": {"enum": [state.value for state in HandOverState]}, "words": BOOLEAN})


@TABLE.route("GET", "/v1/phone", operators=READERS, answers={200: made_of({"items": list_of(_PHONE), "phone": STATUS})})
async def list_phones(context: RequestContext, deps: Dependencies) -> Answer:
    """List the paired phones, oldest first, and the state of the public name.

    :raises NotFound: if there is no public name.
    """
    running = _running(deps)
    items: list[JSON] = [
        {"id": each.id, "name": each.name, "made_at": moment(each.made_at), "synced": each.synced}
        for each in running.list_passkeys()
    ]
    return answer({"items": items, **running.status()})


@TABLE.route("GET", "/v1/phone/certificate", operators=READERS, answers={200: _CERTIFICATE})
async def show_certificate(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the certificate that a phone or a proxy must trust: that of our authority, or the configured one."""
    return _certificate(_running(deps))


@TABLE.route(
    "POST",
    "/v1/phone/certificate",
    operators=Who.OPERATOR,
    body=made_of({}, {"certificate": _PEM, "key": _PEM}),
    answers={200: _CERTIFICATE},
)
async def make_certificate(context: RequestContext, deps: Dependencies) -> Answer:
    """Make the certificate of the public name if there is none, or store the given one with its key in the vault.

    :raises Forbidden: if a browser's page asks.
    :raises NotFound: if there is no public name.
    :raises InvalidRequest: if the certificate or key is not valid.
    :raises VaultLocked, BindingFailed: if the certificate cannot be stored or decrypted.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    _in_terminal(context)
    running = _running(deps)
    chain, key = context.text("certificate"), context.text("key")
    given = chain is not None and key is not None
    certificate = await (running.store.put(chain, key) if chain and key else running.store.make())
    running.listener.use(certificate, "")
    told: dict[str, JSON] = {"fingerprint": certificate.fingerprint(), "given": given}
    await deps.access_log.record("phone.certificate_set", context.caller.actor, told)
    return _certificate(running)


@TABLE.route(
    "POST",
    "/v1/phone/pairing",
    operators=Who.OPERATOR,
    body=made_of({"name": _NAME}),
    answers={200: made_of({"code": TEXT, "url": TEXT})},
)
async def begin_pairing(context: RequestContext, deps: Dependencies) -> Answer:
    """Mint the code with which one phone is paired, once, within two minutes.

    :raises Forbidden: if a browser's page asks, a phone has this name, or nobody is served now.
    :raises NotFound: if there is no public name.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    _in_terminal(context)
    running, name = _running(deps), str(context.body["name"])
    if name in {each.name for each in running.list_passkeys()}:
        raise Forbidden(f"There is a phone {name} already. Choose another name, or remove it first.")
    if not running.listener.is_open:
        raise Forbidden(f"Nobody is served at {running.settings.public_url}: {running.listener.problem or 'locked'}")
    code = running.pairings.begin(context.caller.actor.id, name)
    await deps.access_log.record("phone.pairing_begun", context.caller.actor, {"name": name})
    return answer({"code": code, "url": running.settings.public_url})


@TABLE.route("GET", "/v1/phone/pairing", operators=Who.OPERATOR, answers={200: _STATE})
async def show_pairing(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the state of the caller's pairing, and whether the phone shows words.

    :raises NotFound: if the caller has no pairing, or there is no public name.
    """
    found = _running(deps).pairings.state(context.caller.actor.id)
    if found is None:
        raise NotFound("No phone is being paired.")
    return answer({"state": found[0].value, "words": found[1]})


@TABLE.route(
    "POST",
    "/v1/phone/pairing/confirm",
    operators=Who.OPERATOR,
    body=made_of({"words": {"type": "string", "maxLength": 256}}),
    answers={200: _PHONE},
)
async def confirm_pairing(context: RequestContext, deps: Dependencies) -> Answer:
    """Pair the phone that shows these two words. Wrong words end the pairing.

    :raises Forbidden: if a browser's page asks, or the words are wrong.
    :raises Conflict: if no pairing is under way, or the phone shows no words.
    :raises NotFound: if there is no public name.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    _in_terminal(context)
    running, actor = _running(deps), context.caller.actor
    try:
        key = running.pairings.confirm(actor.id, str(context.body["words"]))
    except Forbidden:
        await deps.access_log.record("phone.pairing_refused", actor, {"reason": HandOverState.WRONG.value})
        raise
    told: dict[str, JSON] = {"id": key.id, "name": key.name, "synced": key.synced}
    public_key = deps.passkeys.key_of(key.id)
    if public_key is not None:
        told["key"] = to_json(public_key)
    await deps.access_log.record("operator.passkey_added", actor, told)
    return answer({"id": key.id, "name": key.name, "made_at": moment(key.made_at), "synced": key.synced})


@TABLE.route("DELETE", "/v1/phone/<phone_id>", operators=Who.OPERATOR, answers={200: made_of({"id": TEXT})})
async def remove_phone(context: RequestContext, deps: Dependencies, phone_id: str) -> Answer:
    """Remove a phone's passkey. Its logins end at once.

    :raises Forbidden: if a browser's page asks.
    :raises NotFound: if there is no such phone, or no public name.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    _in_terminal(context)
    running = _running(deps)
    if phone_id not in {each.id for each in running.list_passkeys()}:
        raise NotFound("There is no such phone.")
    gone = running.passkeys.remove(phone_id)
    for session in deps.operators.list():
        if session.passkey == phone_id:
            deps.operators.log_out(session.id)
    await deps.access_log.record(
        "operator.passkey_removed", context.caller.actor, {"ids": [gone.id], "name": gone.name}
    )
    return answer({"id": phone_id})


def _certificate(running: RunningPhone) -> Answer:
    found = running.listener.certificate
    if found is None:
        raise NotFound(running.listener.problem or "There is no certificate.")
    shown: dict[str, JSON] = {"pem": found.pem(), "fingerprint": found.fingerprint(), "own": found.is_own}
    return answer({**shown, "ends_at": moment(found.ends_at)})


def _in_terminal(context: RequestContext) -> None:
    """Require a login by a typed passphrase in a terminal.

    :raises Forbidden: if a browser's page asks.
    """
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")


def _running(deps: Dependencies) -> RunningPhone:
    found = deps.features.find(RunningPhone)
    if found is None:
        raise NotFound("No public name is configured. Add phone.public_url to config.yaml.")
    return found
