"""The vault's state, and which credential is bound to which connector.

A secret comes in here once and never goes out.  Opening the vault is no route: nobody sends a passphrase here.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.logger import Logger

from aileron.api._endpoint import Parts, Schema, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import INTEGER, TEXT, VAULT_STATE, list_of, made_of, ref
from aileron.credentials import DEFAULT_KIND
from aileron.errors import Conflict, NotFound, StoreUnavailable
from aileron.values import JSON, Binding, Event, NewBinding, Scope

from .scopes import Target, bound_json, target_now, trusted_target

TABLE = Table()

LOCK_WITHIN_SECONDS = 10.0
TELL_WITHIN_SECONDS = 5.0

_log = Logger()

_STATE = made_of({"state": VAULT_STATE})


@TABLE.route("GET", "/v1/vault/status", agents=Who.LAUNCH | Who.AGENT, operators=Who.ANYONE, answers={200: _STATE})
async def vault_status(visit: Visit, parts: Parts) -> Answer:
    """Whether the vault is missing, locked, unlocked or lost."""
    return answer({"state": parts.vault.state().value})


@TABLE.route("POST", "/v1/vault/lock", operators=Who.OPERATOR, answers={200: _STATE})
async def lock_vault(visit: Visit, parts: Parts) -> Answer:
    """Lock the vault, once what runs has ended or ten seconds are over, and end every operator session."""
    holding = Deferred.fromCoroutine(parts.limits.hold())
    try:
        await holding.addTimeout(LOCK_WITHIN_SECONDS, parts.clock)
    except Overdue:
        _log.info("the vault is locked while something still runs")
    finally:  # in any case: also if the client does not wait
        await _hand_over(parts)
    return answer({"state": parts.vault.state().value})


async def _hand_over(parts: Parts) -> None:
    """Lock, whatever becomes of the last signature."""
    telling = Deferred.fromCoroutine(parts.signer.tell_locked())
    try:
        await telling.addTimeout(TELL_WITHIN_SECONDS, parts.clock)
    except Exception:  # noqa: BLE001 - the vault is locked in any case
        _log.failure("the record could not be handed over")
    finally:
        parts.vault.lock()


_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"], "maxLength": 2048}
_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 8192}
_NEW = made_of(
    {"service": _NAME, "connector": _NAME, "secret": _SECRET},
    {"kind": _NAME, "identity": _NAME, "base_url": _TEXT_OR_NULL, "account": _TEXT_OR_NULL},
)


@TABLE.route(
    "GET",
    "/v1/bindings",
    operators=Who.OPERATOR,
    query=made_of({}, {"connector": TEXT}),
    answers={200: made_of({"items": list_of(ref("Binding"))})},
)
async def list_bindings(visit: Visit, parts: Parts) -> Answer:
    """Every binding, or those of one connector, without secrets; works while locked."""
    connector = visit.text("connector")
    found = parts.bindings.list() if connector is None else parts.bindings.for_connector(connector)
    flags = await parts.flags.all()
    return answer({"items": [bound_json(parts, each, flags.get(each.name)) for each in found]})


@TABLE.route(
    "POST",
    "/v1/bindings/target",
    operators=Who.OPERATOR,
    body=made_of({"connector": _NAME}, {"base_url": _TEXT_OR_NULL}),
    answers={200: made_of({"connector": TEXT, "scope": {"anyOf": [ref("Scope"), {"type": "null"}]}})},
)
async def show_target(visit: Visit, parts: Parts) -> Answer:
    """For what a credential would be sealed, were it bound now; C{null}: the connector wants none."""
    connector = str(visit.body["connector"])
    target = await trusted_target(parts, connector, visit.text("base_url"))
    return answer({"connector": connector, "scope": _json(target.scope)})


@TABLE.route("GET", "/v1/bindings/<path:name>", operators=Who.OPERATOR, answers={200: ref("Binding")})
async def show_binding(visit: Visit, parts: Parts, name: str) -> Answer:
    """One binding, without its secret."""
    return await _shown(parts, _present(parts, name))


@TABLE.route("POST", "/v1/bindings/setup", operators=Who.OPERATOR, body=_NEW, answers={201: ref("Binding")})
async def set_up_binding(visit: Visit, parts: Parts) -> Answer:
    """Bind a credential to a connector, for its scope as it stands now."""
    connector = str(visit.body["connector"])
    target = await trusted_target(parts, connector, visit.text("base_url"))
    new = NewBinding(
        kind=visit.text("kind") or DEFAULT_KIND,
        service=str(visit.body["service"]),
        identity=visit.text("identity") or "default",
        connector=connector,
        secret=str(visit.body["secret"]).encode("utf-8"),
        base_url=target.base_url,
        account=visit.text("account"),
        scope=target.scope,
    )
    binding = await parts.bindings.set_up(new)
    try:
        await parts.audit.append(_event(visit, parts, "binding.created", binding))
    except StoreUnavailable:
        await parts.bindings.revoke(binding.name)  # no credential is bound that the record does not know
        raise
    return await _shown(parts, binding, 201)


@TABLE.route(
    "POST",
    "/v1/bindings/<path:name>/rebind",
    operators=Who.OPERATOR,
    body=made_of({"revision": INTEGER}),
    answers={200: ref("Binding")},
)
async def rebind(visit: Visit, parts: Parts, name: str) -> Answer:
    """Seal a credential anew for what its connector asks for now; 409 if that is not what was shown."""
    binding = _present(parts, name)
    if binding.revision != visit.body["revision"]:
        raise Conflict("The binding was changed meanwhile: look again.", {"revision": binding.revision})
    target = await _target_of(parts, binding)
    if target.scope is None or target.scope == binding.scope:
        raise Conflict("There is nothing to rebind: the binding is what its connector asks for.")
    event = _event(visit, parts, "binding.rebound", binding, before=_json(binding.scope), now=_json(target.scope))
    await parts.audit.append(event)
    return await _shown(parts, await parts.bindings.rebind(name, target.scope, target.base_url))


@TABLE.route("DELETE", "/v1/bindings/<path:name>", operators=Who.OPERATOR, answers={200: ref("Binding")})
async def revoke_binding(visit: Visit, parts: Parts, name: str) -> Answer:
    """Remove a binding and its secret."""
    binding = await parts.bindings.revoke(name)
    await parts.audit.append(_event(visit, parts, "binding.revoked", binding))
    return await _shown(parts, binding)


def _present(parts: Parts, name: str) -> Binding:
    binding = parts.bindings.get(name)
    if binding is None:
        raise NotFound("There is no such binding.")
    return binding


async def _shown(parts: Parts, binding: Binding, status: int = 200) -> Answer:
    flags = await parts.flags.all()
    return answer(bound_json(parts, binding, flags.get(binding.name)), status)


async def _target_of(parts: Parts, binding: Binding) -> Target:
    """What it would be sealed for; its own address stays, where the connector still lets it have one."""
    now = target_now(parts, binding)
    return await trusted_target(parts, binding.connector, None if now is None else now.base_url)


def _json(scope: Scope | None) -> JSON:
    return None if scope is None else scope.as_json()


def _event(visit: Visit, parts: Parts, kind: str, binding: Binding, **more: JSON) -> Event:
    payload: dict[str, JSON] = {
        "binding": binding.name,
        "revision": binding.revision,
        "base_url": binding.base_url,
        **more,
    }
    return Event(parts.ids(), kind, parts.now(), visit.caller.actor, payload, connector=binding.connector)
