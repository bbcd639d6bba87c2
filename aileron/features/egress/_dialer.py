"""Connects to the hosts of sessions: resolves a name, checks its addresses, and tries the permitted ones in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import IProtocol, IProtocolFactory

from aileron.base.addresses import may_be_connected

from ._sessions import EgressRefused

_CONNECT_SECONDS = 10
_RESOLVE_SECONDS = 10.0
_MOST_ADDRESSES = 4
_MOST_LOOKUPS = 4  # at the same time: a lookup occupies a thread of the daemon until the name server answers


class Unreachable(Exception):
    """The error for a host without an address, or without an address that answers."""

    why = "it cannot be reached"


@frozen
class Dialer:
    """The outgoing connections of the proxy.

    :ivar resolve: resolves a host's name to addresses.
    :ivar own_ports: returns the ports that the daemon listens on now.
    """

    reactor: Any
    resolve: Callable[[str], Deferred[Sequence[str]]]
    own_ports: Callable[[], Collection[int]]
    _lookups: DeferredSemaphore = field(init=False, factory=lambda: DeferredSemaphore(_MOST_LOOKUPS))

    async def connect(self, host_and_port: str, factory: IProtocolFactory, *, private_network: bool) -> IProtocol:
        """Connect to a host.

        :param private_network: True if the host may have private addresses or addresses of this machine.
        :raises EgressRefused: if the host has only addresses that are not permitted.
        :raises Unreachable: if no address of the host answers.
        """
        host, _, port = host_and_port.rpartition(":")
        for address in await self._list_permitted(host, int(port), private_network=private_network):
            connected = await self._try(address, int(port), factory)
            if connected is not None:
                return connected
        raise Unreachable

    async def _try(self, address: str, port: int, factory: IProtocolFactory) -> IProtocol | None:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        try:
            return await kind(self.reactor, address, port, timeout=_CONNECT_SECONDS).connect(factory)
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  (any error of the network stack means: try the next address)
            return None

    def _look_up(self, host: str) -> Deferred[Sequence[str]]:
        """Resolve a name as soon as fewer than L{_MOST_LOOKUPS} lookups run. A cancelled one counts until it ends."""
        answer: Deferred[Sequence[str]] = Deferred()

        def done(result: Any) -> None:
            if not answer.called:
                answer.callback(result)

        turn = self._lookups.run(lambda: None if answer.called else self.resolve(host))
        turn.addBoth(done)
        return answer

    async def _list_permitted(self, host: str, port: int, *, private_network: bool) -> Sequence[str]:
        try:
            addresses = await self._look_up(host).addTimeout(_RESOLVE_SECONDS, self.reactor)
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  (any error of the resolver means: the name is unknown)
            raise Unreachable from None
        if not addresses:
            raise Unreachable
        own = self.own_ports()
        good = [each for each in addresses if may_be_connected(each, port, own, private_network=private_network)]
        if not good:
            raise EgressRefused("it leads to a private address; see private_network in egress.toml")
        return good[:_MOST_ADDRESSES]
