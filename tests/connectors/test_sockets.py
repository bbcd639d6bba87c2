"""Of the daemon's own transport, over real loopback sockets: what memory transports cannot show."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import TestCase

from aileron.connectors import HttpConnector, system_resolver, system_transport
from aileron.model.connectors import Outcome
from tests.connectors.certificate import Certificate
from tests.connectors.service import NOW, json_answer, spec_of

SPEC = """
[connector]
name = "local://me/loopback"
version = "1.0.0"
base_url = { bindable = true }
private_network = true

[operations.post]
method = "POST"
path = "/x"
json = { text = "${in.text}" }
"""


class Serving(Protocol):
    """Answers the first bytes that come, or hangs up hard."""

    reply: bytes | None = None

    def dataReceived(self, data: bytes) -> None:
        transport: Any = self.transport
        if self.reply is not None:
            transport.write(self.reply)
            return
        # Without lingering the kernel sends a reset, as a process that dies does.
        transport.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        transport.abortConnection()


def _running_reactor() -> Any:
    """Trial's."""
    from twisted.internet import reactor

    return reactor


class SocketTests(TestCase):
    """Real connections of this machine to itself."""

    def setUp(self) -> None:
        self.reactor = _running_reactor()
        self.own_ports: set[int] = set()
        transport = system_transport(self.reactor, lambda: self.own_ports)
        self.connector = HttpConnector(spec_of(SPEC), transport, self.reactor, lambda: NOW)

    def serve(self, reply: bytes | None, certificate: Certificate | None = None) -> int:
        """Listen; the port."""
        factory = Factory.forProtocol(type("Replying", (Serving,), {"reply": reply}))
        served: Any = factory if certificate is None else certificate.serving(factory, self.reactor)
        port = self.reactor.listenTCP(0, served, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        number: int = port.getHost().port
        return number

    async def outcome(self, base_url: str) -> Outcome:
        """What one sending comes to."""
        request = self.connector.prepare("post", {"text": "hello"}, base_url, "effect-1")
        return await self.connector.invoke(request, None, 20)

    async def test_answer(self) -> None:
        """A name is resolved by the system and its service asked."""
        port = self.serve(json_answer({"ok": True}))
        outcome = await self.outcome(f"http://localhost:{port}")
        self.assertEqual(({"ok": True}, None), (outcome.output, outcome.fault))

    async def test_own_port(self) -> None:
        """A port of the daemon's own is not connected to."""
        port = self.serve(json_answer({"ok": True}))
        self.own_ports.add(port)
        outcome = await self.outcome(f"http://localhost:{port}")
        self.assertEqual(("capability_denied", False), (outcome.fault and outcome.fault.kind, outcome.sent))

    async def test_reset(self) -> None:
        """A reset after the request was read may have happened: sent, and not classified."""
        outcome = await self.outcome(f"http://127.0.0.1:{self.serve(None)}")
        self.assertEqual((True, False), (outcome.sent, outcome.classified))

    async def test_certificate(self) -> None:
        """A certificate that the system does not trust: not sent."""
        port = self.serve(json_answer({}), Certificate.made("localhost"))
        outcome = await self.outcome(f"https://localhost:{port}")
        self.assertEqual(("network_error", False), (outcome.fault and outcome.fault.kind, outcome.sent))

    async def test_refused(self) -> None:
        """A port where nobody listens: not sent."""
        port = self.reactor.listenTCP(0, Factory(), interface="127.0.0.1")
        number = port.getHost().port
        await port.stopListening()
        outcome = await self.outcome(f"http://127.0.0.1:{number}")
        self.assertEqual(("network_error", False), (outcome.fault and outcome.fault.kind, outcome.sent))

    async def test_resolver(self) -> None:
        """An address resolves to itself, a name to its addresses."""
        resolve = system_resolver(self.reactor)
        literal: Sequence[str] = await resolve("192.0.2.1")
        self.assertEqual(["192.0.2.1"], literal)
        named: Sequence[str] = await resolve("localhost")
        self.assertTrue({"127.0.0.1", "::1"} & set(named))
