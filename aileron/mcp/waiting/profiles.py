"""The profiles of known clients, and the abilities of the calling client. The profiles are measured, not documented.

Loads no part of the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from aileron.client import SessionEnvironment

USUAL_SECONDS = 300.0
"""The longest wait of a call for a decision if the launcher set no limit."""

MARGIN_SECONDS = 15.0
"""The seconds between the answer of a call and its client's limit."""


class Learns(Enum):
    """When a client learns that the list of tools has changed, if at all."""

    LIVE = "at once"
    ANEW = "when it is restarted"


@frozen
class Profile:
    """The known behaviour of one program.

    :ivar limit_seconds: the program's default limit for a call in seconds, or None if it has none.
    :ivar progress_extends: whether each progress report restarts the limit.
    :ivar opens_urls: whether the program offers a person to open a URL.
    :ivar shows_forms: whether the program shows a form to a person, if it declares forms.
    :ivar structured_wins: whether the model gets a result's structured content instead of its text, if both exist.
    :ivar learns: when the program learns that the list of tools has changed, if its user configured it.
    :ivar launched_learns: when the program learns of a changed list if C{aileron launch} configured it.
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
        """Return the seconds that a call may wait for a decision.

        :param result: the wait that the launcher set, or None.
        :param hears_progress: whether the client requested progress reports for this call.
        """
        if result is not None:
            return result
        if self.limit_seconds is None or (self.progress_extends and hears_progress):
            return USUAL_SECONDS
        return min(USUAL_SECONDS, self.limit_seconds - MARGIN_SECONDS)

    def hears_changes(self, launched: bool) -> bool:
        """Return whether the running client learns that the list of tools has changed.

        :param launched: whether C{aileron launch} started the client.
        """
        return (self.launched_learns if launched else self.learns) is Learns.LIVE


UNKNOWN = Profile("any other", 60.0, shows_forms=True)
"""The profile of an unknown client: the shortest known limit, and no request to open a URL."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("claude", None, opens_urls=True, shows_forms=True, structured_wins=True),
        # codex declares URLs and forms, but declines each question without showing it.
        Profile("codex", 300.0, structured_wins=True, learns=Learns.ANEW),
        Profile("opencode", 60.0, progress_extends=True),
        # goose declares elicitation, but exits at a question if it has no screen, so it is never asked.
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
    """Return the profile of a client, or L{UNKNOWN}.

    :param introduced_as: the client's name in C{clientInfo}. It has precedence, because an agent may start another
        client.
    :param launched_as: the launched agent, or empty.
    """
    return PROFILES.get(_INTRODUCED_AS.get(introduced_as, launched_as), UNKNOWN)


@frozen
class Client:
    """The abilities of one client during one request.

    :ivar modern: whether the client uses the protocol without a handshake, in which a server sends no requests.
    :ivar opens_urls: whether the client offers a person to open a URL that we send.
    :ivar shows_forms: whether the client shows a person a form that we send.
    :ivar runs_tasks: whether the client accepts a task in place of a result.
    :ivar patience_seconds: the seconds that this call may wait for a decision.
    :ivar hears_changes: whether the client learns that the list of tools has changed.
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

    :ivar name: the client's own name, or empty if it gives none.
    :ivar modern: whether the client uses the protocol without a handshake.
    :ivar declares_urls: whether the client declares that it opens URLs.
    :ivar declares_forms: whether the client declares that it shows forms.
    :ivar runs_tasks: whether the client declares that it accepts tasks.
    :ivar can_be_asked: whether a question can reach the client while it waits for a response.
    :ivar hears_progress: whether the client requested progress reports for this request.
    """

    name: str
    modern: bool
    declares_urls: bool = False
    declares_forms: bool = False
    runs_tasks: bool = False
    can_be_asked: bool = True
    hears_progress: bool = False


def introduce(name: str, capabilities: Mapping[str, Any], *, modern: bool) -> Introduction:
    """Return a client's description of itself, read from its capabilities in JSON.

    Its support of tasks and of progress is not part of the description.

    :param modern: whether the client uses the protocol without a handshake, in which a server sends no requests.
    """
    elicitation = capabilities.get("elicitation")
    asked = elicitation if isinstance(elicitation, Mapping) else {}
    declares_urls = asked.get("url") is not None
    # Before URLs were added, a client with elicitation always showed forms.
    declares_forms = elicitation is not None and (asked.get("form") is not None or not declares_urls)
    return Introduction(name, modern, declares_urls=declares_urls, declares_forms=declares_forms)


def know_client(said: Introduction, session: SessionEnvironment) -> Client:
    """Return a client's abilities, from its description of itself, its profile and its launcher's settings."""
    profile = find_profile(said.name, session.client)
    # The launcher's settings concern the agent that it launched, not a client that this agent started.
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
