"""The routes of actions, connectors, and trust in their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import (
    ANY_OBJECT,
    BOOLEAN,
    DIGEST,
    INTEGER,
    LIMIT,
    TEXT,
    TEXT_OR_NULL,
    TRUST_KIND,
    WAIT,
    list_of,
    made_of,
    or_null,
    ref,
)
from aileron.api.shapes.values import ANSWERS, to_json
from aileron.base.converter import Member
from aileron.base.json import JSON
from aileron.model.actions import Offer, Offering
from aileron.model.errors import NotFound
from aileron.model.trust import TrustItem, TrustKind

TABLE = EndpointTable()

_MOST_NAMES = 100
_NAMES = made_of({"items": list_of(TEXT)})
_OFFERING = made_of(
    {
        "generation": INTEGER,
        "items": list_of(ref("Action")),
        "load_errors": list_of(ref("LoadError")),
        "takes_tool_call": {"const": True},
    }
)


@TABLE.route(
    "GET",
    "/v1/actions",
    agents=Who.AGENT,
    operators=READERS,
    query=made_of({}, {"wait": WAIT, "generation": INTEGER}),
    answers={200: _OFFERING},
)
async def list_actions(context: RequestContext, deps: Dependencies) -> Answer:
    """List the actions, to an agent those that it may use, and the files with errors.

    With C{generation} and C{wait}, wait until the list changes.

    :raises LimitExceeded: if too many requests of the caller's session wait already.
    """
    found = deps.filters.narrow(context.caller.session, await _offering(context, deps))
    offering = cast(Mapping[str, JSON], to_json(found))
    return answer({**offering, "takes_tool_call": True})


@TABLE.route("GET", "/v1/actions/<name>", agents=Who.AGENT, operators=READERS, answers={200: ref("Action")})
async def show_action(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Return one action.

    :raises NotFound: if there is no such action.
    :raises Forbidden: if the session may not use it.
    """
    offer = deps.submission.offering().offers.get(name)
    if offer is None:
        raise NotFound("There is no action of this name.")
    deps.filters.check(context.caller.session, offer)
    return answer(to_json(offer))


@TABLE.route(
    "PATCH",
    "/v1/actions/<name>",
    operators=Who.OPERATOR,
    body=made_of({"enabled": BOOLEAN}),
    answers={200: ref("Action")},
)
async def switch_action(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Switch an action on or off.

    :raises NotFound: if no loaded and trusted action has this name.
    :raises VaultLocked, StoreUnavailable: if the switch cannot be stored.
    """
    enabled = context.body["enabled"] is True
    return answer(to_json(await deps.trust.set_enabled(name, enabled, context.caller.actor)))


@TABLE.route(
    "POST",
    "/v1/actions/check",
    operators=READERS,
    body=made_of({"text": TEXT}),
    answers={200: made_of({"name": TEXT_OR_NULL, "faults": list_of(ref("LoadError"))})},
)
async def check_action(context: RequestContext, deps: Dependencies) -> Answer:
    """Check the text of an action file. Return the name that it declares, or every error with its line."""
    found = deps.action_files.check(str(context.body["text"]))
    name = None if found.action is None else found.action.name
    return answer({"name": name, "faults": [to_json(fault) for fault in found.faults]})


@TABLE.route(
    "PUT",
    "/v1/actions/<name>/file",
    operators=Who.OPERATOR,
    body=made_of({"text": TEXT, "before": or_null(DIGEST)}),
    answers={200: made_of({"name": TEXT, "digest": DIGEST})},
)
async def write_action(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Write an action's file, replacing the one with the digest C{before}, or none. The new file is not trusted.

    :raises Conflict: if the file on disk has another digest.
    :raises InvalidRequest: if the text has errors, or declares another name.
    :raises NotFound, Forbidden: if the name is invalid, or the file is a link.
    :raises StoreUnavailable: if the file cannot be written.
    """
    found = deps.action_files.write(name, str(context.body["text"]), context.text("before"))
    return answer({"name": name if found.action is None else found.action.name, "digest": found.digest})


@TABLE.route(
    "POST",
    "/v1/actions/<name>/dry-run",
    operators=READERS,
    body=made_of({}, {"args": ANY_OBJECT}),
    answers={200: made_of({"digest": DIGEST, "review": ANY_OBJECT})},
)
async def dry_run(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Show what an action, trusted or not, would send with these arguments. Nothing is sent or stored.

    :raises NotFound: if there is no such action.
    :raises InvalidRequest: if the arguments are not valid.
    :raises BindingRequired, CapabilityDenied: if a binding or capability is missing.
    """
    approval = deps.submission.dry_run(name, context.body.get("args", {})).approval
    return answer({"digest": approval.digest, "review": to_json(approval.review)})


@TABLE.route(
    "GET",
    "/v1/most-used",
    agents=Who.AGENT,
    query=made_of({}, {"limit": {**LIMIT, "maximum": _MOST_NAMES}}),
    answers={200: _NAMES},
)
async def list_most_used(context: RequestContext, deps: Dependencies) -> Answer:
    """List the names of the actions that ran most often lately, in any session, and that the agent may still use."""
    offers = _offers(context, deps)
    names = [name for name in await deps.submission.most_used(_MOST_NAMES) if name in offers]
    return answer({"items": names[: int(context.number("limit", _MOST_NAMES))]})


async def _offering(context: RequestContext, deps: Dependencies) -> Offering:
    seconds, generation = context.number("wait", 0.0), context.query.get("generation")
    if seconds > 0 and isinstance(generation, int):
        return await deps.waits.wait(context.caller.session_id, deps.submission.offering_after(generation, seconds))
    return deps.submission.offering()


def _offers(context: RequestContext, deps: Dependencies) -> Mapping[str, Offer]:
    """Return the actions that the caller may use, by name."""
    return deps.filters.narrow(context.caller.session, deps.submission.offering()).offers


ANSWERS.differ(
    Offering, offers=Member("items", write=lambda offers: [to_json(offer) for _, offer in sorted(offers.items())])
)


_CONNECTORS = made_of({"items": list_of(ref("Connector")), "problems": list_of(ref("LoadError"))})


@TABLE.route("GET", "/v1/connectors", operators=READERS, answers={200: _CONNECTORS})
async def list_connectors(context: RequestContext, deps: Dependencies) -> Answer:
    """List the connectors, and the errors of connectors that could not be loaded."""
    return answer(
        {
            "items": [to_json(connector) for connector in deps.connectors.descriptions()],
            "problems": [to_json(problem) for problem in deps.connectors.problems()],
        }
    )


_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 512}
_DIGEST: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
_MANY: Schema = {
    **list_of(made_of({"kind": TRUST_KIND, "name": _NAME, "digest": _DIGEST})),
    "minItems": 1,
    "maxItems": 1000,
}
_ITEMS = made_of({"items": list_of(ref("TrustItem"))})


@TABLE.route("GET", "/v1/trust", operators=READERS, answers={200: _ITEMS})
async def list_trust(context: RequestContext, deps: Dependencies) -> Answer:
    """List the files that can be trusted, each with its text and the changes to review.

    :raises VaultLocked: if there is no vault, or it was never unlocked in this process.
    """
    return _to_payload(await deps.trust.trust_items())


@TABLE.route("POST", "/v1/trust", operators=Who.OPERATOR, body=made_of({"items": _MANY}), answers={200: _ITEMS})
async def trust(context: RequestContext, deps: Dependencies) -> Answer:
    """Trust exactly these digests, all or none; 409 shows the files that have changed since.

    :raises Conflict: if a file has another digest now.
    :raises NotFound: if a file is not on disk.
    :raises VaultLocked, StoreUnavailable: if the trust cannot be stored.
    """
    return _to_payload(await deps.trust.trust(_read_wanted(context.body), context.caller.actor))


@TABLE.route(
    "DELETE",
    "/v1/trust",
    operators=Who.OPERATOR,
    body=made_of({"kind": TRUST_KIND, "name": _NAME}),
    answers={200: made_of({"kind": TRUST_KIND, "name": TEXT})},
)
async def distrust(context: RequestContext, deps: Dependencies) -> Answer:
    """Revoke trust in a file. It can no longer run, and its pending requests become stale.

    :raises NotFound: if the file is not trusted.
    :raises VaultLocked, StoreUnavailable: if this cannot be stored.
    """
    kind, name = TrustKind(str(context.body["kind"])), str(context.body["name"])
    await deps.trust.distrust(kind, name, context.caller.actor)
    return answer({"kind": kind.value, "name": name})


def _read_wanted(body: Mapping[str, JSON]) -> Sequence[tuple[TrustKind, str, str]]:
    items = cast("Sequence[Mapping[str, str]]", body["items"])
    return [(TrustKind(item["kind"]), item["name"], item["digest"]) for item in items]


def _to_payload(items: Iterable[TrustItem]) -> Answer:
    return answer({"items": [to_json(item) for item in items]})
