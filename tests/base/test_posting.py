"""Posts to URLs of the operator's: where they lead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IHostnameResolver, IResolutionReceiver
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.base.posting import post


@implementer(IHostnameResolver)
class _Resolver:
    """A resolver that says of each name that it is another machine, and only of addresses what they are."""

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type[IAddress]] | None = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        """Resolve at once."""
        found = hostName if hostName.replace(".", "").isdigit() else "192.0.2.1"
        resolutionReceiver.resolutionBegan(cast("Any", self))
        resolutionReceiver.addressResolved(IPv4Address("TCP", found, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolutionReceiver


class PostTests(SynchronousTestCase):
    """One post over a reactor without a network."""

    def dial(self, url: str) -> tuple[str, int, bytes]:
        """The host and port of the connection, and what is sent to it."""
        reactor = MemoryReactorClock()
        reactor.nameResolver = _Resolver()
        posting = Deferred.fromCoroutine(post(url, b"{}", reactor, {"Authorization": "Bearer x"}))
        posting.addErrback(lambda failure: None)
        self.addCleanup(posting.cancel)
        reactor.advance(0)
        [(host, port, factory, *_)] = reactor.tcpClients
        protocol, transport = factory.buildProtocol(IPv4Address("TCP", host, port)), StringTransport()
        assert protocol is not None
        protocol.makeConnection(transport)
        return host, port, transport.value()

    def test_name(self) -> None:
        """The name of this machine is not resolved, and is sent as the host."""
        for url in ("http://localhost:4318/v1/traces", "http://LOCALHOST:4318/v1/traces"):
            host, port, sent = self.dial(url)
            self.assertEqual((host, port), ("127.0.0.1", 4318))
            self.assertTrue(sent.startswith(b"POST /v1/traces HTTP/1.1\r\n"))
            self.assertIn(b"host: localhost:4318\r\n", sent.lower())

    def test_others(self) -> None:
        """An address is used as it is, with its query, and other names are resolved."""
        host, port, sent = self.dial("http://127.0.0.2/a?b=c")
        self.assertEqual((host, port), ("127.0.0.2", 80))
        self.assertTrue(sent.startswith(b"POST /a?b=c HTTP/1.1\r\n"))
        self.assertIn(b"host: 127.0.0.2\r\n", sent.lower())
        self.assertEqual(self.dial("http://anchor.example/a")[:2], ("192.0.2.1", 80))
