"""The routes of standing grants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from attrs import evolve

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema, read_moment
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import ANY, ANY_OBJECT, BOOLEAN, MOMENT, REASON, TEXT, list_of, made_of, ref
from aileron.api.shapes.values import new_grant_json, to_json
from aileron.base.json import JSON
from aileron.model.authority import MOST_USES, Grant, NewGrant, PredicateKind, decision_item, read_new_grant
from aileron.model.errors import InvalidRequest
from aileron.model.runs import Approval, Assertion, Decision

TABLE = EndpointTable()

_PREDICATE = made_of(
    {"argument": TEXT, "kind": {"enum": [kind.value for kind in PredicateKind]}},
    {"given": ANY},
)
NEW_GRANT: Schema = made_of(
    {"uses": {"type": "integer", "minimum": 1, "maximum": MOST_USES}, "not_after": MOMENT},
    {"predicates": {**list_of(_PREDICATE), "maxItems": 100}, "session": BOOLEAN},
)
SIGNED = made_of({"statement": TEXT}, {"signature": TEXT, "credential": ANY_OBJECT})
"""A signed text, and the signature of the login's key over it or a passkey's answer to it."""

_APPROVED_WITH = made_of(
    {"approval_id": TEXT, "digest": {"type": "string", "maxLength": 128}, "grant": NEW_GRANT},
    {"reason": REASON, "signed": SIGNED},
)


@TABLE.route("GET", "/v1/grants", operators=READERS, answers={200: made_of({"items": list_of(ref("Grant"))})})
async def list_grants(context: RequestContext, deps: Dependencies) -> Answer:
    """List all grants, oldest first, without those that ended some days ago.

    :raises VaultLocked: if the vault was never unlocked in this process.
    """
    return answer({"items": [to_json(each) for each in await deps.grants.grants()]})


@TABLE.route("GET", "/v1/grants/<grant_id>", operators=READERS, answers={200: ref("Grant")})
async def show_grant(context: RequestContext, deps: Dependencies, grant_id: str) -> Answer:
    """Return one grant: its terms, and whether it is in force now.

    :raises NotFound: if there is no such grant.
    :raises VaultLocked: if the vault was never unlocked in this process.
    """
    return answer(to_json(await deps.grants.grant(grant_id)))


@TABLE.route("POST", "/v1/grants", operators=Who.OPERATOR, body=_APPROVED_WITH, answers={201: ref("Grant")})
async def make_grant(context: RequestContext, deps: Dependencies) -> Answer:
    """Approve the request with this digest, and grant similar calls.

    :raises InvalidRequest: if there is no grant in the body, or it is not valid.
    :raises NotFound: if there is no such approval.
    :raises ApprovalStale: if the digest is not the present one.
    :raises Conflict: if the request is not pending any more.
    :raises Forbidden: if the signature is missing or not valid.
    :raises VaultLocked, StoreUnavailable: if the grant or the decision cannot be stored.
    """
    caller, reason = context.caller, context.text("reason")
    decision = Decision(True, str(context.body["digest"]), caller.actor.id, reason, account=caller.account)
    run_id, wish = str(context.body["approval_id"]), read_wish(context)
    if wish is None:
        raise InvalidRequest.listing("A grant is missing.", ("/grant", "is required"))
    signed = sign_decision(context, deps, run_id, decision, wish)
    _, grant = await deps.decisions.approve_and_grant(run_id, signed, wish)
    return answer(new_grant_json(grant), 201)


@TABLE.route("DELETE", "/v1/grants/<grant_id>", operators=Who.OPERATOR, answers={200: ref("Grant")})
async def revoke_grant(context: RequestContext, deps: Dependencies, grant_id: str) -> Answer:
    """Revoke a grant, so that no more runs start under it. Idempotent.

    :raises NotFound: if there is no such grant.
    :raises VaultLocked, StoreUnavailable: if it cannot be stored.
    """
    return answer(to_json(await deps.grants.revoke_grant(grant_id, context.caller.actor)))


async def take_decision(
    deps: Dependencies, approval_id: str, decision: Decision, wish: NewGrant | None
) -> tuple[Approval, Grant | None]:
    """Record a decision and create the requested grant.

    :param wish: the requested grant, or None.
    :return: the decided approval, and the new grant or None if none was requested.
    :raises InvalidRequest: if a grant is requested with a denial.
    :raises NotFound: if there is no such approval.
    :raises ApprovalStale: if the digest is not the present one.
    :raises Conflict: if the request is not pending any more.
    :raises Forbidden: if the signature is missing or not valid.
    :raises Paused: if everything or the session is paused.
    :raises VaultLocked, StoreUnavailable: if the grant or the decision cannot be stored.
    """
    if wish is None:
        return await deps.decisions.decide(approval_id, decision), None
    if not decision.approved:
        raise InvalidRequest.listing("A denial grants nothing.", ("/grant", "goes with an approval alone"))
    return await deps.decisions.approve_and_grant(approval_id, decision, wish)


def read_wish(context: RequestContext) -> NewGrant | None:
    """Return the standing grant that the body of the request asks for, or None if the body has no C{grant}.

    :raises InvalidRequest: if C{not_after} is not a valid date-time.
    """
    asked = cast("Mapping[str, JSON] | None", context.body.get("grant"))
    if asked is None:
        return None
    read_moment(str(asked["not_after"]), "/grant/not_after")
    return read_new_grant(asked)


def sign_decision(
    context: RequestContext, deps: Dependencies, approval_id: str, decision: Decision, wish: NewGrant | None
) -> Decision:
    """Return the decision with the signature from the body, or unchanged if the body has none. It is not verified.

    The member C{signed} contains the signed text. With the member C{passkey}, the signed text is made here: it consists
    of this decision alone and the member's nonce.
    """
    signed, passkey = (cast("Mapping[str, Any] | None", context.body.get(name)) for name in ("signed", "passkey"))
    if signed is not None:
        signature = None if signed.get("signature") is None else str(signed["signature"])
        return evolve(decision, assertion=Assertion(str(signed["statement"]), signature, signed.get("credential")))
    if passkey is None:
        return decision
    statement = deps.approvers.write(str(passkey["nonce"]), [decision_item(approval_id, decision, wish)])
    return evolve(decision, assertion=Assertion(statement, credential=passkey["credential"]))
