"""Real connections to a daemon: a few that are kept, for all clients of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import URI, Agent, HTTPConnectionPool
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from aileron.base.addresses import connectable, read_origin
from aileron.base.outgoing import GuardedEndpoint

from ._requests import DaemonClient
from ._sites import Daemon, Operator

if TYPE_CHECKING:
    from twisted.internet.ssl import Certificate

MAX_IDLE_CONNECTIONS = 8
MAX_HEAD_BYTES = 64 * 1024
_CONNECT_SECONDS = 5.0


@frozen
class Connections:
    """Kept-alive connections, and the clients that share them.

    Nothing is ever sent a second time: who asked is told that it may have arrived, and knows what may be repeated.

    :param reactor: provides time and TCP.
    :param authorities: who alone may vouch for a daemon that is reached by HTTPS; none: whom the system trusts.
    """

    _reactor: Any
    _authorities: tuple[Certificate, ...] = ()
    _pool: HTTPConnectionPool = field(init=False)
    _agent: Agent = field(init=False)

    @_pool.default
    def _make_pool(self) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(self._reactor)
        pool.maxPersistentPerHost = MAX_IDLE_CONNECTIONS
        # A second attempt that finds nobody would say that nothing was sent, where the first was.
        pool.retryAutomatically = False
        return pool

    @_agent.default
    def _make_agent(self) -> Agent:
        agent: Agent = Agent.usingEndpointFactory(
            self._reactor, _Endpoints(self._reactor, self._authorities), self._pool
        )
        return agent

    def client(self, url: str, token: str | None) -> DaemonClient:
        """Make a client of either site.

        :raises ValueError: a malformed address or token; the message repeats neither.
        """
        return DaemonClient(self._agent, url, token, self._reactor)

    def daemon(self, url: str, token: str | None) -> Daemon:
        """Connect to the agent site of a L{client}."""
        return Daemon(self.client(url, token))

    def operator(self, operator_url: str, token: str | None) -> Operator:
        """Connect to the operator site of a L{client}."""
        return Operator(self.client(operator_url, token))

    def trusting(self, path: str) -> Connections:
        """Others, by HTTPS to whom the authorities in a file vouch for, and to nobody else.

        :raises ValueError: there is no such file, or no authority in it; the message repeats nothing of it.
        """
        from ._tls import load_certificates

        return Connections(self._reactor, load_certificates(path))

    def close(self) -> Deferred[Any]:
        """Close what is kept alive.  Requests under way are their callers' to cancel."""
        closing: Deferred[Any] = self._pool.closeCachedConnections()
        return closing


@implementer(IAgentEndpointFactory)
@frozen
class _Endpoints:
    """Finds the way to a site, whose TLS verifies chain and name."""

    _reactor: Any
    _authorities: tuple[Certificate, ...]

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return the way to the site of C{uri}."""
        origin = read_origin(f"{uri.scheme.decode('ascii')}://{uri.netloc.decode('ascii')}")
        is_plain = uri.scheme == b"http"
        host = connectable(origin.host) if is_plain else origin.host
        endpoint = HostnameEndpoint(self._reactor, host, origin.port, timeout=_CONNECT_SECONDS)
        if is_plain:
            return GuardedEndpoint(endpoint, MAX_HEAD_BYTES)
        from ._tls import make_tls_policy  # by HTTPS a daemon is reached seldom, and its modules cost a start

        creator = make_tls_policy(self._authorities).creatorForNetloc(origin.host.encode("ascii"), origin.port)
        return GuardedEndpoint(wrapClientTLS(creator, endpoint), MAX_HEAD_BYTES)
