"""What a launcher tells an agent's session, and what C{aileron-mcp} reads there."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

URL, TOKEN, WAIT_SECONDS = "AILERON_URL", "AILERON_TOKEN", "AILERON_WAIT_SECONDS"
CA = "AILERON_CA"
CLIENT, ATTENDED = "AILERON_CLIENT", "AILERON_ATTENDED"
LISTED_ACTIONS = "AILERON_LISTED_ACTIONS"

LONGEST_WAIT_SECONDS = 3600
DEFAULT_LISTED_ACTIONS = 40
LEAN: Mapping[str, str] = {LISTED_ACTIONS: "12"}
"""What the environment says where few actions are to be listed."""


@frozen
class SessionEnvironment:
    """Where the daemon is, who we are there, and what the launcher knows of the agent.

    :ivar url: the agent site's; empty: not said.
    :ivar token: the session's; empty: not said.
    :ivar wait_seconds: how long a call waits for a decision; L{None}: not said.
    :ivar client: the agent's name, as C{aileron launch} has it; empty: not said.
    :ivar attended: whether a person sits before the agent's own screen; what is not said counts as no.
    :ivar ca: a file of authorities, who alone may vouch for the daemon; empty: not said.
    :ivar listed_actions: how many actions are listed as tools at most; of more, only those that are used most.
    """

    url: str
    token: str = field(repr=False)
    wait_seconds: int | None = None
    client: str = ""
    attended: bool = False
    listed_actions: int = DEFAULT_LISTED_ACTIONS
    ca: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> SessionEnvironment:
        """What C{environment} says; nonsense where a number is meant counts as nothing said."""
        names = (URL, TOKEN, WAIT_SECONDS, CLIENT, ATTENDED, LISTED_ACTIONS, CA)
        said = {name: environment.get(name, "").strip() for name in names}
        seconds, listed = _number(said[WAIT_SECONDS]), _number(said[LISTED_ACTIONS])
        return cls(
            said[URL],
            said[TOKEN],
            None if seconds is None else min(seconds, LONGEST_WAIT_SECONDS),
            said[CLIENT],
            said[ATTENDED] == "yes",
            DEFAULT_LISTED_ACTIONS if listed is None else listed,
            said[CA],
        )

    def variables(self) -> dict[str, str]:
        """The variables that L{of} reads."""
        ours = {URL: self.url, TOKEN: self.token}
        if self.wait_seconds is not None:
            ours[WAIT_SECONDS] = str(self.wait_seconds)
        if self.client:
            ours |= {CLIENT: self.client, ATTENDED: "yes" if self.attended else "no"}
        if self.listed_actions != DEFAULT_LISTED_ACTIONS:
            ours[LISTED_ACTIONS] = str(self.listed_actions)
        if self.ca:
            ours[CA] = self.ca
        return ours


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
