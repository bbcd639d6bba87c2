"""The profiles of clients, as far as one request tells who calls: measured, not promised by anyone."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import Enum
from typing import TypeVar

import mcp.types as t
from attrs import frozen
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from aileron.client import SessionEnvironment
from aileron.mcp._notifier import Context

USUAL_SECONDS = 300.0
"""How long a call waits for a person where nobody said and the client would wait longer."""

MARGIN_SECONDS = 15.0
"""How long before its client gives up a call has answered."""


class Learns(Enum):
    """When a client hears that the list of tools is another."""

    LIVE = "at once"
    ANEW = "when it is restarted"


@frozen
class Profile:
    """One program.

    :ivar limit_seconds: after which it gives a call up where nobody set another limit; L{None}: it does not.
    :ivar progress_extends: whether that time begins anew with each word of progress.
    :ivar opens_urls: whether it shows a person an address that we ask it to open.
    :ivar shows_forms: whether it shows a person a form, where it declares that.
    :ivar structured_wins: whether its model reads a result's structured content, not the text, where there are both.
    :ivar learns: when it hears that the list of tools is another, as its user has it.
    :ivar launched_learns: the same where C{aileron launch} has set it up.
    """

    name: str
    limit_seconds: float | None
    progress_extends: bool = False
    opens_urls: bool = False
    shows_forms: bool = False
    structured_wins: bool = False
    learns: Learns = Learns.LIVE
    launched_learns: Learns = Learns.LIVE

    def patience(self, result: float | None, *, hears_progress: bool) -> float:
        """Return how long a call waits for a person, in seconds.

        :param result: what the starter of the client said, who knows which limit was set.
        :param hears_progress: whether it asked to hear of this call's progress.
        """
        if result is not None:
            return result
        if self.limit_seconds is None or (self.progress_extends and hears_progress):
            return USUAL_SECONDS
        return min(USUAL_SECONDS, self.limit_seconds - MARGIN_SECONDS)

    def hears_changes(self, launched: bool) -> bool:
        """Tell whether it hears, as it runs, that the list of tools is another.

        :param launched: whether C{aileron launch} started it.
        """
        return (self.launched_learns if launched else self.learns) is Learns.LIVE


UNKNOWN = Profile("any other", 60.0, shows_forms=True)
"""Of whom nothing is known: the shortest limit that is known of anyone, and nobody is asked to open anything."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("claude", None, opens_urls=True, shows_forms=True, structured_wins=True),
        # It declares that it opens addresses and shows forms, and declines by itself, even on its own screen.
        Profile("codex", 300.0, structured_wins=True, learns=Learns.ANEW),
        Profile("opencode", 60.0, progress_extends=True),
        # It declares elicitation, and without a screen its process ends when asked: it never is.
        Profile("goose", 300.0, learns=Learns.ANEW, launched_learns=Learns.ANEW),
        Profile("pi", 60.0, progress_extends=True),
    )
}
"""By the name that C{aileron launch} has for it."""

_INTRODUCED_AS = {
    "claude-code": "claude",
    "codex-mcp-client": "codex",
    "opencode": "opencode",
    "goose": "goose",
    "goose-cli": "goose",
    "goose-desktop": "goose",
    "pi": "pi",
}


def find_profile(introduced_as: str, launched_as: str) -> Profile:
    """Find the profile of a client.

    :param introduced_as: its own name for itself, in C{clientInfo}: believed first, for an agent may start another.
    :param launched_as: the agent that was launched, or nothing.
    """
    return PROFILES.get(_INTRODUCED_AS.get(introduced_as, launched_as), UNKNOWN)


TASKS = "io.modelcontextprotocol/tasks"


@frozen
class Client:
    """One client, as far as one of its requests tells.

    :ivar modern: whether it speaks the protocol without a handshake, where a server asks nothing by itself.
    :ivar opens_urls: whether a person will see an address that we ask it to open.
    :ivar shows_forms: whether a person will see a form that we ask it to show.
    :ivar runs_tasks: whether it can be given a task in place of a result.
    :ivar patience_seconds: how long this call may wait for a person.
    :ivar hears_changes: whether it hears that the list of tools is another.
    """

    modern: bool
    opens_urls: bool
    shows_forms: bool
    runs_tasks: bool
    patience_seconds: float
    hears_changes: bool


def identify_client(ctx: Context, session: SessionEnvironment) -> Client:
    """Identify the client that made this request."""
    params = ctx.session.client_params
    capabilities = ctx.session.client_capabilities or t.ClientCapabilities()
    profile = find_profile(params.client_info.name if params is not None else "", session.client)
    modern = ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS
    # What the launcher saw and set, it did of the agent that it launched, not of one that this started in turn.
    launched = profile.name == session.client
    attended = session.attended and launched
    elicitation = capabilities.elicitation
    declares_urls = elicitation is not None and elicitation.url is not None
    # Before there were addresses to open, a client that could be asked at all showed forms.
    declares_forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    can_be_asked = modern or ctx.session.can_send_request
    hears_progress = (ctx.meta or {}).get("progress_token") is not None
    return Client(
        modern=modern,
        opens_urls=attended and profile.opens_urls and declares_urls and can_be_asked,
        shows_forms=(attended or not launched) and profile.shows_forms and declares_forms and can_be_asked,
        runs_tasks=modern and TASKS in (capabilities.extensions or {}),
        patience_seconds=profile.patience(session.wait_seconds, hears_progress=hears_progress),
        # Who opened its session itself may bear a launched agent's name, and was set up by nobody.
        hears_changes=profile.hears_changes(launched and bool(session.token)),
    )


_EARLY_SECONDS = (1.0, 1.0, 2.0, 4.0, 7.0)
"""Somebody who watches sees soon that the call waits, and for what."""

_BEAT_SECONDS = 15.0
"""Well inside the 60 s after which clients give up a call that stays silent."""

FOR_THE_ACTION = "Waiting for the action, or for the user's approval."
FOR_A_FORM = "Waiting for what the user says in the form."

_log = logging.getLogger(__name__)

T = TypeVar("T")


Beats = Callable[[], Iterator[float]]
"""For each call: the seconds before each word of progress."""


def usual_beats() -> Iterator[float]:
    """Beat soon at first, then steadily."""
    return itertools.chain(_EARLY_SECONDS, itertools.repeat(_BEAT_SECONDS))


async def await_with_progress(ctx: Context, doing: Awaitable[T], beats: Beats, words: str = FOR_THE_ACTION) -> T:
    """Await C{doing}, and report progress to the client at each beat until it is done.

    :param words: the text of the progress report.
    """
    beating: list[asyncio.Task[None]] = []  # begun when it is due: most calls are answered before
    loop = asyncio.get_running_loop()
    pauses = beats()
    first = loop.call_later(
        next(pauses), lambda: beating.append(loop.create_task(_report_progress(ctx, pauses, words)))
    )
    try:
        return await doing
    finally:
        first.cancel()
        for telling in beating:
            telling.cancel()


async def _report_progress(ctx: Context, pauses: Iterator[float], words: str) -> None:
    for count, pause in enumerate(pauses, 1):
        try:
            await ctx.session.report_progress(count, None, words)
        except Exception:  # noqa: BLE001 - a rim: the call goes on whether or not somebody hears of it
            _log.exception("progress could not be told")
        await asyncio.sleep(pause)
