"""The routes of notifications: the channels, and a test of them."""

from __future__ import annotations

from collections.abc import Sequence

from aileron.api.dependencies import Dependencies
from aileron.api.endpoint import EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import BOOLEAN, COUNT, TEXT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.model.errors import NotFound

from .running import RunningNotices
from .values import NOTICE, ChannelState

TABLE = EndpointTable()
STATUS = made_of({"channels": COUNT, "failing": list_of(TEXT)})

_CHANNEL = described(
    ChannelState,
    kind={"enum": ["desktop", "webhook", "apprise"]},
    failed={"description": "messages that were given up"},
    problem={"description": "why the last attempt failed; null: it did not"},
    needs_secret=BOOLEAN,
    bound={**BOOLEAN, "description": "a secret is bound to it"},
)
_CHANNELS = made_of({"items": list_of(_CHANNEL)})
_PENDING = made_of({"items": list_of(TEXT), "more": BOOLEAN, "title": TEXT})
_MESSAGE = made_of({"title": TEXT, "text": TEXT})


@TABLE.route("GET", "/v1/notifications", operators=READERS, answers={200: _CHANNELS})
async def list_channels(context: RequestContext, deps: Dependencies) -> Answer:
    """List the configured channels, each with its state since the daemon started."""
    return answer(_channels(deps, _running(deps).notifier.channels()))


@TABLE.route("POST", "/v1/notifications/test", operators=Who.OPERATOR, answers={200: _CHANNELS})
async def try_channels(context: RequestContext, deps: Dependencies) -> Answer:
    """Send a test by every channel, one attempt each, and return the channels' states after it."""
    return answer(_channels(deps, await _running(deps).notifier.test()))


@TABLE.route("GET", "/v1/notifications/pending", operators=READERS, answers={200: _PENDING})
async def list_pending(context: RequestContext, deps: Dependencies) -> Answer:
    """List the ids of the newest requests that wait for a decision, for the notices of a browser."""
    return answer(to_json(await _running(deps).browser.list_pending()))


@TABLE.route("GET", "/v1/notifications/pending/<run_id>", operators=READERS, answers={200: _MESSAGE})
async def show_pending(context: RequestContext, deps: Dependencies, run_id: str) -> Answer:
    """Return the message about a pending request, as notifications show it."""
    message = await _running(deps).browser.compose(run_id)
    return answer({"title": message.title, "text": "\n".join(message.lines)})


def _channels(deps: Dependencies, states: Sequence[ChannelState]) -> JSON:
    return {"items": [_channel(deps, each) for each in states]}


def _channel(deps: Dependencies, state: ChannelState) -> JSON:
    fqn = NOTICE + state.name
    needs = _running(deps).find_scope(fqn) is not None
    return {**to_json(state), "needs_secret": needs, "bound": needs and bool(deps.bindings.for_connector(fqn))}


def _running(deps: Dependencies) -> RunningNotices:
    found = deps.features.find(RunningNotices)
    if found is None:
        raise NotFound("This daemon sends no notifications.")
    return found
