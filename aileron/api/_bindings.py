"""Which credential is bound to which connector.  A secret comes in here once and never goes out."""

from __future__ import annotations

from aileron.errors import NotFound, StoreUnavailable
from aileron.values import JSON, Binding, Event, NewBinding

from ._endpoint import Parts, Schema, Table, Visit
from ._faults import Answer, answer
from ._guard import Who
from ._schemas import TEXT, list_of, made_of, ref
from ._shapes import binding_json

TABLE = Table()

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
    return answer({"items": [binding_json(binding) for binding in found]})


@TABLE.route("GET", "/v1/bindings/<path:name>", operators=Who.OPERATOR, answers={200: ref("Binding")})
async def show_binding(visit: Visit, parts: Parts, name: str) -> Answer:
    """One binding, without its secret."""
    binding = parts.bindings.get(name)
    if binding is None:
        raise NotFound("There is no such binding.")
    return answer(binding_json(binding))


@TABLE.route("POST", "/v1/bindings/setup", operators=Who.OPERATOR, body=_NEW, answers={201: ref("Binding")})
async def set_up_binding(visit: Visit, parts: Parts) -> Answer:
    """Bind a credential to a connector."""
    new = NewBinding(
        kind=visit.text("kind") or "api_key",
        service=str(visit.body["service"]),
        identity=visit.text("identity") or "default",
        connector=str(visit.body["connector"]),
        secret=str(visit.body["secret"]).encode("utf-8"),
        base_url=visit.text("base_url"),
        account=visit.text("account"),
    )
    binding = await parts.bindings.set_up(new)
    try:
        await parts.audit.append(_event(visit, parts, "binding.created", binding))
    except StoreUnavailable:
        await parts.bindings.revoke(binding.name)  # no credential is bound that the record does not know
        raise
    return answer(binding_json(binding), 201)


@TABLE.route("DELETE", "/v1/bindings/<path:name>", operators=Who.OPERATOR, answers={200: ref("Binding")})
async def revoke_binding(visit: Visit, parts: Parts, name: str) -> Answer:
    """Remove a binding and its secret."""
    binding = await parts.bindings.revoke(name)
    await parts.audit.append(_event(visit, parts, "binding.revoked", binding))
    return answer(binding_json(binding))


def _event(visit: Visit, parts: Parts, kind: str, binding: Binding) -> Event:
    payload: dict[str, JSON] = {"binding": binding.name, "revision": binding.revision, "base_url": binding.base_url}
    return Event(parts.ids(), kind, parts.now(), visit.caller.actor, payload, connector=binding.connector)
