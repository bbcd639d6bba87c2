"""The routes of standing grants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema, read_moment
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import ANY, BOOLEAN, MOMENT, REASON, TEXT, list_of, made_of, ref
from aileron.api.shapes.values import new_grant_json, to_json
from aileron.base.json import JSON
from aileron.model.authority import MOST_USES, Grant, NewGrant, Predicate, PredicateKind
from aileron.model.errors import InvalidRequest
from aileron.model.runs import Approval, Decision

TABLE = EndpointTable()

_PREDICATE = made_of(
    {"argument": TEXT, "kind": {"enum": [kind.value for kind in PredicateKind]}},
    {"given": ANY},
)
NEW_GRANT: Schema = made_of(
    {"uses": {"type": "integer", "minimum": 1, "maximum": MOST_USES}, "not_after": MOMENT},
    {"predicates": {**list_of(_PREDICATE), "maxItems": 100}, "session": BOOLEAN},
)
_APPROVED_WITH = made_of(
    {"approval_id": TEXT, "digest": {"type": "string", "maxLength": 128}, "grant": NEW_GRANT}, {"reason": REASON}
)


@TABLE.route("GET", "/v1/grants", operators=READERS, answers={200: made_of({"items": list_of(ref("Grant"))})})
async def list_grants(context: RequestContext, deps: Dependencies) -> Answer:
    """List all grants, oldest first, without those that ended some days ago."""
    return answer({"items": [to_json(each) for each in await deps.grants.grants()]})


@TABLE.route("GET", "/v1/grants/<grant_id>", operators=READERS, answers={200: ref("Grant")})
async def show_grant(context: RequestContext, deps: Dependencies, grant_id: str) -> Answer:
    """Return one grant: its terms, and whether it is in force now."""
    return answer(to_json(await deps.grants.grant(grant_id)))


@TABLE.route("POST", "/v1/grants", operators=Who.OPERATOR, body=_APPROVED_WITH, answers={201: ref("Grant")})
async def make_grant(context: RequestContext, deps: Dependencies) -> Answer:
    """Approve exactly what the digest binds, and grant more like it."""
    decision = Decision(True, str(context.body["digest"]), context.caller.actor.id, context.text("reason"))
    run_id = str(context.body["approval_id"])
    _, grant = await deps.decisions.approve_and_grant(run_id, decision, read_new_grant(context))
    return answer(new_grant_json(grant), 201)


@TABLE.route("DELETE", "/v1/grants/<grant_id>", operators=Who.OPERATOR, answers={200: ref("Grant")})
async def revoke_grant(context: RequestContext, deps: Dependencies, grant_id: str) -> Answer:
    """Revoke a grant: nothing more begins by it.  Twice is safe."""
    return answer(to_json(await deps.grants.revoke_grant(grant_id, context.caller.actor)))


async def take_decision(
    context: RequestContext, deps: Dependencies, approval_id: str, decision: Decision
) -> tuple[Approval, Grant | None]:
    """Record a decision, with the grant that the body requests, if any."""
    if context.body.get("grant") is None:
        return await deps.decisions.decide(approval_id, decision), None
    if not decision.approved:
        raise InvalidRequest.listing("A denial grants nothing.", ("/grant", "goes with an approval alone"))
    return await deps.decisions.approve_and_grant(approval_id, decision, read_new_grant(context))


def read_new_grant(context: RequestContext) -> NewGrant:
    """Parse the C{grant} in the body.

    :raises InvalidRequest: its C{not_after} is not a valid date-time.
    """
    asked = cast("Mapping[str, JSON]", context.body["grant"])
    not_after = read_moment(str(asked["not_after"]), "/grant/not_after")
    predicates = cast("Sequence[Mapping[str, JSON]]", asked.get("predicates", ()))
    uses = int(cast("float", asked["uses"]))
    return NewGrant(tuple(map(_predicate, predicates)), uses, not_after, asked.get("session", True) is True)


def _predicate(asked: Mapping[str, JSON]) -> Predicate:
    return Predicate(str(asked["argument"]), PredicateKind(str(asked["kind"])), asked.get("given"))
