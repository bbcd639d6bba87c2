"""The profiles of clients, and what is known of the one that calls: measured, not promised by anyone.

Loads nothing of the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from aileron.client import SessionEnvironment

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


@frozen
class Introduction:
    """The words of a client about itself in one request.

    :ivar name: its own name for itself; empty: it says none.
    :ivar modern: whether it speaks the protocol without a handshake.
    :ivar declares_urls: whether it says that it opens addresses.
    :ivar declares_forms: whether it says that it shows forms.
    :ivar runs_tasks: whether it says that it can be given a task in place of a result.
    :ivar can_be_asked: whether a question reaches it while it waits for its answer.
    :ivar hears_progress: whether it asked to hear of this request's progress.
    """

    name: str
    modern: bool
    declares_urls: bool = False
    declares_forms: bool = False
    runs_tasks: bool = False
    can_be_asked: bool = True
    hears_progress: bool = False


def introduce(name: str, capabilities: Mapping[str, Any], *, modern: bool) -> Introduction:
    """Read what a client says of itself from its capabilities in JSON.

    Whether it can run tasks, or hears of progress, is not read.
    """
    elicitation = capabilities.get("elicitation")
    asked = elicitation if isinstance(elicitation, Mapping) else {}
    declares_urls = asked.get("url") is not None
    # Before there were addresses to open, a client that could be asked at all showed forms.
    declares_forms = elicitation is not None and (asked.get("form") is not None or not declares_urls)
    return Introduction(name, modern, declares_urls=declares_urls, declares_forms=declares_forms)


def know_client(said: Introduction, session: SessionEnvironment) -> Client:
    """Combine what a client says of itself with its profile and what its launcher set."""
    profile = find_profile(said.name, session.client)
    # What the launcher saw and set, it did of the agent that it launched, not of one that this started in turn.
    launched = profile.name == session.client
    attended = session.attended and launched
    can_be_asked = said.modern or said.can_be_asked
    return Client(
        modern=said.modern,
        opens_urls=attended and profile.opens_urls and said.declares_urls and can_be_asked,
        shows_forms=(attended or not launched) and profile.shows_forms and said.declares_forms and can_be_asked,
        runs_tasks=said.modern and said.runs_tasks,
        patience_seconds=profile.patience(session.wait_seconds, hears_progress=said.hears_progress),
        # Who opened its session itself may bear a launched agent's name, and was set up by nobody.
        hears_changes=profile.hears_changes(launched and bool(session.token)),
    )
