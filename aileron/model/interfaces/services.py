"""Interfaces for callers inside the daemon: the agents' routes and tools, and the reactor for connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.interfaces import IReactorPluggableNameResolver, IReactorTCP, IReactorTime
from zope.interface import Interface

from aileron.base.json import JSON
from aileron.base.trace_context import TraceParent


class IConnectingReactor(IReactorTCP, IReactorTime, IReactorPluggableNameResolver):
    """The methods of a reactor that make connections. It is only a type: every real reactor has them."""


class IAgentRoutes(Interface):
    """The routes of the agent site for calls in this process, with the same guard and answers as over HTTP."""

    async def ask(
        token: str,
        method: str,
        path: Sequence[str],
        *,
        query: Mapping[str, str],
        body: bytes,
        prefer_seconds: float | None,
        parent: TraceParent | None = None,
    ) -> tuple[int, bytes]:
        """Call one route and return the status and the body of its answer. Cancelling ends only the wait.

        :param token: an agent's token, or the in-band key for routes of L{in_band}. Other credentials are refused.
        :param path: the segments of the path, not encoded.
        :param body: the JSON body, or empty.
        :param prefer_seconds: the seconds of C{Prefer: wait}, or None for no such header.
        :param parent: the caller's C{traceparent}, or None.
        """

    def in_band() -> IAgentRoutes:
        """Return these routes for callers that identify an agent by its session's in-band key instead of its token."""


class IAgentTools(Interface):
    """The tools of agents' sessions, for protocols other than MCP.

    Each method takes the key by which the agent's routes identify the session.
    """

    async def offered(key: str) -> Sequence[Any]:
        """Return the tools in a stable order, each with its C{name}, C{description} and C{input_schema}.

        :raises Unauthorized: if the key is unknown, or the session has ended.
        """

    async def call(
        key: str, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float
    ) -> Any:
        """Call one tool. Every answer is a result with its C{text}, C{is_error} and C{pending}.

        If no run was created, C{run_id} is empty.

        Cancelling ends only the wait, never a run.

        :param idempotency_key: the key that identifies the call. A repeated call with it is the same run.
        :param wait_seconds: the longest wait for a person.
        """
