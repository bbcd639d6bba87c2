"""The profiles of known clients, and the facts about the calling client. The values are measured, not documented.

Loads no part of the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from aileron.client import SessionEnvironment

USUAL_SECONDS = 300.0
"""How long a call waits for a decision if no limit was set and the client would wait longer."""

MARGIN_SECONDS = 15.0
"""How long before its client's limit a call is answered."""


class Learns(Enum):
    """When a client learns that the list of tools has changed."""

    LIVE = "at once"
    ANEW = "when it is restarted"


@frozen
class Profile:
    """The known behaviour of one program.

    :ivar limit_seconds: its default limit for a call, or None if it has none.
    :ivar progress_extends: whether each progress report restarts that limit.
    :ivar opens_urls: whether it offers a person to open a URL.
    :ivar shows_forms: whether it shows a form to a person, if it declares forms.
    :ivar structured_wins: whether its model reads a result's structured content instead of its text, if both exist.
    :ivar learns: when it learns that the list of tools has changed, if its user configured it.
    :ivar launched_learns: when it learns that if C{aileron launch} configured it.
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
        """Return how long a call waits for a decision, in seconds.

        :param result: the limit that the launcher set, if known.
        :param hears_progress: whether the client requested progress reports for this call.
        """
        if result is not None:
            return result
        if self.limit_seconds is None or (self.progress_extends and hears_progress):
            return USUAL_SECONDS
        return min(USUAL_SECONDS, self.limit_seconds - MARGIN_SECONDS)

    def hears_changes(self, launched: bool) -> bool:
        """Return True if the running client learns that the list of tools has changed.

        :param launched: whether C{aileron launch} started it.
        """
        return (self.launched_learns if launched else self.learns) is Learns.LIVE


UNKNOWN = Profile("any other", 60.0, shows_forms=True)
"""The profile of an unknown client: the shortest known limit, and no request to open a URL."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("claude", None, opens_urls=True, shows_forms=True, structured_wins=True),
        # It declares URLs and forms, but declines by itself, even on its own screen.
        Profile("codex", 300.0, structured_wins=True, learns=Learns.ANEW),
        Profile("opencode", 60.0, progress_extends=True),
        # It declares elicitation, but without a screen its process exits when asked, so it is never asked.
        Profile("goose", 300.0, learns=Learns.ANEW, launched_learns=Learns.ANEW),
        Profile("pi", 60.0, progress_extends=True),
    )
}
"""The profiles by the client's name in C{aileron launch}."""

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

    :param introduced_as: its name in C{clientInfo}, which has precedence, because an agent may start another client.
    :param launched_as: the launched agent, or empty.
    """
    return PROFILES.get(_INTRODUCED_AS.get(introduced_as, launched_as), UNKNOWN)


@frozen
class Client:
    """One client, as one of its requests describes it.

    :ivar modern: whether it uses the protocol without a handshake, in which a server sends no requests.
    :ivar opens_urls: whether it shows a person a URL that we ask it to open.
    :ivar shows_forms: whether it shows a person a form that we send.
    :ivar runs_tasks: whether it accepts a task in place of a result.
    :ivar patience_seconds: how long this call may wait for a decision.
    :ivar hears_changes: whether it learns that the list of tools has changed.
    """

    modern: bool
    opens_urls: bool
    shows_forms: bool
    runs_tasks: bool
    patience_seconds: float
    hears_changes: bool


@frozen
class Introduction:
    """A client's description of itself in one request.

    :ivar name: its own name; empty if it gives none.
    :ivar modern: whether it uses the protocol without a handshake.
    :ivar declares_urls: whether it declares that it opens URLs.
    :ivar declares_forms: whether it declares that it shows forms.
    :ivar runs_tasks: whether it declares that it accepts tasks.
    :ivar can_be_asked: whether a question can reach it while it waits for a response.
    :ivar hears_progress: whether it requested progress reports for this request.
    """

    name: str
    modern: bool
    declares_urls: bool = False
    declares_forms: bool = False
    runs_tasks: bool = False
    can_be_asked: bool = True
    hears_progress: bool = False


def introduce(name: str, capabilities: Mapping[str, Any], *, modern: bool) -> Introduction:
    """Parse a client's description of itself from its capabilities in JSON.

    Tasks and progress are not read.
    """
    elicitation = capabilities.get("elicitation")
    asked = elicitation if isinstance(elicitation, Mapping) else {}
    declares_urls = asked.get("url") is not None
    # Before URLs were added, a client with elicitation always showed forms.
    declares_forms = elicitation is not None and (asked.get("form") is not None or not declares_urls)
    return Introduction(name, modern, declares_urls=declares_urls, declares_forms=declares_forms)


def know_client(said: Introduction, session: SessionEnvironment) -> Client:
    """Combine a client's description of itself with its profile and its launcher's settings."""
    profile = find_profile(said.name, session.client)
    # The launcher's facts concern the agent that it launched, not another one that this agent started.
    launched = profile.name == session.client
    attended = session.attended and launched
    can_be_asked = said.modern or said.can_be_asked
    return Client(
        modern=said.modern,
        opens_urls=attended and profile.opens_urls and said.declares_urls and can_be_asked,
        shows_forms=(attended or not launched) and profile.shows_forms and said.declares_forms and can_be_asked,
        runs_tasks=said.modern and said.runs_tasks,
        patience_seconds=profile.patience(session.wait_seconds, hears_progress=said.hears_progress),
        # A client that opened its own session may have a launched agent's name, but no launcher configured it.
        hears_changes=profile.hears_changes(launched and bool(session.token)),
    )
