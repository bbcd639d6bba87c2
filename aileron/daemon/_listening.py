"""Binds the two sites to loopback and keeps their ports from one start of the daemon to the next."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Any

from attrs import evolve, frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IProtocolFactory
from twisted.logger import Logger

from aileron.base.addresses import PAGES_DOMAIN
from aileron.model.errors import InvalidRequest

_log = Logger()
_LOOPBACK_4, _LOOPBACK_6 = "127.0.0.1", "::1"
_OF_ALL = {"0.0.0.0": _LOOPBACK_4, "::": _LOOPBACK_6}  # noqa: S104  # how to call it, nothing is bound
_NO_IPV6 = frozenset((errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT))
_TRIES = 20
_BACKLOG = 4096
"""Connections that the system queues while the daemon is busy or its sites are full. A client that finds the queue
full tries again after a second, then two, then four. An endpoint set by the operator has its own backlog."""


@frozen
class Bound:
    """The sockets of one site.

    :ivar hosts: every C{name:port} by which a client may call the site.
    :ivar url: the URL that is written to the home.
    :ivar others: every C{name:port} by which programs, but no browser, may call the site.
    """

    ports: tuple[IListeningPort, ...]
    port: int
    hosts: tuple[str, ...]
    url: str
    others: tuple[str, ...] = ()

    def add_names(self, names: Iterable[str]) -> Bound:
        """Return a copy with further host names.

        If browsers have a host name of their own, the further names are for programs only.
        """
        further = tuple(f"{name}:{self.port}" for name in names)
        return evolve(self, others=self.others + further) if self.others else evolve(self, hosts=self.hosts + further)


async def bind_agent_site(reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None) -> Bound:
    """Bind the agent site to 127.0.0.1, or to C{endpoint}.

    :param wanted: the port to try first. If it is taken, another one is bound and a warning is logged.
    :param endpoint: a Twisted server endpoint string, chosen by the operator.
    :raises CannotListenError: if the site cannot be bound.
    :raises InvalidRequest: if the endpoint is not a TCP endpoint.
    """
    return _at_one_address(await _listen(reactor, site, wanted, endpoint, "agent"))


async def bind_operator_site(
    reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None, label: str | None = None
) -> Bound:
    """Bind the operator site to one port of both 127.0.0.1 and [::1], so that no other program can own C{localhost}.

    Without IPv6 only 127.0.0.1 is bound. See L{bind_agent_site} for the other parameters. At an endpoint set by the
    operator, another program may have C{localhost} by IPv6, so the site does not use that name.

    :param label: the label below L{PAGES_DOMAIN} at which browsers are served, or None for C{localhost}.
    :raises CannotListenError: if no port could be bound.
    :raises InvalidRequest: if the endpoint is not a TCP endpoint.
    """
    if endpoint is not None:
        return _at_one_address(await _listen(reactor, site, wanted, endpoint, "operator"))
    for _ in range(_TRIES):
        first = await _listen(reactor, site, wanted, None, "operator")
        port = first.getHost().port  # type: ignore[attr-defined]
        try:
            second = reactor.listenTCP(port, site, _BACKLOG, _LOOPBACK_6)
        except CannotListenError as error:
            if getattr(error.socketError, "errno", None) in _NO_IPV6:
                return _as_localhost(port, label, first)
            await _stop(first)
            wanted = None  # another program has that port of ::1
        else:
            return _as_localhost(port, label, first, second)
    raise CannotListenError(_LOOPBACK_6, wanted or 0, OSError(errno.EADDRINUSE, "no port is free on both addresses"))


async def unbind(bound: Bound) -> None:
    """Stop accepting connections."""
    for port in bound.ports:
        await _stop(port)


def _as_localhost(port: int, label: str | None, *listening: IListeningPort) -> Bound:
    names = ("localhost", _LOOPBACK_4, f"[{_LOOPBACK_6}]")[: len(listening) + 1]
    hosts = tuple(f"{name}:{port}" for name in names)
    if label is None:
        return Bound(listening, port, hosts, f"http://localhost:{port}")
    host = f"{label}.{PAGES_DOMAIN}:{port}"
    return Bound(listening, port, (host,), f"http://{host}", hosts)


def _at_one_address(listening: IListeningPort) -> Bound:
    """Return the sockets with only their address as host name, or that of loopback if they accept at all addresses."""
    address = listening.getHost()
    port: int = address.port  # type: ignore[attr-defined]
    host: str = address.host  # type: ignore[attr-defined]
    host = _OF_ALL.get(host, host)
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Bound((listening,), port, (name,), f"http://{name}")


async def _listen(
    reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None, name: str
) -> IListeningPort:
    if endpoint is not None:
        chosen: IListeningPort = await serverFromString(reactor, endpoint).listen(site)
        if isinstance(chosen.getHost(), (IPv4Address, IPv6Address)):
            return chosen
        await _stop(chosen)
        raise InvalidRequest(f"The {name} site listens at an address and port, so its endpoint must be of TCP.")
    try:
        port: IListeningPort = reactor.listenTCP(wanted or 0, site, _BACKLOG, _LOOPBACK_4)
    except CannotListenError:
        if not wanted:
            raise
        _log.warn("port {port} of the {name} site is taken: another is used from now on", port=wanted, name=name)
        port = reactor.listenTCP(0, site, _BACKLOG, _LOOPBACK_4)
    return port


async def _stop(port: IListeningPort) -> None:
    stopped = port.stopListening()
    if stopped is not None:
        await stopped
