"""Of token endpoints: how they are asked, and where they may be."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import ConnectionOpener, HttpExchange, HttpFetch, HttpTransport
from aileron.credentials import TokenAnswer, TokenRequest
from aileron.model.errors import BindingFailed, NetworkError
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

    def test_empty(self) -> None:
        """A POST without a body is one all the same: a GitHub App asks so for its token."""
        self.service.replies.append(answer(b"{}", 201))
        self.assertEqual(self.successResultOf(self.start(evolve(ASKED, body=b""))).status, 201)
        self.assertTrue(self.service.requests[-1].startswith(b"POST /token HTTP/1.1\r\n"))

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

    def test_metadata(self) -> None:
        """Metadata is asked for by GET; all challenges of an answer are told as one, and a redirect is not followed."""
        asked = evolve(ASKED, url="https://login.example/.well-known/x?a=b", body=None, place="metadata")
        head = b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 2\r\n"
        self.service.replies += [
            head + b'WWW-Authenticate: Bearer scope="a"\r\n\r\n{}',
            answer(b"{}", 302, {"Location": "https://login.example/there"}),
            answer(b"x" * 70000),
        ]
        told = self.successResultOf(self.start(asked))
        self.assertEqual((told.status, told.challenge), (401, 'Basic realm=x, Bearer scope="a"'))
        self.assertTrue(self.service.requests[-1].startswith(b"GET /.well-known/x?a=b HTTP/1.1\r\n"))
        self.assertEqual(self.successResultOf(self.start(asked)).status, 302)
        huge = self.failureResultOf(self.start(asked), NetworkError).value
        self.assertIn("The metadata could not be reached", str(huge))
        self.assertEqual(len(self.service.requests), 3)
        self.service.names["login.example"] = ["192.168.1.1"]
        private = self.failureResultOf(self.start(asked), BindingFailed).value
        self.assertIn("The metadata leads to an address that may not be connected to", str(private))

    def test_quiet(self) -> None:
        """Neither what is sent nor what is answered shows in a repr."""
        shown = repr((evolve(ASKED, body=b"canary", headers=(("A", "canary"),)), TokenAnswer(200, b"canary")))
        self.assertNotIn("canary", shown)


class FetchTests(SynchronousTestCase):
    """A document that a person names."""

    def setUp(self) -> None:
        certificate = Certificate.made("docs.example")
        names: dict[str, Sequence[str]] = {
            "docs.example": [PUBLIC],
            "inside.example": ["10.0.0.7"],
            "localhost": ["127.0.0.1"],
        }
        self.service = Service(names=names, certificate=certificate, trusted=certificate)

    def fetch(self, url: str, *replies: bytes | None) -> Deferred[bytes]:
        """Begin to fetch it."""
        self.service.replies[:] = replies
        fetch = HttpFetch(HttpTransport(self.service.opener), self.service.reactor, 1000)
        started = Deferred.fromCoroutine(fetch(url))
        self.service.advance(0)
        return started

    def failure(self, url: str, *replies: bytes | None) -> str:
        """Why it is not fetched."""
        return str(self.failureResultOf(self.fetch(url, *replies), NetworkError).value)

    def test_fetched(self) -> None:
        """It is fetched by GET over verified TLS, without anything of ours; on this machine without TLS too."""
        self.assertEqual(self.successResultOf(self.fetch("https://docs.example/a?b=c#d", answer(b"x"))), b"x")
        self.assertTrue(self.service.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n"))
        self.assertNotIn(b"Authorization", self.service.requests[0])
        self.service.certificate = None
        self.assertEqual(self.successResultOf(self.fetch("http://localhost:8000/", answer(b"y"))), b"y")

    def test_not_fetched(self) -> None:
        """No redirect is followed but shown, nothing private is asked, and what is too large or late is given up."""
        moved = answer(b"", 302, {"Location": "https://evil.example/\x1b"})
        self.assertIn("not followed: https://evil.example/", self.failure("https://docs.example/", moved))
        self.assertIn("status 404", self.failure("https://docs.example/", answer(b"", 404)))
        self.assertIn("larger", self.failure("https://docs.example/", answer(b"x" * 1001)))
        count = len(self.service.requests)
        self.assertIn("private network", self.failure("https://inside.example/"))
        for url in ("http://docs.example/", "ftp://docs.example/", "https://a:b@docs.example/", "https://"):
            self.failure(url)
        self.assertEqual(len(self.service.requests), count)
        slow = self.fetch("https://docs.example/", None)
        self.service.advance(121)
        self.failureResultOf(slow, NetworkError)
