"""The daemon that the environment of the agent's session names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from attrs import frozen
from zope.interface import implementer

from aileron.client import Answer, Connections, DaemonUnreachable, IDaemon, SessionEnvironment
from aileron.values import JSON


def daemon_of(session: SessionEnvironment, connections: Connections) -> IDaemon:
    """The daemon that the session names; where it names none, one that nobody can reach and that says why."""
    if not session.url or not session.token:
        return NoDaemon(
            "This session was not started by 'aileron launch': AILERON_URL or AILERON_TOKEN is not set. "
            "For a client of another kind: aileron mcp config."
        )
    if session.ca:
        if not session.url.lower().startswith("https:"):
            return NoDaemon("AILERON_CA is set, but AILERON_URL is no https address: nothing is sent in the clear.")
        try:
            connections = connections.trusting(session.ca)
        except ValueError as error:
            return NoDaemon(f"The file that AILERON_CA names is no good: {error}.")
    if session.exposed_to:
        return NoDaemon(
            f"AILERON_URL leads to {session.exposed_to} by plain HTTP, where others could read this session's token. "
            "It must be an https address, or, if the way there stays on this machine, AILERON_PLAIN_HOST that host."
        )
    try:
        return connections.daemon(session.url, session.token)
    except ValueError as error:
        return NoDaemon(f"AILERON_URL or AILERON_TOKEN is malformed: {error}.")


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

    async def run_status(self, run_id: str, wait_seconds: float) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    async def withdraw(self, run_id: str, reason: str | None) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    async def most_used(self, limit: int) -> Sequence[str]:
        """Unreachable."""
        self._refuse()

    async def runs(self, limit: int) -> Mapping[str, Any]:
        """Unreachable."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DaemonUnreachable(self.reason, misdirected=True)
