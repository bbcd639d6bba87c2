"""Real connections to a daemon: one persistent pool a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import URI, Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.iweb import IAgent, IAgentEndpointFactory
from zope.interface import implementer

from ._agent import Daemon
from ._operator import Operator
from ._wire import Wire

_CONNECT_SECONDS = 5.0
_KEPT_CONNECTIONS = 8


@frozen
class Connections:
    """Kept-alive connections, and the clients that share them.

    :param reactor: provides time and TCP.
    """

    _reactor: Any
    _pool: HTTPConnectionPool = field(init=False)
    _agent: IAgent = field(init=False)

    @_pool.default
    def _make_pool(self) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(self._reactor, persistent=True)
        pool.maxPersistentPerHost = _KEPT_CONNECTIONS
        # Else what was cut off on a kept connection would be tried again in silence, and told as never sent.
        pool.retryAutomatically = False
        return pool

    @_agent.default
    def _make_agent(self) -> IAgent:
        made: IAgent = Agent.usingEndpointFactory(self._reactor, _Endpoints(self._reactor), self._pool)
        return made

    def daemon(self, url: str, token: str | None) -> Daemon:
        """The agent site.

        :raises ValueError: a malformed address or token; the message repeats neither.
        """
        return Daemon(self._wire(url, token))

    def operator(self, operator_url: str, token: str | None) -> Operator:
        """The operator site.

        :raises ValueError: a malformed address or token; the message repeats neither.
        """
        return Operator(self._wire(operator_url, token))

    def close(self) -> Deferred[None]:
        """Close what is kept alive.  Requests under way are their callers' to cancel."""
        closing: Callable[[], Deferred[None]] = self._pool.closeCachedConnections
        return closing()

    def _wire(self, url: str, token: str | None) -> Wire:
        return Wire(self._agent, url, token, self._reactor)


@implementer(IAgentEndpointFactory)
@frozen
class _Endpoints:
    """Makes the endpoint of a site once.  An agent asks at each request, also where it then takes a kept connection."""

    _reactor: Any
    _made: dict[tuple[bytes, bytes, int], IStreamClientEndpoint] = field(factory=dict)

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        site = uri.scheme, uri.host, uri.port
        if site not in self._made:
            self._made[site] = self._make(*site)
        return self._made[site]

    def _make(self, scheme: bytes, host: bytes, port: int) -> IStreamClientEndpoint:
        endpoint = HostnameEndpoint(self._reactor, host.decode("ascii"), port, timeout=_CONNECT_SECONDS)
        if scheme == b"http":
            return endpoint
        secured: IStreamClientEndpoint = wrapClientTLS(
            BrowserLikePolicyForHTTPS().creatorForNetloc(host, port), endpoint
        )
        return secured
