"""What the environment of the agent's session says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from attrs import field, frozen
from zope.interface import implementer

from aileron.client import Answer, Connections, DaemonUnreachable, IDaemon
from aileron.values import JSON

URL, TOKEN, WAIT_SECONDS = "AILERON_URL", "AILERON_TOKEN", "AILERON_WAIT_SECONDS"

DEFAULT_WAIT_SECONDS = 45
LONGEST_WAIT_SECONDS = 3600


@frozen
class Settings:
    """Where the daemon is, who we are there, and how long a call waits for a decision."""

    url: str = ""
    token: str = field(default="", repr=False)
    wait_seconds: int = DEFAULT_WAIT_SECONDS

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """What C{environment} says; nonsense for the wait counts as nothing said."""
        wait = environment.get(WAIT_SECONDS, "")
        seconds = int(wait) if wait.isascii() and wait.isdigit() else DEFAULT_WAIT_SECONDS
        url, token = environment.get(URL, ""), environment.get(TOKEN, "")
        return cls(url.strip(), token.strip(), min(seconds, LONGEST_WAIT_SECONDS))


def daemon_of(settings: Settings, connections: Connections) -> IDaemon:
    """The daemon that the settings name; where they name none, one that nobody can reach and that says why."""
    if not settings.url or not settings.token:
        return NoDaemon(f"This session was not started by 'aileron launch': {URL} or {TOKEN} is not set.")
    try:
        return connections.daemon(settings.url, settings.token)
    except ValueError as error:
        return NoDaemon(f"{URL} or {TOKEN} is malformed: {error}.")


@implementer(IDaemon)
@frozen
class NoDaemon:
    """A daemon that cannot be reached, ever."""

    reason: str

    async def status(self) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    async def actions(self, generation: int | None, wait_seconds: float) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    async def run(self, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float) -> Answer:
        """Unreachable."""
        self._refuse()

    async def result(self, run_id: str, wait_seconds: float) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DaemonUnreachable(self.reason)
