"""The routes of network access: launchers open it for sessions, and the operator decides hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.routes.sessions import find_launched
from aileron.api.shapes.schemas import COUNT, TEXT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.tool_claims import MOST_COMMAND, NO_CALLER, ToolCaller

from .running import RunningEgress, SessionHosts
from .values import EgressDecision, EgressHost, EgressState

TABLE = EndpointTable()

_WORDS: Schema = {**list_of({"type": "string", "minLength": 1, "maxLength": 300}), "maxItems": 100}
_HOST = described(
    EgressHost,
    project={"description": "the session's directory: a claim"},
    host={"description": "with its port"},
    basis={"description": "by what it is allowed; empty: it is not"},
    times={"description": "how often it was asked for"},
    sent={"description": "bytes"},
    received={"description": "bytes"},
)
_CALLER = made_of(
    {
        "process": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        "started": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
        "command": {"type": "string", "maxLength": MOST_COMMAND},
    }
)
_DECISION: Schema = {"enum": [each.value for each in EgressDecision]}
_STATE: Schema = {"enum": [each.value for each in EgressState]}


@TABLE.route(
    "POST",
    "/v1/sessions/<session_id>/egress",
    agents=Who.LAUNCH,
    body=made_of({"allow": _WORDS}, {"caller": _CALLER}),
    answers={200: made_of({"port": COUNT, "ticket": TEXT})},
)
async def open_egress(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """Open network access to some hosts for a session.

    The returned ticket opens one connection to the proxy, within seconds. The body's C{caller} is the process that
    opened the connection: its number, its start time in clock ticks, and its command line. It is a claim.

    :raises InvalidRequest: if a word is no preset and no host, or none is given and no host is opened for the session.
    :raises NotFound: if the session does not exist, has ended or belongs to an account.
    :raises Conflict: if other hosts were named for this session, or too many connections are being opened.
    :raises StoreUnavailable: if the audit log cannot be written.
    """
    egress, words = _egress(deps), tuple(cast("list[str]", context.body["allow"]))
    try:
        port, ticket = await egress.open(await find_launched(deps, session_id), words, _read_caller(context.body))
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    try:
        await find_launched(deps, session_id)
    except NotFound:
        egress.end(session_id)  # the session ended meanwhile, before its access was opened
        raise
    return answer({"port": port, "ticket": ticket})


@TABLE.route("GET", "/v1/egress", operators=READERS, answers={200: made_of({"items": list_of(_HOST)})})
async def list_egress(context: RequestContext, deps: Dependencies) -> Answer:
    """List the hosts that live sessions requested, pending ones first, then the newest first."""
    return answer({"items": [to_json(each) for each in _egress(deps).hosts()]})


@TABLE.route(
    "POST",
    "/v1/egress/<host_id>/decision",
    operators=Who.OPERATOR,
    body=made_of({"decision": _DECISION, "state": _STATE}),
    answers={200: _HOST},
)
async def decide_egress(context: RequestContext, deps: Dependencies, host_id: str) -> Answer:
    """Allow a host for its session, or always for its project, or deny it.

    The body's C{state} is the state that the operator was shown. If the host has another state now, return 409.

    :raises NotFound: if no live session requested the host.
    :raises Conflict: if the host has another state, or C{egress.toml} is not trusted.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the decision could not be stored.
    """
    decision, state = EgressDecision(str(context.body["decision"])), EgressState(str(context.body["state"]))
    return answer(to_json(await _egress(deps).decide(host_id, decision, state, context.caller.actor)))


def _read_caller(body: Mapping[str, JSON]) -> ToolCaller:
    """Return the caller that a launcher claims, or an unknown one if it claims none."""
    found = body.get("caller")
    if not isinstance(found, Mapping):
        return NO_CALLER
    # guard of own tools: a command line cannot change the page that shows it
    #    -> features.egress.test_routes.EgressTests.test_caller, instead command = str(found["command"])
    command = visible(str(found["command"]))[:MOST_COMMAND]
    return ToolCaller(cast("int", found["process"]), cast("int", found["started"]), command)


def _egress(deps: Dependencies) -> SessionHosts:
    found = deps.features.find(RunningEgress)
    if found is None:
        raise NotFound("This daemon has no proxy for sandboxes.")
    return found.sessions
