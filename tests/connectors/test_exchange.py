"""Of token endpoints: how they are asked, and where they may be."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import ConnectionOpener, HttpExchange, HttpTransport
from aileron.credentials import TokenAnswer, TokenRequest
from aileron.errors import BindingFailed, NetworkError
from tests.connectors.certificate import Certificate
from tests.connectors.service import Service, answer

PUBLIC = "203.0.114.7"
ASKED = TokenRequest("https://login.example/token", False, (("Accept", "application/json"),), b"grant_type=x")
LOCAL = evolve(ASKED, url="http://127.0.0.1:8080/token", private_network=True)


class ExchangeTests(SynchronousTestCase):
    """An endpoint behind a certificate, at a public address."""

    def setUp(self) -> None:
        certificate = Certificate.made("login.example")
        self.service = Service(names={"login.example": [PUBLIC]}, certificate=certificate, trusted=certificate)

    def start(self, asked: TokenRequest = ASKED) -> Deferred[TokenAnswer]:
        """Begin to ask."""
        tls = (self.service.trusted or Certificate.made("nobody.invalid")).verifying
        opener = ConnectionOpener(self.service.reactor, self.service._resolve, tls, lambda: self.service.own_ports)
        exchange = HttpExchange(HttpTransport(opener), self.service.reactor)
        started = Deferred.fromCoroutine(exchange(asked))
        self.service.advance(0)
        return started

    def test_asked(self) -> None:
        """It is asked once by POST, over TLS that was verified, and answers whatever its status."""
        for status in (200, 302, 400, 503):
            self.service.replies.append(answer(b'{"x": 1}', status, {"Location": "https://evil.example/"}))
            told = self.successResultOf(self.start())
            self.assertEqual((told.status, told.body), (status, b'{"x": 1}'))
        head, _, body = self.service.requests[-1].partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"POST /token HTTP/1.1\r\n"))
        self.assertIn(b"Accept: application/json", head)
        self.assertEqual((body, len(self.service.requests)), (b"grant_type=x", 4))
        self.assertEqual({address for address, _ in self.service.connected}, {PUBLIC})

    def test_not_there(self) -> None:
        """Where no whole answer comes in its time, that may pass."""
        self.service.replies += [None, answer(b"x" * 70000)]
        slow = self.start()
        self.service.advance(19.9)
        self.assertNoResult(slow)
        self.service.advance(0.2)
        self.failureResultOf(slow, NetworkError)
        self.failureResultOf(self.start(), NetworkError)
        self.failureResultOf(self.start(evolve(ASKED, url="https://unknown.example/")), NetworkError)
        self.service.trusted = Certificate.made("nobody.invalid")
        self.failureResultOf(self.start(), NetworkError)

    def test_addresses(self) -> None:
        """It may be where a connector may be, and nowhere else: nothing is sent there."""
        self.service.names["inner.example"] = ["10.0.0.1"]
        self.service.own_ports.add(7001)
        for asked in (
            evolve(ASKED, url="http://login.example/token"),
            evolve(ASKED, url="https://inner.example/token"),
            evolve(LOCAL, private_network=False),
            evolve(LOCAL, url="http://127.0.0.1:7001/token"),
            evolve(LOCAL, url="http://login.example/token"),
            evolve(ASKED, url="https://login.example@evil.example/token"),
        ):
            self.failureResultOf(self.start(asked), BindingFailed)
        self.assertEqual(self.service.connected, [])

    def test_private(self) -> None:
        """Loopback is asked where the connector's file allows it."""
        self.service.certificate = None
        self.service.replies.append(answer(b"{}"))
        self.assertEqual(self.successResultOf(self.start(LOCAL)).status, 200)
        self.assertEqual(self.service.connected, [("127.0.0.1", 8080)])

    def test_quiet(self) -> None:
        """Neither what is sent nor what is answered shows in a repr."""
        shown = repr((evolve(ASKED, body=b"canary", headers=(("A", "canary"),)), TokenAnswer(200, b"canary")))
        self.assertNotIn("canary", shown)
