"""An HTTP service on a free port of 127.0.0.1 that leaves nothing in the reactor when it stops."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import ServerFactory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request, Site

from tests.functional.reactor import IKitReactor, until


@attrs.define
class LoopbackSite:
    """One resource tree, listening from `listen` until `stop`."""

    _reactor: IKitReactor
    _factory: WrappingFactory[ProtocolWrapper]
    _port: IListeningPort

    @classmethod
    def listen(cls, reactor: IKitReactor, root: IResource, port: int = 0) -> "LoopbackSite":
        """Serve ``root``.

        :param port: 0: one that the system chooses.
        :raises CannotListenError: it is taken.
        """
        factory = WrappingFactory(Site(root))
        return cls(reactor, factory, reactor.listenTCP(port, cast(ServerFactory, factory), interface="127.0.0.1"))

    @property
    def url(self) -> str:
        """The address without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return cast(IPv4Address, self._port.getHost()).port

    async def stop(self) -> None:
        """Close the port and every connection, and return when they are gone."""
        await maybeDeferred(self._port.stopListening)
        for connection in list(self._factory.protocols):
            connection.abortConnection()
        await until(self._reactor, lambda: not self._factory.protocols, 30, "connections closed")


def abort(request: Request) -> None:
    """Reset the connection of a request."""
    cast(ProtocolWrapper, request.transport).abortConnection()


def headers_of(request: Request) -> dict[str, str]:
    """All headers by lower-case name, repeated ones joined by a comma."""
    return {
        name.decode("latin-1").lower(): b", ".join(values).decode("latin-1")
        for name, values in request.requestHeaders.getAllRawHeaders()
    }


def json_of(request: Request) -> Mapping[str, Any] | None:
    """The body as JSON; None if there is none."""
    assert request.content is not None
    content = request.content.read()
    return json.loads(content) if content else None


class Neighbour(Resource):
    """A page of another port on this machine.

    :ivar cookies: what browsers told it with each request, by the name of the host that they asked; they ask for more
        than the page, an icon for one, and when they like.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cookies: defaultdict[str, list[str]] = defaultdict(list)

    def render_GET(self, request: Request) -> bytes:
        """Note the cookies."""
        self.cookies[request.getRequestHostname().decode("ascii")].append(request.getHeader("Cookie") or "")
        return b"<!doctype html><p>neighbour</p>"
