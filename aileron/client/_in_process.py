"""Asks the agent site's routes in the daemon's own process, with the same answers and errors as over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.values import JSON

from ._answers import Answer, DaemonUnreachable
from ._requests import Query, answer_in_time, encode_body

if TYPE_CHECKING:
    from aileron.interfaces import IAgentRoutes


@frozen
class InProcessClient:
    """Asks as L{aileron.client.DaemonClient} does, without a connection.

    :ivar routes: of the agent site.
    :ivar token: the session's, shown nowhere; it is looked up anew for each request.
    """

    routes: IAgentRoutes
    token: str = field(repr=False)
    clock: IReactorTime

    async def ask(
        self,
        method: str,
        *path: str,
        query: Query | None = None,
        body: Mapping[str, JSON] | None = None,
        prefer_seconds: float | None = None,
        wait_seconds: float = 0.0,
    ) -> Answer:
        """Ask one route and understand its answer, as C{DaemonClient.ask} does."""
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        asking = self.routes.ask(
            self.token, method, path, query=given, body=encode_body(body) or b"", prefer_seconds=prefer_seconds
        )
        return await answer_in_time(asking, self.clock, wait_seconds)

    async def follow(self, *path: str, on_event: Callable[[], None]) -> None:
        """Refuse: a stream of events comes over HTTP only.

        :raises DaemonUnreachable: always.
        """
        raise DaemonUnreachable("A stream of events is followed over HTTP only.")
