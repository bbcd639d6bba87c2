"""The routes for pausing and resuming, for the operator's caps, and for lifting denials."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import BOOLEAN, INTEGER, MOMENT, REASON, TEXT, TEXT_OR_NULL, list_of, made_of, ref
from aileron.api.shapes.values import ANSWERS, approval_json, to_json
from aileron.base.converter import INLINE
from aileron.base.json import JSON
from aileron.model.actions import Cap
from aileron.model.authority import OwnCap, Pause
from aileron.model.errors import InvalidRequest, NotFound, StoreUnavailable

TABLE = EndpointTable()

_WINDOWS = {"per_hour": 3600.0, "per_day": 86_400.0}
_NAMES = {seconds: name for name, seconds in _WINDOWS.items()}
_NAME: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 64}
_MOST: Schema = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
_WHICH = {"action": _NAME, "argument": _NAME, "per_session": BOOLEAN}
_CAP = made_of(
    {
        "action": {**TEXT_OR_NULL, "description": "null: all actions together"},
        "argument": {**TEXT_OR_NULL, "description": "counted for each of its values apart"},
        "per_session": BOOLEAN,
        "window": {"enum": list(_WINDOWS)},
        "most": INTEGER,
        "set_at": MOMENT,
        "set_by": TEXT,
    }
)
_CAPS = made_of({"items": list_of(_CAP)})


@TABLE.route(
    "POST",
    "/v1/pause",
    agents=Who.AGENT,
    operators=READERS,
    body=made_of({}, {"reason": REASON, "session": _NAME}),
    answers={
        200: made_of({"pause": ref("Pause"), "under_way": list_of(ref("Run")), "saved": BOOLEAN, "listed": BOOLEAN})
    },
)
async def pause(context: RequestContext, deps: Dependencies) -> Answer:
    """Pause all runs, or the runs of one session (for an agent: its own). Executing runs continue and are listed.

    It applies even if the database cannot be read or written.

    :raises NotFound: if there is no such session, or it is not the caller's.
    :raises LimitExceeded: if an agent pauses too often.
    """
    halt = await deps.limits.pause(await _session(context, deps), context.text("reason"), context.caller.actor)
    return answer(to_json(halt))


@TABLE.route(
    "POST",
    "/v1/resume",
    operators=Who.OPERATOR,
    body=made_of({}, {"session": _NAME}),
    answers={200: made_of({"asked_anew": list_of(ref("Run"))})},
)
async def resume(context: RequestContext, deps: Dependencies) -> Answer:
    """Lift a pause. Approved runs that had not started need a new approval each.

    These runs are returned.

    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. The pause stays.
    """
    asked = await deps.limits.resume(context.text("session"), context.caller.actor)
    return answer({"asked_anew": [to_json(run) for run in asked]})


@TABLE.route("GET", "/v1/caps", operators=READERS, answers={200: _CAPS})
async def list_caps(context: RequestContext, deps: Dependencies) -> Answer:
    """List the operator's own caps."""
    return _own_caps(deps)


@TABLE.route(
    "POST",
    "/v1/caps",
    operators=Who.OPERATOR,
    body=made_of({}, {**_WHICH, **dict.fromkeys(_WINDOWS, _MOST)}),
    answers={200: _CAPS},
)
async def set_caps(context: RequestContext, deps: Dependencies) -> Answer:
    """Set the operator's caps on how often one action, or all together, may start per hour or day.

    :raises InvalidRequest: if neither window is given, or an argument without its action.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. Nothing was stored.
    """
    found = [_own(context, deps, name) for name in _WINDOWS if name in context.body]
    if not found:
        raise InvalidRequest("Say how many may begin within an hour, within a day, or both.")
    kept = await deps.limits.set_caps(found, context.caller.actor)
    return answer({"items": [_cap_json(own) for own in kept]})


@TABLE.route(
    "DELETE",
    "/v1/caps",
    operators=Who.OPERATOR,
    body=made_of({"window": {"enum": list(_WINDOWS)}}, _WHICH),
    answers={200: _CAPS},
)
async def remove_cap(context: RequestContext, deps: Dependencies) -> Answer:
    """Remove one of the operator's own caps, and return the others.

    :raises NotFound: if there is no such cap.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. The cap stays.
    """
    await deps.limits.remove_cap(_own(context, deps, context.text("window") or ""), context.caller.actor)
    return _own_caps(deps)


@TABLE.route(
    "POST",
    "/v1/action-approvals/<approval_id>/forgive",
    operators=Who.OPERATOR,
    answers={200: ref("Approval")},
)
async def forgive(context: RequestContext, deps: Dependencies, approval_id: str) -> Answer:
    """Lift a denial before its cool-down is over, so that agents can request the same again.

    :raises NotFound: if there is no such approval.
    :raises Conflict: if the approval was not denied.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    forgiven = await deps.limits.forgive(approval_id, context.caller.actor)
    return answer(approval_json(forgiven, deps.review_url))


def _own_caps(deps: Dependencies) -> Answer:
    return answer({"items": [_cap_json(own) for own in deps.limits.caps()]})


async def _session(context: RequestContext, deps: Dependencies) -> str | None:
    """Return the id of the session that the request is about, or None if it is about all sessions.

    :raises NotFound: if there is no such session, or it is not the caller's.
    """
    named, own = context.text("session"), context.caller.session
    if own is not None:
        if named not in (None, own.id):
            raise NotFound("There is no such session.")
        return own.id
    if named is not None and not await _exists(named, deps):
        raise NotFound("There is no such session.")
    return named


async def _exists(session_id: str, deps: Dependencies) -> bool:
    """Return whether there is such a session. While the database cannot be read, there may be."""
    try:
        return await deps.sessions.get(session_id) is not None
    except StoreUnavailable:
        return True


def _own(context: RequestContext, deps: Dependencies, window: str) -> OwnCap:
    argument, action, most = context.text("argument"), context.text("action"), context.body.get(window)
    if argument is not None and action is None:
        raise InvalidRequest.listing("An argument is one of an action.", ("/action", "is missing"))
    per_session = context.body.get("per_session") is True
    cap = Cap(most if isinstance(most, int) else 0, _WINDOWS[window], argument, per_session)
    return OwnCap(cap, deps.now(), context.caller.actor.id, action)


ANSWERS.differ(OwnCap, cap=INLINE)


def _cap_json(own: OwnCap) -> dict[str, JSON]:
    shown = to_json(own)
    del shown["seconds"]
    return {**shown, "window": _NAMES[own.cap.seconds]}


def paused_for(deps: Dependencies, session_id: str | None) -> Pause | None:
    """Return the pause of everything, or else the pause of this session, or None if neither is paused.

    :param session_id: the session, or None to return only the pause of everything.
    """
    pauses = {pause.session_id: pause for pause in deps.limits.pauses()}
    return pauses.get(None) or (pauses.get(session_id) if session_id is not None else None)
