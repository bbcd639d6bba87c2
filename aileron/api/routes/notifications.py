"""The channels by which the operator is told of what waits.  Their secrets are bound as all others are."""

from __future__ import annotations

from collections.abc import Sequence

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import BOOLEAN, COUNT, MOMENT_OR_NULL, TEXT, TEXT_OR_NULL, list_of, made_of
from aileron.values import JSON, NOTICE, ChannelState

TABLE = Table()

_CHANNEL = made_of(
    {
        "name": TEXT,
        "kind": {"enum": ["desktop", "webhook", "apprise"]},
        "sent": COUNT,
        "failed": {**COUNT, "description": "messages that were given up"},
        "waiting": COUNT,
        "problem": {**TEXT_OR_NULL, "description": "why the last attempt failed; null: it did not"},
        "problem_at": MOMENT_OR_NULL,
        "sent_at": MOMENT_OR_NULL,
        "needs_secret": BOOLEAN,
        "bound": {**BOOLEAN, "description": "a secret is bound to it"},
    }
)
_CHANNELS = made_of({"items": list_of(_CHANNEL)})


@TABLE.route("GET", "/v1/notifications", operators=Who.OPERATOR, answers={200: _CHANNELS})
async def list_channels(visit: Visit, parts: Parts) -> Answer:
    """Every channel that is configured, and how it does in this life of the daemon."""
    return answer(_channels(parts, () if parts.notifier is None else parts.notifier.channels()))


@TABLE.route("POST", "/v1/notifications/test", operators=Who.OPERATOR, answers={200: _CHANNELS})
async def try_channels(visit: Visit, parts: Parts) -> Answer:
    """Send a test by every channel, one attempt each, and tell how they do then."""
    return answer(_channels(parts, () if parts.notifier is None else await parts.notifier.test()))


def _channels(parts: Parts, states: Sequence[ChannelState]) -> JSON:
    return {"items": [_channel(parts, each) for each in states]}


def _channel(parts: Parts, state: ChannelState) -> JSON:
    fqn = NOTICE + state.name
    needs = parts.notices.bound_by(fqn) is not None
    return {**state.as_json(), "needs_secret": needs, "bound": needs and bool(parts.bindings.for_connector(fqn))}
