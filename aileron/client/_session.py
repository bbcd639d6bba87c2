"""What a launcher tells an agent's session, and what C{aileron-mcp} reads there."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

URL, TOKEN, WAIT_SECONDS = "AILERON_URL", "AILERON_TOKEN", "AILERON_WAIT_SECONDS"

DEFAULT_WAIT_SECONDS = 45
LONGEST_WAIT_SECONDS = 3600


@frozen
class SessionEnvironment:
    """Where the daemon is, who we are there, and how long a call waits for a decision.

    :ivar url: the agent site's; empty: not said.
    :ivar token: the session's; empty: not said.
    """

    url: str
    token: str = field(repr=False)
    wait_seconds: int = DEFAULT_WAIT_SECONDS

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> SessionEnvironment:
        """What C{environment} says; nonsense for the wait counts as nothing said."""
        wait = environment.get(WAIT_SECONDS, "").strip()
        seconds = int(wait) if wait.isascii() and wait.isdigit() and len(wait) < 10 else DEFAULT_WAIT_SECONDS
        url, token = environment.get(URL, ""), environment.get(TOKEN, "")
        return cls(url.strip(), token.strip(), min(seconds, LONGEST_WAIT_SECONDS))

    def variables(self) -> dict[str, str]:
        """The variables that L{of} reads."""
        return {URL: self.url, TOKEN: self.token, WAIT_SECONDS: str(self.wait_seconds)}
