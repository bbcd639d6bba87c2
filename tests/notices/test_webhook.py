"""A program of the operator's, told by HTTP."""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.notices import Undelivered
from aileron.notices._channels import open_secret
from aileron.notices._webhook import post_message
from aileron.testing import MemoryBindings, MemoryVault
from aileron.values import ChannelSettings, NewBinding
from tests.connectors.certificate import Certificate

from .case import message
from .wired import Server

URL = "http://127.0.0.1:8800/hook"
KEY = b"canary-key"
CHANNEL = ChannelSettings("office", URL, signed=True)


class WebhookTests(SynchronousTestCase):
    def setUp(self) -> None:
        """A place to listen, and a vault with a key."""
        self.reactor = MemoryReactorClock()
        self.reactor.advance(1_700_000_000)
        self.vault = MemoryVault()
        self.bindings = MemoryBindings(self.vault)

    def deliver(self, open_key: Callable[[], Awaitable[bytes]] | None = None, url: str = URL) -> Deferred[None]:
        """Send one message."""
        return Deferred.fromCoroutine(post_message(url, self.reactor, open_key, message(contents=("to: me",))))

    def bind(self, url: str = URL) -> None:
        """Keep the key."""
        channel = ChannelSettings("office", url, signed=True)
        self.bindings.add(NewBinding("api_key", "notice", "office", channel.fqn, KEY, scope=channel.scope()))

    def test_posted(self) -> None:
        """The message is posted as JSON, named so that a second copy can be told, and without a signature."""
        done = self.deliver()
        server = Server.accept(self.reactor)
        self.assertTrue(server.head.startswith("POST /hook HTTP/1.1\r\n"))
        self.assertIn("\r\nAileron-Delivery: message-1", server.head)
        self.assertNotIn("Signature", server.head)
        body = json.loads(server.body)
        self.assertEqual((body["id"], body["count"], body["notices"][0]["run_id"]), ("message-1", 1, "run-1"))
        self.assertEqual(body["text"], "One line.\nto: me")
        self.assertNoResult(done)
        server.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
        self.successResultOf(done)

    def test_signed(self) -> None:
        """With a key the body and the moment are signed, and the key itself does not travel."""
        self.bind()
        self.deliver(partial(open_secret, self.bindings, CHANNEL))
        server = Server.accept(self.reactor)
        found = re.search(r"^Aileron-Signature: t=(\d+),v1=([0-9a-f]{64})\r?$", server.head, re.MULTILINE)
        assert found is not None
        expected = hmac.digest(KEY, found[1].encode() + b"." + server.body, sha256).hex()
        self.assertEqual((found[1], found[2]), ("1700000000", expected))
        self.assertNotIn(KEY, server.taken)

    def test_no_key(self) -> None:
        """Without its key, with the vault locked, or with a key for another address, nothing is sent at all."""
        open_key = partial(open_secret, self.bindings, CHANNEL)
        self.assertIn("aileron notification add office", self.failureResultOf(self.deliver(open_key)).value.problem)
        self.bind("http://127.0.0.1:8800/else")
        self.assertIn("another address", self.failureResultOf(self.deliver(open_key)).value.problem)
        self.vault.lock()
        failed = self.failureResultOf(self.deliver(open_key), Undelivered)
        self.assertIn("locked", failed.value.problem)
        self.assertFalse(failed.value.again)
        self.assertEqual(self.reactor.tcpClients, [])

    def test_refused(self) -> None:
        """A refusal is none of ours to repeat, a fault of the server's is; a redirection is not followed."""
        for status, again in ((b"404 No", False), (b"429 Soon", True), (b"503 No", True)):
            done = self.deliver()
            Server.accept(self.reactor).answer(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            failed = self.failureResultOf(done, Undelivered).value
            self.assertEqual((failed.again, failed.problem), (again, f"It answered {int(status[:3])}."))
        done = self.deliver()
        Server.accept(self.reactor).answer(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
        self.failureResultOf(done, Undelivered)
        self.assertEqual(self.reactor.tcpClients, [])

    def test_untrusted(self) -> None:
        """A server for which nobody vouches whom this system trusts is told nothing, whatever the environment says."""
        certificate = Certificate.made("localhost")
        bundle = Path(self.mktemp())
        bundle.write_bytes(certificate.pem)
        self.patch(os, "environ", {**os.environ, "SSL_CERT_FILE": str(bundle)})
        done = self.deliver(url="https://localhost:8800/hook")
        server = Server.accept(self.reactor, certificate)
        self.assertIn("certificate verify failed", str(self.failureResultOf(done).value))
        self.assertEqual(server.taken, b"")
