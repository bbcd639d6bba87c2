"""Connections that are kept for the reads of tools, and what never uses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._answer import AddressRefused, Flight, OutgoingRequest
from aileron.connectors._kept import KEPT_SECONDS, MOST_KEPT, MOST_KEPT_OF_ALL
from aileron.model.connectors import FORWARD, FORWARD_READ, Outcome
from aileron.model.streams import StreamedAnswer
from aileron.testing import MemoryCredential
from tests.connectors.certificate import Certificate
from tests.connectors.kinds.http.test_forward import TRACKER
from tests.connectors.service import Service, answer, spec_of

HOST = "127.0.0.1:8080"
GET: Mapping[str, JSON] = {"host": HOST, "method": "GET", "target": "/api/x"}


class KeptCase(SynchronousTestCase):
    """A tracker whose tools read."""

    def setUp(self) -> None:
        self.service = Service()
        self.connector = self.service.connector(spec_of(TRACKER))

    def begin(
        self, scope: str = "session-1", secret: bytes = b"s3cret-value", **changes: Any
    ) -> Deferred[Outcome | StreamedAnswer]:
        """Begin a read."""
        request = self.connector.prepare(FORWARD_READ, {**GET, **changes}, f"http://{HOST}/api", "effect-1")
        credential = MemoryCredential(secret, "Token {key}")
        asked = Deferred.fromCoroutine(self.connector.open_read(request, credential, 60, scope))
        self.service.advance()
        return asked

    def read(self, reply: bytes | None = None, scope: str = "session-1", **more: Any) -> Outcome:
        """Read, and return the outcome."""
        self.service.replies.append(answer(b"{}") if reply is None else reply)
        found = self.successResultOf(self.begin(scope, **more))
        assert isinstance(found, Outcome)
        return found

    @property
    def connections(self) -> int:
        """The number of connections that were opened."""
        return len(self.service.connected)


class KeptTests(KeptCase):
    """L{KeptConnections}, by the reads that use it."""

    def test_reused(self) -> None:
        """One read after another uses the same connection, also after answers without a body and to POST."""
        self.read()
        self.read(answer(b"", 204, {"Content-Length": "0"}))
        self.read(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", method="HEAD")
        self.read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        outcome = self.read(method="POST", body="{}")
        self.assertIsNone(outcome.fault)
        self.assertEqual((5, 1), (len(self.service.requests), self.connections))
        self.assertNotIn(b"Connection: close", self.service.requests[0])

    def test_tls(self) -> None:
        """A connection with TLS is used again too, and its certificate was verified."""
        certificate = Certificate.made("api.example")
        self.service.certificate = self.service.trusted = certificate
        self.service.names["api.example"] = ["203.0.114.7"]
        text = TRACKER.replace(f"http://{HOST}", "https://api.example").replace("private_network = true\n", "")
        self.connector = self.service.connector(spec_of(text))
        for _ in range(2):
            self.service.replies.append(answer())
            request = self.connector.prepare(
                FORWARD_READ, {**GET, "host": "api.example"}, "https://api.example/api", "effect-1"
            )
            credential = MemoryCredential(b"s3cret-value", "Token {key}")
            asked = Deferred.fromCoroutine(self.connector.open_read(request, credential, 60, "session-1"))
            self.service.advance()
            self.successResultOf(asked)
        self.assertEqual(1, self.connections)

    def test_scopes(self) -> None:
        """Another session, credential or host has a connection of its own."""
        self.read()
        self.read(scope="session-2")
        self.service.replies.append(answer())
        self.successResultOf(self.begin(secret=b"another-s3cret"))
        self.assertEqual(3, self.connections)
        self.read()
        self.read(scope="session-2")
        self.assertEqual(3, self.connections)

    def test_private_network(self) -> None:
        """A connector that may not connect to private addresses uses no connection of one that may."""
        message = OutgoingRequest("GET", f"http://{HOST}/x", (), None, True, 1000)
        for private_network in (True, True, False):
            self.service.replies.append(answer())
            plain = evolve(message, private_network=private_network)
            opening = self.connector.transport.open(plain, Flight(), b"the same scope")
            self.service.advance()
        self.failureResultOf(opening, AddressRefused)
        self.assertEqual((2, 1), (len(self.service.requests), self.connections))

    def test_few_are_kept(self) -> None:
        """Of many connections that become idle, the last ones are kept, and the others are closed."""
        count = MOST_KEPT + 2
        self.service.replies += [None] * count
        asked = [self.begin() for _ in range(count)]
        for peer in self.service.peers:
            assert peer.transport is not None
            peer.transport.write(answer())
        self.service.advance()
        for each in asked:
            self.successResultOf(each)
        self.assertEqual([True] * 2 + [False] * MOST_KEPT, [peer.closed for peer in self.service.peers])

    def test_few_are_kept_of_all(self) -> None:
        """Of the connections of very many scopes, such as hosts below a wildcard, the last ones are kept."""
        for number in range(MOST_KEPT_OF_ALL + 2):
            self.read(scope=f"session-{number}")
        self.assertEqual([True] * 2 + [False] * MOST_KEPT_OF_ALL, [peer.closed for peer in self.service.peers])
        self.service.advance(KEPT_SECONDS)
        self.assertEqual([], self.service.reactor.getDelayedCalls())

    def test_closed_after_a_while(self) -> None:
        """A connection without a request is closed after some seconds."""
        self.read()
        self.service.advance(KEPT_SECONDS - 1)
        self.assertFalse(self.service.peers[0].closed)
        self.service.advance(1)
        self.assertTrue(self.service.peers[0].closed)
        self.assertEqual([], self.service.reactor.getDelayedCalls())
        self.read()
        self.assertEqual(2, self.connections)

    def test_closed_by_the_service(self) -> None:
        """A connection that the service has closed is not used; nor is one that it wants closed."""
        self.read()
        self.service.hang_up()
        self.read()
        self.read(answer(b"{}", 200, {"Connection": "close"}))
        self.read()
        self.assertEqual(3, self.connections)

    def test_broken(self) -> None:
        """A read whose kept connection breaks before it is answered is sent again, once, on a new one."""
        given: tuple[tuple[str, dict[str, Any]], ...] = (("GET", {}), ("POST", {"body": "{}"}))
        for method, body in given:
            self.read()
            before = self.connections
            self.service.replies += [None, answer(b"again")]
            asked = self.begin(method=method, **body)
            self.assertNoResult(asked)
            self.service.hang_up()
            found = self.successResultOf(asked)
            assert isinstance(found, Outcome)
            self.assertEqual(("again", before + 1), (found.output["body"], self.connections))  # type: ignore[index,call-overload]

    def test_broken_twice(self) -> None:
        """A read on a new connection is not sent again."""
        self.service.replies += [None, answer()]
        asked = self.begin()
        self.service.hang_up()
        found = self.successResultOf(asked)
        assert isinstance(found, Outcome)
        self.assertIsNotNone(found.fault)
        self.assertEqual(1, self.connections)

    def test_answer_broken(self) -> None:
        """A read of whose answer a part has come is not sent again."""
        self.read()
        self.service.replies += [b"HTTP/1.1 200 OK\r\nContent-Le", answer()]
        asked = self.begin()
        self.service.hang_up()
        found = self.successResultOf(asked)
        assert isinstance(found, Outcome)
        self.assertIsNotNone(found.fault)
        self.assertEqual((2, 1), (len(self.service.requests), self.connections))

    def test_writes(self) -> None:
        """A write uses no kept connection, and its own is closed."""
        self.read()
        self.service.replies.append(answer())
        inputs = {**GET, "method": "POST", "body": "{}"}
        sending = self.service.start(self.connector, FORWARD, inputs, base_url=f"http://{HOST}/api", secret=b"s3cret")
        self.successResultOf(sending)
        self.assertEqual((2, True), (self.connections, self.service.peers[1].closed))

    def test_given_up_late(self) -> None:
        """A request that is given up closes its own connection, and never one that another request uses now."""
        self.service.replies += [None]
        asked = self.begin()
        asked.cancel()
        self.failureResultOf(asked, CancelledError)
        self.service.advance()
        self.assertTrue(self.service.peers[0].closed)
        self.service.replies.append(answer(b"x" * 300_000))
        first = self.successResultOf(self.begin())
        assert isinstance(first, StreamedAnswer)
        self.service.advance()  # all has come, and the connection is kept
        self.service.replies.append(None)
        second = self.begin()
        first.body.close()
        self.service.advance()
        self.assertNoResult(second)
        self.assertEqual((2, False), (self.connections, self.service.peers[-1].closed))

    def test_unasked_bytes(self) -> None:
        """A service that sends something on an idle connection loses it: it is no answer to the next request."""
        self.read()
        self.service.peers[0].transport.write(answer(b"forged"))  # type: ignore[union-attr]
        self.service.advance()
        self.assertEqual("{}", self.read().output["body"])  # type: ignore[index,call-overload]
        self.assertEqual(2, self.connections)
