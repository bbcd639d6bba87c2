"""Of connections: which addresses are made, when a request counts as sent, and who is trusted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._connection import verifying
from aileron.connectors.kinds.http._spec import HttpSpec
from aileron.model.connectors import Outcome
from tests.connectors.certificate import Certificate
from tests.connectors.service import Service, answer, json_answer, spec_of

PUBLIC = "203.0.114.7"

SPEC = """
[connector]
name = "local://me/plain"
version = "1.0.0"
base_url = { default = "https://api.example" }
hosts = ["api.example:443"]

[operations.post]
method = "POST"
path = "/x"
json = {}
"""


def _private(base_url: str, host_and_port: str) -> HttpSpec:
    changed = SPEC.replace("https://api.example", base_url).replace("api.example:443", host_and_port)
    return spec_of(
        changed.replace("[operations.post]", "private_network = true\n[operations.post]").replace("\n\n", "\n")
    )


class NetworkCase(SynchronousTestCase):
    """A service behind a certificate, at a public address."""

    def setUp(self) -> None:
        certificate = Certificate.made("api.example")
        self.service = Service(names={"api.example": [PUBLIC]}, certificate=certificate, trusted=certificate)

    def sending(self, spec: HttpSpec | None = None) -> Deferred[Outcome]:
        """Start one sending."""
        return self.service.start(self.service.connector(spec or spec_of(SPEC)), "post")

    def unsent(self, outcome: Outcome, kind: str) -> None:
        """It failed with this class before anything was sent, and no request arrived."""
        self.assertEqual((kind, False), (outcome.fault and outcome.fault.kind, outcome.sent))
        self.assertEqual([], self.service.requests)


class EnvironmentTests(NetworkCase):
    """The environment is whoever's started the daemon: nothing there chooses whom we trust or ask."""

    def bundle(self, *certificates: Certificate) -> str:
        """A file of authorities."""
        path = Path(self.mktemp())
        path.write_bytes(b"Some words.\n" + b"".join(each.pem for each in certificates))
        return str(path)

    def setenv(self, **values: str) -> None:
        """For this test."""
        for name, value in values.items():
            before = os.environ.get(name)
            os.environ[name] = value
            self.addCleanup(_restore, name, before)

    def test_system_authorities(self) -> None:
        """Who is in the system's bundle is trusted, and nobody else, whom the environment may name or not."""
        mine, other = (self.bundle(Certificate.made(name)) for name in ("api.example", "other.example"))
        self.service.verify = verifying(["/nowhere", self.bundle(), mine, other])
        self.service.replies.append(json_answer({}))
        self.assertIsNone(self.successResultOf(self.sending()).fault)
        self.setenv(SSL_CERT_FILE=mine, SSL_CERT_DIR=str(Path(mine).parent))
        for bundles in ([other, mine], [other], ["/nowhere"]):
            self.service.verify = verifying(bundles)
            self.assertFalse(self.successResultOf(self.sending()).sent)
        self.assertEqual(1, len(self.service.requests))

    def test_environment_names_no_proxy(self) -> None:
        """A proxy that the environment names is never connected to."""
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            self.setenv(**{name: "http://127.0.0.1:9", name.upper(): "http://127.0.0.1:9"})
        self.service.replies.append(json_answer({}))
        self.assertIsNone(self.successResultOf(self.sending()).fault)
        self.assertEqual([(PUBLIC, 443)], self.service.connected)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


class HandshakeTests(NetworkCase):
    """When a request counts as sent."""

    def test_verified(self) -> None:
        """With a trusted certificate the request arrives at the checked address, under the host's name."""
        self.service.replies.append(json_answer({"ok": True}))
        outcome = self.successResultOf(self.sending())
        self.assertEqual(({"ok": True}, True), (outcome.output, outcome.sent))
        self.assertEqual([(PUBLIC, 443)], self.service.connected)
        self.assertIn(b"Host: api.example\r\n", self.service.requests[0])

    def test_not_sent(self) -> None:
        """A certificate that nobody vouches for, or of another name, a refused port, an unknown name: not sent."""
        mallory, ours = Certificate.made("mallory.example"), Certificate.made("api.example")
        known: dict[str, Sequence[str]] = {"api.example": [PUBLIC]}
        cases: tuple[tuple[dict[str, Sequence[str]], Certificate, Certificate, set[str]], ...] = (
            (known, mallory, ours, set()),
            (known, mallory, mallory, set()),
            (known, ours, ours, {PUBLIC}),
            ({}, ours, ours, set()),
        )
        for names, certificate, trusted, refusing in cases:
            self.service = Service(names=names, certificate=certificate, trusted=trusted, refusing=refusing)
            outcome = self.successResultOf(self.sending())
            self.unsent(outcome, "network_error")
            self.assertTrue(outcome.fault and outcome.fault.retriable)

    def test_handshake_hangs(self) -> None:
        """A peer that speaks no TLS and says nothing: the time limit, not sent."""
        self.service.certificate = None
        self.service.replies.append(None)
        sending = self.sending()
        self.assertNoResult(sending)
        self.service.advance(21)
        self.unsent(self.successResultOf(sending), "resource_limit_exceeded")
        self.assertTrue(self.service.peers[0].closed)

    def test_hung_up(self) -> None:
        """A peer that hangs up after it read the request, or in its answer: sent, and not classified.

        An answer that has no length is whole where its connection was closed in order.
        """
        for reply, classified, output in (
            (None, False, None),
            (answer(b"x" * 10)[:-5], False, None),
            (b'HTTP/1.1 200 OK\r\n\r\n{"ok": true}', True, {"ok": True}),
        ):
            self.service.replies.append(reply)
            sending = self.sending()
            self.assertNoResult(sending)
            self.service.hang_up()
            outcome = self.successResultOf(sending)
            self.assertEqual((True, classified, output), (outcome.sent, outcome.classified, outcome.output))
            self.assertEqual(None if classified else "external_api_error", outcome.fault and outcome.fault.kind)

    def test_cancelled_while_connecting(self) -> None:
        """Cancelling during the handshake tries no further address."""
        self.service.certificate = None
        self.service.names["api.example"] = [PUBLIC, "203.0.114.8"]
        self.service.replies.append(None)
        sending = self.sending()
        sending.cancel()
        self.failureResultOf(sending)
        self.service.advance(0)
        self.assertEqual([(PUBLIC, 443)], self.service.connected)
        self.assertTrue(self.service.peers[0].closed)

    def test_messages_tell_no_url(self) -> None:
        """No message names a URL or an exception of the client."""
        for addresses in ([], ["10.0.0.1"], [PUBLIC]):
            self.service.names["api.example"] = addresses
            self.service.refusing.add(PUBLIC)
            fault = self.successResultOf(self.sending()).fault
            assert fault is not None
            for told in ("http", "example", "Error", "Failure", "10.0.0.1"):
                self.assertNotIn(told, fault.message)


class AddressesTests(NetworkCase):
    """Which addresses are connected to, whatever the name resolves to."""

    def test_private_address(self) -> None:
        """A name that leads to a private address is denied, and nobody is connected to."""
        for address in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1"):
            self.service.names["api.example"] = [address]
            self.unsent(self.successResultOf(self.sending()), "capability_denied")
        self.assertEqual([], self.service.connected)

    def test_several_addresses(self) -> None:
        """Of several addresses only those that may be connected to are tried, the next where one refuses."""
        self.service.refusing.add("203.0.114.6")
        for addresses, tried in ((["127.0.0.1", PUBLIC], [PUBLIC]), (["203.0.114.6", PUBLIC], ["203.0.114.6", PUBLIC])):
            self.service.names["api.example"] = addresses
            self.service.connected.clear()
            self.service.replies.append(json_answer({}))
            self.assertTrue(self.successResultOf(self.sending()).sent)
            self.assertEqual([(host, 443) for host in tried], self.service.connected)

    def test_own_ports(self) -> None:
        """The daemon's own ports are never connected to on loopback, declared or not."""
        self.service.own_ports = {8080}
        for host in ("127.0.0.1", "127.8.8.8", "[::1]", "localhost"):
            self.service.names["localhost"] = ["::1", "127.0.0.1"]
            spec = _private(f"http://{host}:8080", f"{host}:8080")
            self.unsent(self.successResultOf(self.sending(spec)), "capability_denied")
        self.assertEqual([], self.service.connected)

    def test_plain_http_leaves_loopback_never(self) -> None:
        """Plain http to a name that leads elsewhere is denied, private network or not."""
        self.service.certificate = None
        for address in ("10.1.2.3", PUBLIC):
            self.service.names["localhost"] = [address]
            spec = _private("http://localhost:8080", "localhost:8080")
            self.unsent(self.successResultOf(self.sending(spec)), "capability_denied")

    def test_declared_private_network(self) -> None:
        """A connector that declares it is connected to a private address, by TLS."""
        self.service.names["api.example"] = ["10.1.2.3"]
        self.service.replies.append(json_answer({}))
        spec = evolve(spec_of(SPEC), private_network=True)
        self.assertTrue(self.successResultOf(self.sending(spec)).sent)
        self.assertEqual([("10.1.2.3", 443)], self.service.connected)

    def test_ipv6_loopback(self) -> None:
        """An IPv6 literal is written in brackets and connected to."""
        self.service.certificate = None
        self.service.replies.append(json_answer({}))
        outcome = self.successResultOf(self.sending(_private("http://[::1]:8080", "[::1]:8080")))
        self.assertTrue(outcome.sent)
        self.assertIn(b"Host: [::1]:8080\r\n", self.service.requests[0])
