"""Real connections to a daemon: a few that are kept, for all clients of a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import URI, Agent
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from aileron.addresses import read_origin

from ._agent import Daemon
from ._courier import Courier, Site
from ._operator import Operator
from ._wire import MAX_BODY_BYTES, Wire

if TYPE_CHECKING:
    from twisted.internet.ssl import Certificate

_CONNECT_SECONDS = 5.0


@implementer(IAgentEndpointFactory)
@frozen
class _Endpoints:
    """The same ways to a site, for answers that do not end."""

    _of: Callable[[Site], IStreamClientEndpoint]

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """The way to the site of C{uri}."""
        return self._of((uri.scheme, uri.netloc))


@frozen
class Connections:
    """Kept-alive connections, and the clients that share them.

    :param reactor: provides time and TCP.
    :param authorities: who alone may vouch for a daemon that is reached by HTTPS; none: whom the system trusts.
    """

    _reactor: Any
    _authorities: tuple[Certificate, ...] = ()
    _courier: Courier = field(init=False)

    @_courier.default
    def _make_courier(self) -> Courier:
        return Courier(self._endpoint, MAX_BODY_BYTES)

    _streams: Agent = field(init=False)

    @_streams.default
    def _make_streams(self) -> Agent:
        agent: Agent = Agent.usingEndpointFactory(self._reactor, _Endpoints(self._endpoint))
        return agent

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

    def trusting(self, path: str) -> Connections:
        """Others, by HTTPS to whom the authorities in a file vouch for, and to nobody else.

        :raises ValueError: there is no such file, or no authority in it; the message repeats nothing of it.
        """
        from ._trust import certificates_in

        return Connections(self._reactor, certificates_in(path))

    def close(self) -> Deferred[Any]:
        """Close what is kept alive.  Requests under way are their callers' to cancel."""
        return self._courier.close()

    def _wire(self, url: str, token: str | None) -> Wire:
        return Wire(self._courier, url, token, self._reactor, self._streams)

    def _endpoint(self, site: Site) -> IStreamClientEndpoint:
        scheme, authority = site
        origin = read_origin(f"{scheme.decode('ascii')}://{authority.decode('ascii')}")
        endpoint = HostnameEndpoint(self._reactor, origin.host, origin.port, timeout=_CONNECT_SECONDS)
        if scheme == b"http":
            return endpoint
        from ._trust import policy_of  # by HTTPS a daemon is reached seldom, and its modules cost a start

        secured: IStreamClientEndpoint = wrapClientTLS(
            policy_of(self._authorities).creatorForNetloc(origin.host.encode("ascii"), origin.port), endpoint
        )
        return secured
