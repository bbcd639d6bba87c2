"""Services beside the runner: the routes and tools of agents; and the reactor, as far as connections need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.interfaces import IReactorPluggableNameResolver, IReactorTCP, IReactorTime
from zope.interface import Interface

from aileron.base.json import JSON


class IConnectingReactor(IReactorTCP, IReactorTime, IReactorPluggableNameResolver):
    """The parts of a reactor by which connections are made: a type only, every real reactor is one."""


class IAgentRoutes(Interface):
    """The agent site's routes, asked in this process: behind the same guard, and with the same answers as over HTTP."""

    async def ask(
        token: str,
        method: str,
        path: Sequence[str],
        *,
        query: Mapping[str, str],
        body: bytes,
        prefer_seconds: float | None,
    ) -> tuple[int, bytes]:
        """Ask one route and return the status and the body of its answer.  Cancelling ends the wait only.

        :param token: an agent's, or the in-band key for routes of L{in_band}.  No other credential is taken.
        :param path: segments, as they are before any encoding.
        :param body: JSON, or empty.
        :param prefer_seconds: as C{Prefer: wait}; L{None}: not said.
        """

    def in_band() -> IAgentRoutes:
        """Return the same routes for callers who have no agent's token but a session's in-band key."""


class IAgentTools(Interface):
    """The tools of agents' sessions, for who speaks to their models by another protocol than MCP.

    Each is asked with what the agent's routes know the session by.
    """

    async def offered(key: str) -> Sequence[Any]:
        """Return the tools in a stable order, each with its C{name}, C{description} and C{input_schema}.

        :raises Unauthorized: nobody has this key, or the session has ended.
        """

    async def call(
        key: str, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float
    ) -> Any:
        """Call one.  Every answer is a result, with its C{text}, whether it C{is_error}, and what is C{pending}.

        Its C{run_id} is empty if no run was made.

        Cancelling ends the wait, never a run.

        :param idempotency_key: the same call with the same key is the same run.
        :param wait_seconds: how long it may wait for a person.
        """
