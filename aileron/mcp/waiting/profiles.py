"""What is known of the programs that call: measured, not promised by anyone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import frozen

USUAL_SECONDS = 300.0
"""How long a call waits for a person where nobody said and the client would wait longer."""

MARGIN_SECONDS = 15.0
"""How long before its client gives up a call has answered."""


class Learns(Enum):
    """When a client hears that the list of tools is another."""

    LIVE = "at once"
    ANEW = "when it is started anew"


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
        """How long a call waits for a person, in seconds.

        :param result: what whoever started it said, who knows which limit was set.
        :param hears_progress: whether it asked to hear of this call's progress.
        """
        if result is not None:
            return result
        if self.limit_seconds is None or (self.progress_extends and hears_progress):
            return USUAL_SECONDS
        return min(USUAL_SECONDS, self.limit_seconds - MARGIN_SECONDS)

    def hears_changes(self, launched: bool) -> bool:
        """Whether it hears, as it runs, that the list of tools is another.

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


def profile_of(introduced_as: str, launched_as: str) -> Profile:
    """The profile of a client.

    :param introduced_as: its own name for itself, in C{clientInfo}: believed first, for an agent may start another.
    :param launched_as: the agent that was launched, or nothing.
    """
    return PROFILES.get(_INTRODUCED_AS.get(introduced_as, launched_as), UNKNOWN)
