"""Parts of pages about notifications: the channels on the settings page, and failing ones on the home page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.template import tags

from aileron.api import Dependencies
from aileron.web.blocks import Attention, Cell, Part, act, empty, table
from aileron.web.parts import Visit

from .running import RunningNotices
from .values import ChannelState

_NOTHING = empty(
    "No channels configured",
    tags.p("Approvals are shown only here. Add a channel under ", tags.code("notifications"), " in config.yaml."),
)


async def draw_channels(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the channels for the page of settings."""
    running = deps.features.find(RunningNotices)
    channels = () if running is None else running.notifier.channels()
    return [tags.h2("Notifications"), *_draw(channels)]


def _draw(channels: Sequence[ChannelState]) -> Iterator[Part]:
    heads = ("Channel", "Type", "Sent", "Failed", "Queued", "Last error")
    yield table("Channels", heads, map(_channel, channels), _NOTHING)
    if channels:
        yield tags.p(act("Send test notifications", "POST /v1/notifications/test", name="try-channels"))


def _channel(state: ChannelState) -> tuple[Cell, ...]:
    return state.name, state.kind, state.sent, state.failed, state.waiting, state.problem or ""


async def find_failing(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Attention]:
    """Find channels whose last attempt failed, for the home page."""
    running = deps.features.find(RunningNotices)
    channels = () if running is None else running.notifier.channels()
    failing = ", ".join(each.name for each in channels if each.problem is not None)
    return [Attention(f"Notifications are failing: {failing}.", "Show channels", "/settings")] if failing else []
