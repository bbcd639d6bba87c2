"""An HTTP service on a free port of 127.0.0.1 that leaves nothing in the reactor when it stops."""

import attrs
from twisted.internet.interfaces import IListeningPort
from twisted.protocols.policies import WrappingFactory
from twisted.web.resource import IResource
from twisted.web.server import Site

from tests.functional.reactor import IKitReactor, until


@attrs.define
class LoopbackSite:
    """One resource tree, listening from `listen` until `stop`."""

    _reactor: IKitReactor
    _factory: WrappingFactory
    _port: IListeningPort

    @classmethod
    def listen(cls, reactor: IKitReactor, root: IResource) -> "LoopbackSite":
        """Serve ``root`` on a port that the system chooses."""
        factory = WrappingFactory(Site(root))
        return cls(reactor, factory, reactor.listenTCP(0, factory, interface="127.0.0.1"))

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self._port.getHost().port)

    @property
    def url(self) -> str:
        """The address without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Close the port and every connection, and return when they are gone."""
        await self._port.stopListening()
        for connection in list(self._factory.protocols):
            connection.transport.abortConnection()
        await until(self._reactor, lambda: not self._factory.protocols, 5, "connections closed")
