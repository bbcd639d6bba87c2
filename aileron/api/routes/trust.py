"""The routes for trust in files: list them, show how each differs from what was trusted, trust and distrust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from aileron.api._endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import TEXT, TRUST_KIND, list_of, made_of, ref
from aileron.api.shapes.values import trust_item_json
from aileron.values import JSON, TrustItem, TrustKind

TABLE = EndpointTable()

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 512}
_DIGEST: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
_MANY: Schema = {
    **list_of(made_of({"kind": TRUST_KIND, "name": _NAME, "digest": _DIGEST})),
    "minItems": 1,
    "maxItems": 1000,
}
_ITEMS = made_of({"items": list_of(ref("TrustItem"))})


@TABLE.route("GET", "/v1/trust", operators=Who.OPERATOR, answers={200: _ITEMS})
async def list_trust(context: RequestContext, deps: Dependencies) -> Answer:
    """Every file that can be trusted, with what to read before it is."""
    return _to_payload(await deps.trust.trust_items())


@TABLE.route("POST", "/v1/trust", operators=Who.OPERATOR, body=made_of({"items": _MANY}), answers={200: _ITEMS})
async def trust(context: RequestContext, deps: Dependencies) -> Answer:
    """Trust exactly these digests, all or none; 409 says what lies there where one is another by now."""
    return _to_payload(await deps.trust.trust(_read_wanted(context.body), context.caller.actor))


@TABLE.route(
    "DELETE",
    "/v1/trust",
    operators=Who.OPERATOR,
    body=made_of({"kind": TRUST_KIND, "name": _NAME}),
    answers={200: made_of({"kind": TRUST_KIND, "name": TEXT})},
)
async def distrust(context: RequestContext, deps: Dependencies) -> Answer:
    """Take trust back: what was trusted is inert, and what waits of it becomes stale."""
    kind, name = TrustKind(str(context.body["kind"])), str(context.body["name"])
    await deps.trust.distrust(kind, name, context.caller.actor)
    return answer({"kind": kind.value, "name": name})


def _read_wanted(body: Mapping[str, JSON]) -> Sequence[tuple[TrustKind, str, str]]:
    items = cast("Sequence[Mapping[str, str]]", body["items"])
    return [(TrustKind(item["kind"]), item["name"], item["digest"]) for item in items]


def _to_payload(items: Iterable[TrustItem]) -> Answer:
    return answer({"items": [trust_item_json(item) for item in items]})
