"""What a launcher tells an agent's session, and what C{aileron-mcp} reads there."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

URL, TOKEN, WAIT_SECONDS = "AILERON_URL", "AILERON_TOKEN", "AILERON_WAIT_SECONDS"
CLIENT, ATTENDED = "AILERON_CLIENT", "AILERON_ATTENDED"

LONGEST_WAIT_SECONDS = 3600


@frozen
class SessionEnvironment:
    """Where the daemon is, who we are there, and what the launcher knows of the agent.

    :ivar url: the agent site's; empty: not said.
    :ivar token: the session's; empty: not said.
    :ivar wait_seconds: how long a call waits for a decision; L{None}: not said.
    :ivar client: the agent's name, as C{aileron launch} has it; empty: not said.
    :ivar attended: whether a person sits before the agent's own screen; what is not said counts as no.
    """

    url: str
    token: str = field(repr=False)
    wait_seconds: int | None = None
    client: str = ""
    attended: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> SessionEnvironment:
        """What C{environment} says; nonsense for the wait counts as nothing said."""
        said = {name: environment.get(name, "").strip() for name in (URL, TOKEN, WAIT_SECONDS, CLIENT, ATTENDED)}
        wait = said[WAIT_SECONDS]
        seconds = int(wait) if wait.isascii() and wait.isdigit() and len(wait) < 10 else None
        return cls(
            said[URL],
            said[TOKEN],
            None if seconds is None else min(seconds, LONGEST_WAIT_SECONDS),
            said[CLIENT],
            said[ATTENDED] == "yes",
        )

    def variables(self) -> dict[str, str]:
        """The variables that L{of} reads."""
        ours = {URL: self.url, TOKEN: self.token}
        if self.wait_seconds is not None:
            ours[WAIT_SECONDS] = str(self.wait_seconds)
        if self.client:
            ours |= {CLIENT: self.client, ATTENDED: "yes" if self.attended else "no"}
        return ours
