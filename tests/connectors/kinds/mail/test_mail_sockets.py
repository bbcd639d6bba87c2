"""Of mail over real loopback sockets: a server that dies, drips, repeats itself or repeats the password."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from twisted.internet.protocol import Factory, connectionDone
from twisted.internet.task import LoopingCall
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from aileron.base.json import JSON
from aileron.connectors import MailConnector, system_transport
from aileron.model.connectors import Outcome
from aileron.testing import MemoryCredential
from tests.connectors.mailhost import PAIR, PASSWORD, mail_spec
from tests.connectors.service import NOW

FILE = """
[connector]
name = "local://me/mail"
version = "1.0.0"
kind = "mail"
private_network = true

[mail]
from = "ada@mail.example"

[smtp]
host = "localhost"
port = {port}
tls = "none"

[credential]
kind = "basic"
"""
MAIL: Mapping[str, JSON] = {"to": "bob@other.example", "subject": "Hi", "text": "Hello"}
USUAL = {
    b"CONNECT": b"220 ready",
    b"EHLO": b"250-here\r\n250 AUTH PLAIN",
    b"AUTH": b"235 in",
    b"MAIL": b"250 ok",
    b"RCPT": b"250 ok",
    b"DATA": b"354 go",
    b".": b"250 taken",
}
STEPS = tuple(USUAL)


class Hostile(LineReceiver):
    """An SMTP server that misbehaves as its test wants."""

    answers: Mapping[bytes, bytes | None] = USUAL
    drips = repeats = False
    taken: list[bytes]
    transport: Any

    def connectionMade(self) -> None:
        self.waiting, self.writing = b"", LoopingCall(self._drip)
        self.answer(b"CONNECT")

    def lineReceived(self, line: bytes) -> None:
        step = next((each for each in STEPS if line.upper().startswith(each)), None)
        if line == b".":
            self.taken.append(b"")
        if step is not None:
            self.answer(step)

    def answer(self, step: bytes) -> None:
        reply = self.answers[step]
        if reply is None:
            # Without lingering the kernel sends a reset, as a process that dies does.
            self.transport.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abortConnection()
        elif self.drips:
            self.waiting += reply + b"\r\n"
            if not self.writing.running:
                self.writing.start(0.001)
        else:
            self.transport.write((reply + b"\r\n") * (2 if self.repeats else 1))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.writing.running:
            self.writing.stop()

    def _drip(self) -> None:
        self.transport.write(self.waiting[:1])
        self.waiting = self.waiting[1:]
        if not self.waiting:
            self.writing.stop()


class MailSocketTests(TestCase):
    """Real connections of this machine to itself."""

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.own_ports: set[int] = set()
        self.taken: list[bytes] = []

    async def outcome(self, seconds: float = 20, own: bool = False, **behaviour: Any) -> Outcome:
        """What one sending to such a server comes to."""
        factory = Factory.forProtocol(type("Peer", (Hostile,), {"taken": self.taken, **behaviour}))
        port = self.reactor.listenTCP(0, factory, interface="127.0.0.1")
        try:
            if own:
                self.own_ports.add(port.getHost().port)
            opener = system_transport(self.reactor, lambda: self.own_ports).opener
            spec = mail_spec(FILE.format(port=port.getHost().port))
            connector = MailConnector(spec, opener, self.reactor, lambda: NOW)
            request = connector.prepare("send_mail", MAIL, spec.description.base_url or "", "effect-1")
            outcome = await connector.invoke(request, MemoryCredential(PAIR, "Basic {key}"), seconds)
        finally:
            await port.stopListening()
        self.assertNotIn(PASSWORD, repr(outcome))
        return outcome

    async def test_taken(self) -> None:
        """A server that drips its answers byte by byte is understood."""
        for drips in (False, True):
            self.assertIsNone((await self.outcome(drips=drips)).fault)
        self.assertEqual(2, len(self.taken))

    async def test_killed(self) -> None:
        """A server that dies before the message is handed over has not got it; afterwards nobody knows."""
        for step in STEPS:
            outcome = await self.outcome(answers={**USUAL, step: None})
            self.assertEqual((step == b".", False), (outcome.sent, outcome.classified), step)
            self.assertEqual(step != b".", bool(outcome.fault and outcome.fault.retriable), step)
        self.assertEqual(1, len(self.taken))

    async def test_repeated(self) -> None:
        """A server that says more than it was asked, and so would be believed too early, gets no message."""
        for behaviour in ({"repeats": True}, {"answers": {**USUAL, b"DATA": b"354 go\r\n250 taken"}}):
            outcome = await self.outcome(**behaviour)
            self.assertEqual((False, []), (outcome.sent, self.taken))

    async def test_silent(self) -> None:
        """A server that says nothing more in time has not got the message."""
        outcome = await self.outcome(0.2, answers={**USUAL, b"DATA": b"354-wait"})
        self.assertEqual(("resource_limit_exceeded", False), (outcome.fault and outcome.fault.kind, outcome.sent))

    async def test_endless(self) -> None:
        """A server that never ends its line is cut off."""
        outcome = await self.outcome(answers={**USUAL, b"EHLO": b"x" * (13 * 1024 * 1024)})
        self.assertEqual((False, False), (outcome.sent, bool(outcome.fault and outcome.fault.retriable)))

    async def test_echo(self) -> None:
        """A server that repeats the login is quoted without it."""
        login = base64.b64encode(base64.b64decode(PAIR).replace(b":", b"\0").join([b"\0", b""]))
        outcome = await self.outcome(answers={**USUAL, b"AUTH": b"535 no: " + login + b" " + PASSWORD.encode()})
        self.assertIn("echoed", outcome.notes)
        self.assertNotIn(login.decode(), repr(outcome))

    async def test_own_port(self) -> None:
        """A port of the daemon's own is not connected to."""
        outcome = await self.outcome(own=True)
        self.assertEqual(("capability_denied", False), (outcome.fault and outcome.fault.kind, outcome.sent))
