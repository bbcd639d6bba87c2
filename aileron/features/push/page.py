"""The parts of pages about Web Push: the list of registered browsers, and the button that registers this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.web.blocks import Cell, Part, act, empty, quiet, table
from aileron.web.parts import Visit
from aileron.web.texts import moment

from .running import RunningPush, explain_unavailable, find_pages
from .values import PushBrowser

_NOTHING = empty("No browser is registered")


async def draw_browsers(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the registered browsers for the settings page, or nothing if the feature does not run."""
    running = deps.features.find(RunningPush)
    return () if running is None else [tags.h3("When no page is open"), *_draw(running, find_pages(deps))]


async def draw_phone_button(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the button that registers a phone's browser, below the list of requests on the phone's pages.

    Draw nothing on other pages, or if the phone may only read.
    """
    running, passkey = deps.features.find(RunningPush), visit.operator.passkey
    if running is None or passkey is None or visit.only_reads:
        return ()
    return [_draw_button(running.browsers.list(passkey))]


def _draw(running: RunningPush, pages: str) -> Iterator[Part]:
    unavailable, browsers = explain_unavailable(pages), running.browsers.list()
    if unavailable is not None:
        yield quiet("Not available at this address. ", visible(unavailable))
    else:
        yield quiet(
            "This browser can be notified of the number of pending approvals through its push service, even if no page "
            "of Aileron is open. The push service learns when, and nothing of the requests."
        )
        yield _draw_button([each for each in browsers if each.phone is None])
    if unavailable is None or browsers:
        yield table(
            "Registered browsers",
            ("Browser", "Phone", "Push service", "Added", "Last sent", "Last error", ""),
            map(_row, browsers),
            _NOTHING,
        )
    if browsers:
        yield tags.p(act("Send test to all browsers", "POST /v1/notifications/browsers/test", name="try-browsers"))


def _draw_button(browsers: Sequence[PushBrowser]) -> Tag:
    """Draw the button, hidden. The page's script shows it if this browser is not registered yet.

    :param browsers: the browsers that pages of this address registered, by which the script finds out.
    """
    known = " ".join(each.id for each in browsers)
    button = tags.button("Notify me when no page is open", type="button", id="push-here", **{"class": "small"})
    return tags.p(
        button(hidden="hidden", **{"data-known": known}),
        " ",
        tags.span(id="push-state", role="status"),
        **{"class": "push"},
    )


def _row(browser: PushBrowser) -> tuple[Cell, ...]:
    remove = act(
        "Remove", f"DELETE /v1/notifications/browsers/{browser.id}", sure="Confirm: remove", name=f"push-{browser.id}"
    )
    sent_at = "" if browser.sent_at is None else moment(browser.sent_at)
    phone = visible(browser.phone or "")
    return browser.name, phone, browser.service, moment(browser.added_at), sent_at, browser.problem or "", remove
