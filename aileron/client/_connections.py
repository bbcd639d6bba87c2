"""Connections to a daemon: a small keep-alive pool, shared by all clients of a process."""

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
    """A keep-alive pool and the clients that share it.

    No request is retried: the caller learns that it may have arrived, and knows which requests are safe to repeat.

    :param reactor: provides time and TCP.
    :param authorities: the only authorities trusted for a daemon reached by HTTPS; if empty, those of the system.
    """

    _reactor: Any
    _authorities: tuple[Certificate, ...] = ()
    _pool: HTTPConnectionPool = field(init=False)
    _agent: Agent = field(init=False)

    @_pool.default
    def _make_pool(self) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(self._reactor)
        pool.maxPersistentPerHost = MAX_IDLE_CONNECTIONS
        # A failed retry would report that nothing was sent, although the first attempt was.
        pool.retryAutomatically = False
        return pool

    @_agent.default
    def _make_agent(self) -> Agent:
        agent: Agent = Agent.usingEndpointFactory(
            self._reactor, _Endpoints(self._reactor, self._authorities), self._pool
        )
        return agent

    def client(self, url: str, token: str | None) -> DaemonClient:
        """Return a client for one of the sites.

        :raises ValueError: if the address or token is malformed. The message repeats neither.
        """
        return DaemonClient(self._agent, url, token, self._reactor)

    def daemon(self, url: str, token: str | None) -> Daemon:
        """Return an agent-site client for the URL, authorized with the token if there is one.

        :raises ValueError: if the URL or token is malformed. The message repeats neither.
        """
        return Daemon(self.client(url, token))

    def operator(self, operator_url: str, token: str | None) -> Operator:
        """Return an operator-site client for the URL, authorized with the token if there is one.

        :raises ValueError: if the URL or token is malformed. The message repeats neither.
        """
        return Operator(self.client(operator_url, token))

    def trusting(self, path: str) -> Connections:
        """Return another pool that trusts, for HTTPS, only the authorities in a file.

        :raises ValueError: if the file does not exist or has no authority. The message repeats none of its content.
        """
        from ._tls import load_certificates

        return Connections(self._reactor, load_certificates(path))

    def close(self) -> Deferred[Any]:
        """Close the idle connections. Callers must cancel requests under way themselves."""
        closing: Deferred[Any] = self._pool.closeCachedConnections()
        return closing


@implementer(IAgentEndpointFactory)
@frozen
class _Endpoints:
    """A factory of endpoints, whose TLS verifies the certificate chain and the host name."""

    _reactor: Any
    _authorities: tuple[Certificate, ...]

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """Return the endpoint for the site of C{uri}."""
        origin = read_origin(f"{uri.scheme.decode('ascii')}://{uri.netloc.decode('ascii')}")
        is_plain = uri.scheme == b"http"
        host = connectable(origin.host) if is_plain else origin.host
        endpoint = HostnameEndpoint(self._reactor, host, origin.port, timeout=_CONNECT_SECONDS)
        if is_plain:
            return GuardedEndpoint(endpoint, MAX_HEAD_BYTES)
        from ._tls import make_tls_policy  # HTTPS is rare, and importing its modules slows the start

        creator = make_tls_policy(self._authorities).creatorForNetloc(origin.host.encode("ascii"), origin.port)
        return GuardedEndpoint(wrapClientTLS(creator, endpoint), MAX_HEAD_BYTES)
