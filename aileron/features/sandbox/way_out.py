"""The connection of a sandbox to the hosts that the operator allows, through a proxy of the daemon.

The launcher, which runs outside, opens each connection to the proxy, so no program inside holds a key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, ITCPTransport
from twisted.internet.protocol import ServerFactory, connectionDone
from twisted.internet.threads import deferToThreadPool
from twisted.protocols.portforward import Proxy, ProxyClient, ProxyClientFactory
from twisted.python.failure import Failure

from aileron.base.outgoing import send_at_once
from aileron.model.tool_claims import NO_CALLER, ToolCaller

from .callers import Address
from .direct import DirectHosts

PROXY_PORT = 3128
"""The proxy's port inside the sandbox. If the agent site has the same port, the proxy gets the next one."""

LOOPBACK = "127.0.0.1"
"""The address at which the proxy is reached, in a sandbox and outside."""

_MOST_CONNECTIONS = 128
"""The most connections of one sandbox. The proxy accepts half as many. Each needs a ticket from the daemon first."""

_NPM_CACHE = "/tmp/npm-cache"  # noqa: S108  # the sandbox has its own /tmp
"""npm's cache: npm fails if its cache is not writable, as in the user's home."""

_NO_PROXY = "localhost,127.0.0.1,::1"
_FAILED = b"HTTP/1.1 502 Aileron: the daemon does not answer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@frozen
class WayOut:
    """The network access of a sandbox.

    :ivar words: presets and hosts that the sandbox may reach, as the user wrote them.
    :ivar dial: asks the daemon for one connection of a process, and returns the proxy's port and the connection's first
        bytes.
    :ivar names_callers: whether to report to the daemon which process opened a connection.
    :ivar direct: the hosts that programs reach even if they ignore the proxy, or None if there are none.
    """

    words: tuple[str, ...]
    dial: Callable[[ToolCaller], Awaitable[tuple[int, bytes]]]
    names_callers: bool = False
    direct: DirectHosts | None = None

    def factory(self, reactor: Any, find_caller: Callable[[Address, Address], ToolCaller]) -> ServerFactory:
        """Return the factory that serves the connections from inside the sandbox.

        :param find_caller: returns the process that opened a connection from one address to another. It is called in a
            thread.
        """

        async def dial(transport: ITCPTransport) -> tuple[int, bytes]:
            if not self.names_callers:
                return await self.dial(NO_CALLER)
            client, server = _read_address(transport.getPeer()), _read_address(transport.getHost())
            found = deferToThreadPool(reactor, reactor.getThreadPool(), find_caller, client, server)
            return await self.dial(await found)

        return _InsideFactory(reactor, dial)


def proxy_variables(port: int) -> Mapping[str, str]:
    """Return the environment variables that make programs in a sandbox use the proxy, and npm a cache of its own.

    Requests to Aileron itself do not go through the proxy.
    """
    url = f"http://{LOOPBACK}:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {
        **dict.fromkeys((*names, *map(str.upper, names)), url),
        **dict.fromkeys(("no_proxy", "NO_PROXY", "npm_config_noproxy"), _NO_PROXY),
        **dict.fromkeys(("npm_config_proxy", "npm_config_https_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY"), url),
        **dict.fromkeys(("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"), url),
        "NODE_USE_ENV_PROXY": "1",
        "npm_config_cache": _NPM_CACHE,
    }


def https_variables(port: int) -> Mapping[str, str]:
    """Return the environment variables that make programs outside of a sandbox use the proxy for HTTPS."""
    url = f"http://{LOOPBACK}:{port}"
    names = ("https_proxy", "HTTPS_PROXY", "npm_config_https_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY")
    return {
        **dict.fromkeys((*names, "YARN_HTTPS_PROXY"), url),
        **dict.fromkeys(("no_proxy", "NO_PROXY", "npm_config_noproxy"), _NO_PROXY),
        "NODE_USE_ENV_PROXY": "1",
    }


def _read_address(address: Any) -> Address:
    return address.host, address.port


class _Outside(ProxyClient):
    """The connection to the proxy. The first bytes on it are those that the daemon gave, which admit the connection."""

    peer: Any
    transport: Any
    factory: Any

    def connectionMade(self) -> None:
        send_at_once(self.transport)
        if self.peer.gone:
            self.transport.loseConnection()
            return
        self.transport.write(self.factory.opening)
        super().connectionMade()


class _OutsideFactory(ProxyClientFactory):
    """A factory of one connection to the proxy, for a connection that came from inside the sandbox."""

    protocol = _Outside
    noisy = False

    def __init__(self, server: _Inside, opening: bytes) -> None:
        self.server, self.opening = server, opening

    def clientConnectionFailed(self, connector: object, reason: Failure) -> None:
        self.server.fail()


class _Inside(Proxy):
    """A connection from inside the sandbox, paused until the connection to the proxy is established."""

    transport: Any
    factory: Any

    def __init__(self, reactor: Any, dial: Callable[[ITCPTransport], Awaitable[tuple[int, bytes]]]) -> None:
        self._reactor, self._dial = reactor, dial
        self._dialing: Deferred[None] | None = None
        self.gone = False

    def connectionMade(self) -> None:
        self.factory.count += 1
        send_at_once(self.transport)
        self.transport.pauseProducing()
        self._dialing = Deferred.fromCoroutine(self._connect())
        self._dialing.addErrback(lambda _: None if self.gone else self.fail())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.gone = True
        if self._dialing is not None:
            self._dialing.cancel()
        self.factory.count -= 1
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def fail(self) -> None:
        """Answer the program in the sandbox that the daemon does not respond, and close the connection."""
        self.transport.write(_FAILED)
        self.transport.loseConnection()

    async def _connect(self) -> None:
        port, opening = await self._dial(self.transport)
        self._reactor.connectTCP(LOOPBACK, port, _OutsideFactory(self, opening))


@define(eq=False)
class _InsideFactory(ServerFactory):
    """The factory of the protocols for connections from inside the sandbox.

    :ivar count: the number of open connections.
    """

    noisy = False
    count = 0

    _reactor: Any
    _dial: Callable[[ITCPTransport], Awaitable[tuple[int, bytes]]]

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a connection from inside the sandbox, or None if there are too many."""
        if self.count >= _MOST_CONNECTIONS:
            return None
        inside = _Inside(self._reactor, self._dial)
        inside.factory = self
        return inside
