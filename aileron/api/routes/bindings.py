"""The routes of the vault's state, and of bindings, which connect a credential to a connector.

A secret is received here once and never returned. No route unlocks the vault, because passphrases are not sent to the
daemon.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.logger import Logger

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import INTEGER, TEXT, VAULT_STATE, list_of, made_of, or_null, ref
from aileron.api.shapes.values import optional_json, to_json
from aileron.base.json import JSON
from aileron.model.audit import Event
from aileron.model.errors import Conflict, NotFound, StoreUnavailable
from aileron.model.people import Owner
from aileron.model.vault import Binding, NewBinding

from .scopes import Target, binding_payload, current_target, needed_scopes, trusted_target, wrong

TABLE = EndpointTable()

LOCK_WITHIN_SECONDS = 10.0
TELL_WITHIN_SECONDS = 5.0

_log = Logger()

_STATE = made_of({"state": VAULT_STATE})


@TABLE.route("GET", "/v1/vault/status", agents=Who.LAUNCH | Who.AGENT, operators=Who.ANYONE, answers={200: _STATE})
async def vault_status(context: RequestContext, deps: Dependencies) -> Answer:
    """Return whether the vault is missing, locked, unlocked or lost."""
    return answer({"state": deps.vault.state().value})


@TABLE.route("POST", "/v1/vault/lock", operators=READERS, answers={200: _STATE})
async def lock_vault(context: RequestContext, deps: Dependencies) -> Answer:
    """Lock the vault when running effects have ended, at most ten seconds later, and end every operator session.

    That the vault locks is recorded before.
    """
    holding = Deferred.fromCoroutine(deps.limits.hold())
    try:
        await holding.addTimeout(LOCK_WITHIN_SECONDS, deps.clock)
    except Overdue:
        _log.info("the vault is locked while something still runs")
    finally:  # even if the client disconnects
        await _record_and_lock(deps)
    return answer({"state": deps.vault.state().value})


async def _record_and_lock(deps: Dependencies) -> None:
    """Record that the vault is about to lock, then lock it.

    If the event cannot be recorded, or not in time, log that and lock the vault nevertheless.
    """
    telling = Deferred.fromCoroutine(deps.signer.record_lock())
    try:
        await telling.addTimeout(TELL_WITHIN_SECONDS, deps.clock)
    except Exception:  # noqa: BLE001 - the vault is locked in any case
        _log.failure("the record could not be handed over")
    finally:
        deps.vault.lock()


_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"], "maxLength": 2048}
_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 32768}
_VARIABLES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": 64},
    "maxProperties": 20,
}
_NEW = made_of(
    {"service": _NAME, "connector": _NAME, "secret": _SECRET},
    {
        "kind": _NAME,
        "identity": _NAME,
        "base_url": _TEXT_OR_NULL,
        "variables": _VARIABLES,
        "account": _TEXT_OR_NULL,
        "owner": {**_NAME, "description": "the account whose agents alone may use it; without it, all agents may"},
    },
)


@TABLE.route(
    "GET",
    "/v1/bindings",
    operators=READERS,
    query=made_of({}, {"connector": TEXT}),
    answers={200: made_of({"items": list_of(ref("Binding"))})},
)
async def list_bindings(context: RequestContext, deps: Dependencies) -> Answer:
    """List all bindings, or the bindings of one connector, without secrets. It works while the vault is locked."""
    connector = context.text("connector")
    found = deps.bindings.list() if connector is None else deps.bindings.for_connector(connector)
    flags = await deps.flags.all()
    return answer({"items": [binding_payload(deps, each, flags.get(each.name)) for each in found]})


@TABLE.route(
    "POST",
    "/v1/bindings/target",
    operators=Who.OPERATOR,
    body=made_of({"connector": _NAME}, {"base_url": _TEXT_OR_NULL, "variables": _VARIABLES}),
    answers={200: made_of({"connector": TEXT, "scope": or_null(ref("Scope")), "scopes": or_null(list_of(TEXT))})},
)
async def show_target(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the scope that a new credential would be sealed for, or C{null} if the connector needs no credential.

    The scope is what the credential may be used for: the connector, its base URL and its rules.
    """
    connector = str(context.body["connector"])
    target = await _asked_target(context, deps)
    scopes = needed_scopes(deps, connector)
    needed: JSON = None if scopes is None else list(scopes)
    return answer({"connector": connector, "scope": optional_json(target.scope), "scopes": needed})


async def _asked_target(context: RequestContext, deps: Dependencies) -> Target:
    given = context.body.get("variables")
    variables = {name: str(text) for name, text in given.items()} if isinstance(given, dict) else {}
    return await trusted_target(deps, str(context.body["connector"]), context.text("base_url"), variables)


@TABLE.route("GET", "/v1/bindings/<path:name>", operators=READERS, answers={200: ref("Binding")})
async def show_binding(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Return one binding, without its secret.

    :raises NotFound: if there is no such binding.
    """
    return await _to_payload(deps, _present(deps, name))


@TABLE.route("POST", "/v1/bindings/setup", operators=Who.OPERATOR, body=_NEW, answers={201: ref("Binding")})
async def set_up_binding(context: RequestContext, deps: Dependencies) -> Answer:
    """Bind a credential to a connector, for the connector's current scope.

    The event C{binding.created} is recorded. If that fails, the binding is removed again.

    :raises InvalidRequest: if the kind of credential is not the connector's, or the target is not allowed.
    :raises Conflict: if the connector's file is not trusted.
    :raises VaultLocked: if the vault is not unlocked.
    :raises StoreUnavailable: if the vault or the audit log cannot be written.
    """
    connector = str(context.body["connector"])
    target = await _asked_target(context, deps)
    kind = context.text("kind") or target.kind
    if kind != target.kind and target.scope is not None:
        raise wrong("/kind", f"must be {target.kind}, which the connector asks for")
    owner = await _find_owner(context, deps, connector)
    new = NewBinding(
        kind=kind,
        service=str(context.body["service"]),
        identity=context.text("identity") or ("default" if owner is None else owner.name),
        connector=connector,
        secret=str(context.body["secret"]).encode("utf-8"),
        base_url=target.base_url,
        account=context.text("account"),
        scope=target.scope,
        owner=owner,
    )
    binding = await deps.bindings.set_up(new)
    try:
        await deps.audit.append(_event(context, deps, "binding.created", binding))
    except StoreUnavailable:
        await deps.bindings.revoke(binding.name)  # every bound credential is on record
        raise
    return await _to_payload(deps, binding, 201)


async def _find_owner(context: RequestContext, deps: Dependencies, connector: str) -> Owner | None:
    """Return the account that the body of a request names as the owner of a credential, or None if it names none.

    :raises InvalidRequest: if there is no such account, or the target is no connector.
    """
    name = context.text("owner")
    if name is None:
        return None
    if deps.connectors.get(connector) is None:
        raise wrong("/owner", "goes with a connector only: this credential is used for everybody")
    owner = await deps.features.find_owner(name)
    if owner is None:
        raise wrong("/owner", "must be the name of an account")
    return owner


@TABLE.route(
    "POST",
    "/v1/bindings/<path:name>/rebind",
    operators=Who.OPERATOR,
    body=made_of({"revision": INTEGER}),
    answers={200: ref("Binding")},
)
async def rebind(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Seal a credential for its connector's current scope; 409 if the binding has changed since it was shown.

    The event C{binding.rebound} is recorded first.

    :raises NotFound: if there is no such binding.
    :raises Conflict: also if the scope is already the current one, or the connector's file is not trusted.
    :raises InvalidRequest: if the connector takes no credential, or not at this base URL.
    :raises VaultLocked: if the vault is not unlocked.
    :raises StoreUnavailable: if the vault or the audit log cannot be written.
    """
    binding = _present(deps, name)
    if binding.revision != context.body["revision"]:
        raise Conflict("The binding was changed meanwhile: look again.", {"revision": binding.revision})
    now = current_target(deps, binding)  # the binding's own address stays if the connector still allows it
    kept = (None, {}) if now is None else (now.base_url, now.variables)
    target = await trusted_target(deps, binding.connector, *kept)
    if target.scope is None or target.scope == binding.scope:
        raise Conflict("There is nothing to rebind: the binding is what its connector asks for.")
    scopes = {"before": optional_json(binding.scope), "now": optional_json(target.scope)}
    await deps.audit.append(_event(context, deps, "binding.rebound", binding, **scopes))
    return await _to_payload(deps, await deps.bindings.rebind(name, target.scope, target.base_url))


@TABLE.route(
    "POST",
    "/v1/bindings/<path:name>/replace",
    operators=Who.OPERATOR,
    body=made_of({"secret": _SECRET}),
    answers={200: ref("Binding")},
)
async def replace_secret(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Replace the secret of a binding. Approved runs that wait for the binding continue.

    The event C{binding.replaced} is recorded first.

    :raises NotFound: if there is no such binding.
    :raises InvalidRequest: if the secret is not allowed for this kind of credential.
    :raises VaultLocked: if the vault is not unlocked.
    :raises StoreUnavailable: if the vault or the audit log cannot be written.
    """
    await deps.audit.append(_event(context, deps, "binding.replaced", _present(deps, name)))
    return await _to_payload(deps, await deps.bindings.replace(name, str(context.body["secret"]).encode("utf-8")))


@TABLE.route("DELETE", "/v1/bindings/<path:name>", operators=Who.OPERATOR, answers={200: ref("Binding")})
async def revoke_binding(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Remove a binding and its secret, and return the removed binding.

    The event C{binding.revoked} is recorded afterwards.

    :raises NotFound: if there is no such binding.
    :raises VaultLocked: if the vault is not unlocked.
    :raises StoreUnavailable: if the vault or the audit log cannot be written.
    """
    binding = await deps.bindings.revoke(name)
    await deps.audit.append(_event(context, deps, "binding.revoked", binding))
    return await _to_payload(deps, binding)


def _present(deps: Dependencies, name: str) -> Binding:
    binding = deps.bindings.get(name)
    if binding is None:
        raise NotFound("There is no such binding.")
    return binding


async def _to_payload(deps: Dependencies, binding: Binding, status: int = 200) -> Answer:
    flags = await deps.flags.all()
    return answer(binding_payload(deps, binding, flags.get(binding.name)), status)


def _event(context: RequestContext, deps: Dependencies, kind: str, binding: Binding, **more: JSON) -> Event:
    payload: dict[str, JSON] = {
        "binding": binding.name,
        "revision": binding.revision,
        "base_url": binding.base_url,
        **({} if binding.owner is None else {"owner": to_json(binding.owner)}),
        **more,
    }
    return Event(deps.ids(), kind, deps.now(), context.caller.actor, payload, connector=binding.connector)
