"""Parts of pages about notifications: the channels on the settings page, and failing ones on the home page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.template import tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.web.blocks import Attention, Cell, Part, act, empty, quiet, table
from aileron.web.parts import Visit

from .running import RunningNotices
from .values import ChannelState

_NOTHING = empty(
    "No channels configured",
    tags.p("Approvals are shown only here. Add a channel under ", tags.code("notifications"), " in config.yaml."),
)

_ON_THE_DESKTOP = (
    "To be notified without a browser, add ",
    tags.code("notifications: {desktop: true}"),
    " to config.yaml.",
)


async def draw_channels(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the channels for the settings page."""
    running = deps.features.find(RunningNotices)
    channels = () if running is None else running.notifier.channels()
    browser = () if running is None else _draw_browser(running.browser.explain_unavailable())
    return [tags.h2("Notifications"), *_draw(channels), *browser]


def _draw(channels: Sequence[ChannelState]) -> Iterator[Part]:
    heads = ("Channel", "Type", "Sent", "Failed", "Queued", "Last error")
    yield table("Channels", heads, map(_channel, channels), _NOTHING)
    if channels:
        yield tags.p(act("Send test notifications", "POST /v1/notifications/test", name="try-channels"))


def _draw_browser(unavailable: str | None) -> Iterator[Part]:
    """Draw the button that turns notifications of this browser on and off, or why there is none."""
    yield tags.h3("In this browser")
    if unavailable is not None:
        yield quiet("Not available at this address. ", visible(unavailable), " ", *_ON_THE_DESKTOP)
        return
    yield quiet(
        "While a page of Aileron is open and you are not looking at it, this browser shows a notification of each new "
        "request. It has the same text as a desktop notification, and nothing can be decided in it."
    )
    button = tags.button("Notify me in this browser", type="button", id="notify-here", **{"class": "small"})
    yield tags.p(button(hidden="hidden"), " ", tags.span(id="notify-state", role="status"))


def _channel(state: ChannelState) -> tuple[Cell, ...]:
    return state.name, state.kind, state.sent, state.failed, state.waiting, state.problem or ""


async def find_failing(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Attention]:
    """Find channels whose last attempt failed, for the home page."""
    running = deps.features.find(RunningNotices)
    channels = () if running is None else running.notifier.channels()
    failing = ", ".join(each.name for each in channels if each.problem is not None)
    return [Attention(f"Notifications are failing: {failing}.", "Show channels", "/settings")] if failing else []
