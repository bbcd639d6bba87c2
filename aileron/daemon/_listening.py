"""Binds the two sites to loopback and keeps their ports from one life of the daemon to the next."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Any

from attrs import frozen
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IProtocolFactory
from twisted.logger import Logger

_log = Logger()
_LOOPBACK_4, _LOOPBACK_6 = "127.0.0.1", "::1"
_NO_IPV6 = frozenset((errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT))
_TRIES = 20


@frozen
class Bound:
    """One site's sockets.

    :ivar hosts: every C{name:port} by which a client may call it.
    :ivar url: the one that we write down.
    """

    ports: tuple[IListeningPort, ...]
    port: int
    hosts: tuple[str, ...]
    url: str

    def called(self, names: Iterable[str]) -> tuple[str, ...]:
        """Every C{name:port} by which a client may call it, further names included."""
        return (*self.hosts, *(f"{name}:{self.port}" for name in names))


async def bind_agent_site(reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None) -> Bound:
    """Bind the agent site to 127.0.0.1, or to C{endpoint}.

    :param wanted: the port to try first; a taken one is replaced, with a warning.
    :param endpoint: a Twisted server endpoint string, chosen by the operator.
    :raises CannotListenError: it cannot be bound.
    """
    listening = await _listen(reactor, site, wanted, endpoint, "agent")
    host, port = _address(listening)
    return Bound((listening,), port, (f"{host}:{port}",), f"http://{host}:{port}")


async def bind_operator_site(reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None) -> Bound:
    """Bind the operator site to one port of 127.0.0.1 and [::1], so that C{localhost} is nobody else's.

    Without IPv6 the first is enough.  Parameters and errors as for L{bind_agent_site}.
    """
    for _ in range(_TRIES):
        first = await _listen(reactor, site, wanted, endpoint, "operator")
        host, port = _address(first)
        if endpoint is not None:
            return Bound((first,), port, (f"{host}:{port}", f"localhost:{port}"), f"http://localhost:{port}")
        try:
            second = reactor.listenTCP(port, site, interface=_LOOPBACK_6)
        except CannotListenError as error:
            if getattr(error.socketError, "errno", None) in _NO_IPV6:
                return _as_localhost((first,), port)
            await _stop(first)
            wanted = None  # somebody else has that port of ::1
        else:
            return _as_localhost((first, second), port)
    raise CannotListenError(_LOOPBACK_6, wanted or 0, OSError(errno.EADDRINUSE, "no port is free on both addresses"))


async def unbind(bound: Bound) -> None:
    """Take no more connections."""
    for port in bound.ports:
        await _stop(port)


def _as_localhost(ports: tuple[IListeningPort, ...], port: int) -> Bound:
    return Bound(ports, port, (f"localhost:{port}", f"{_LOOPBACK_4}:{port}"), f"http://localhost:{port}")


async def _listen(
    reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None, name: str
) -> IListeningPort:
    if endpoint is not None:
        chosen: IListeningPort = await serverFromString(reactor, endpoint).listen(site)
        return chosen
    try:
        port: IListeningPort = reactor.listenTCP(wanted or 0, site, interface=_LOOPBACK_4)
    except CannotListenError:
        if not wanted:
            raise
        _log.warn("port {port} of the {name} site is taken: another is used from now on", port=wanted, name=name)
        port = reactor.listenTCP(0, site, interface=_LOOPBACK_4)
    return port


def _address(listening: IListeningPort) -> tuple[str, int]:
    address = listening.getHost()
    return address.host, address.port  # type: ignore[attr-defined]


async def _stop(port: IListeningPort) -> None:
    stopped = port.stopListening()
    if stopped is not None:
        await stopped
