"""A site: resources behind L{Channel}s."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.web.http import Request
from twisted.web.resource import IResource
from twisted.web.server import Site

from ._channel import Channel, MemoryRequest
from ._checks import SiteRules
from ._crowd import MOST_CONNECTIONS, Crowd

IDLE_SECONDS = 60.0
REQUEST_SECONDS = 30.0


class GuardedSite(Site):
    """A site whose connections keep L{SiteRules}.

    :ivar rules: may be set anew once the port is known; rules without hosts refuse everything.
    :ivar crowd: the connections that it holds.
    :ivar request_seconds: how long one request may take to come, head and body.
    """

    protocol = Channel  # type: ignore[assignment]  # Twisted types it as its own switching wrapper
    requestFactory = MemoryRequest

    def __init__(
        self,
        resource: IResource,
        rules: SiteRules,
        reactor: IReactorTime,
        *,
        idle_seconds: float = IDLE_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        super().__init__(resource, timeout=idle_seconds, reactor=reactor)  # type: ignore[no-untyped-call]
        self.rules = rules
        self.crowd = Crowd(most_connections)
        self.request_seconds = request_seconds

    def startFactory(self) -> None:
        """Open no access log, and keep no clock for one."""

    def stopFactory(self) -> None:
        """There is nothing to close."""

    def log(self, request: Request) -> None:
        """Write no line per request: a path may hold a key."""
