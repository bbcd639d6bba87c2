"""Binds the two sites to loopback and keeps their ports from one life of the daemon to the next."""

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
"""Connections that the system queues while the daemon is busy or its sites are full: a client that finds no room tries
again after a second, then two, then four.  An endpoint of the operator's choice says its own."""


@frozen
class Bound:
    """One site's sockets.

    :ivar hosts: every C{name:port} by which a client may call it.
    :ivar url: the one that we write down.
    :ivar others: every C{name:port} by which programs may call it, and no browser.
    """

    ports: tuple[IListeningPort, ...]
    port: int
    hosts: tuple[str, ...]
    url: str
    others: tuple[str, ...] = ()

    def add_names(self, names: Iterable[str]) -> Bound:
        """Return the same with further names; of a site with a name for browsers alone they are for programs."""
        further = tuple(f"{name}:{self.port}" for name in names)
        return evolve(self, others=self.others + further) if self.others else evolve(self, hosts=self.hosts + further)


async def bind_agent_site(reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None) -> Bound:
    """Bind the agent site to 127.0.0.1, or to C{endpoint}.

    :param wanted: the port to try first; a taken one is replaced, with a warning.
    :param endpoint: a Twisted server endpoint string, chosen by the operator.
    :raises CannotListenError: it cannot be bound.
    :raises InvalidRequest: the endpoint is none of TCP.
    """
    return _at_one_address(await _listen(reactor, site, wanted, endpoint, "agent"))


async def bind_operator_site(
    reactor: Any, site: IProtocolFactory, wanted: int | None, endpoint: str | None, label: str | None = None
) -> Bound:
    """Bind the operator site to one port of 127.0.0.1 and [::1], so that C{localhost} is nobody else's.

    Without IPv6 the first is enough.  Other parameters and errors as for L{bind_agent_site}; at an endpoint of the
    operator's choice C{localhost} might be another's by its other address, so that name is not ours then.

    :param label: of the name that browsers are served at, below L{PAGES_DOMAIN}; L{None}: at C{localhost}.
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
            wanted = None  # somebody else has that port of ::1
        else:
            return _as_localhost(port, label, first, second)
    raise CannotListenError(_LOOPBACK_6, wanted or 0, OSError(errno.EADDRINUSE, "no port is free on both addresses"))


async def unbind(bound: Bound) -> None:
    """Take no more connections."""
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
    """Call the site by its address alone; where all were bound, by that of loopback."""
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
