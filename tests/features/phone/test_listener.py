"""The listener: what it refuses by a request's head, and when it is closed."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.features.phone._certificate_store import CertificateStore
from aileron.features.phone._certificates import make_certificate
from aileron.features.phone._listener import MOST_BODY_BYTES, ClosedFactory, PublicSite
from aileron.features.phone.running import PhoneListener, public_rules
from aileron.features.phone.values import PhoneSettings
from aileron.model.vault import VaultState
from aileron.testing import MemoryBindings, MemoryVault
from tests.api.test_channel import Echo, Line

HOST = "phone.example.org:8443"
ORIGIN = f"https://{HOST}"


class RulesTests(SynchronousTestCase):
    """Requests over bytes."""

    def setUp(self) -> None:
        """A site of the public name."""
        self.echo = Echo()
        self.rules = public_rules(PhoneSettings(ORIGIN))

    def ask(self, method: str, path: str, *lines: str, body: bytes = b"", host: str = HOST) -> tuple[int, str, bytes]:
        """Send one request, and return status, head and body of the answer."""
        site = PublicSite(self.echo, self.rules, Clock())
        fields = [f"Host: {host}", *lines]
        if body or method == "POST":
            fields += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *fields, "", ""])
        heard = Line(site).say(head.encode() + body)
        first, _, rest = heard.partition(b"\r\n\r\n")
        return int(first.split()[1]), first.decode(), rest

    def test_taken(self) -> None:
        """A page's own requests are answered, with HSTS."""
        status, head, _ = self.ask("GET", "/approvals", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate")
        self.assertEqual(status, 200)
        self.assertIn("Strict-Transport-Security: max-age=31536000", head)
        status, _, _ = self.ask("POST", "/v1/x", f"Origin: {ORIGIN}", "Sec-Fetch-Site: same-origin", body=b"{}")
        self.assertEqual(status, 200)

    def test_host(self) -> None:
        """The Host is exactly the configured one: no other port, no name below or above, and not twice."""
        for host in (
            "phone.example.org",
            "phone.example.org:443",
            "phone.example.org:8444",
            "x.phone.example.org:8443",
            "example.org:8443",
            "localhost:8443",
            "127.0.0.1:8443",
            "phone.example.org.:8443",
        ):
            self.assertEqual(self.ask("GET", "/", host=host)[0], 400, host)
        self.assertEqual(self.ask("GET", "/", f"Host: {HOST}")[0], 400)
        self.assertEqual(self.ask("GET", f"{ORIGIN}/", host=HOST)[0], 400)

    def test_refused_has_hsts(self) -> None:
        """A refusal has HSTS too."""
        self.assertIn("Strict-Transport-Security", self.ask("GET", "/", host="x")[1])

    def test_forwarded(self) -> None:
        """No header that a proxy could add makes a wrong Host or Origin right."""
        spoofed = (f"X-Forwarded-Host: {HOST}", f"Forwarded: host={HOST};proto=https", "X-Forwarded-Proto: https")
        users = ("Tailscale-User-Login: me@example.org", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1")
        self.assertEqual(self.ask("GET", "/", *spoofed, *users, host="localhost")[0], 400)
        self.assertEqual(self.ask("POST", "/x", *spoofed, *users, body=b"{}")[0], 403)

    def test_origin(self) -> None:
        """A write comes from our own origin: it names it, with its scheme and port."""
        for method in ("POST", "DELETE"):
            self.assertEqual(self.ask(method, "/x", body=b"{}")[0], 403, method)
        for origin in (
            "null",
            "https://phone.example.org",
            "https://phone.example.org:8444",
            "https://evil.phone.example.org:8443",
            "https://example.org:8443",
            "http://phone.example.org:8443",
            f"http://{HOST}",
            "https://phone.example.org:8443.evil.example",
        ):
            self.assertEqual(self.ask("POST", "/x", f"Origin: {origin}", body=b"{}")[0], 403, origin)
        self.assertEqual(self.ask("GET", "/x", "Origin: https://phone.example.org")[0], 403)

    def test_fetch_site(self) -> None:
        """A request that another site's page causes is refused; a link that was followed gets one static page."""
        for site in ("cross-site", "same-site"):
            refused = self.ask("POST", "/x", f"Origin: {ORIGIN}", f"Sec-Fetch-Site: {site}", body=b"{}")
            self.assertEqual(refused[0], 403)
            self.assertEqual(self.ask("GET", "/x", f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: cors")[0], 403)
            link = ("Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
            status, _, body = self.ask("GET", "/approvals/x", f"Sec-Fetch-Site: {site}", *link)
            self.assertEqual(status, 200)
            self.assertIn(b"/static/landing.js", body)
        self.assertEqual(self.echo.seen, [])

    def test_worker(self) -> None:
        """The script of a worker that is not ours is gone, and with it all that was stored here."""
        status, head, _ = self.ask("GET", "/evil.js", "Service-Worker: script", "Sec-Fetch-Site: same-origin")
        self.assertEqual(status, 404)
        self.assertIn('Clear-Site-Data: "cache", "storage"', head)
        self.rules = evolve(self.rules, hosts=(HOST,), workers=frozenset((b"/push-worker.js",)))
        own = self.ask("GET", "/push-worker.js", "Service-Worker: script", "Sec-Fetch-Site: same-origin")
        self.assertEqual((own[0], "Clear-Site-Data" in own[1]), (200, False))

    def test_methods(self) -> None:
        """Only GET, HEAD, POST and DELETE are there."""
        for method in ("PUT", "PATCH", "OPTIONS"):
            self.assertEqual(self.ask(method, "/x", f"Origin: {ORIGIN}")[0], 405, method)

    def test_bodies(self) -> None:
        """A body has a length, which is limited; a head is limited too."""
        long = self.ask("POST", "/x", f"Origin: {ORIGIN}", body=b"x" * (MOST_BODY_BYTES + 1))
        self.assertEqual(long[0], 413)
        site = PublicSite(self.echo, self.rules, Clock())
        chunked = f"POST /x HTTP/1.1\r\nHost: {HOST}\r\nOrigin: {ORIGIN}\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertIn(b" 411 ", Line(site).say(chunked.encode())[:20])
        self.assertEqual(self.ask("GET", "/x", "X: " + "a" * 17_000)[0], 431)
        self.assertEqual(self.echo.seen, [])

    def test_fault_is_json(self) -> None:
        """A refusal is the usual envelope, and repeats nothing of the request."""
        _, _, body = self.ask("GET", "/", host="evil.example")
        self.assertNotIn(b"evil", body)
        self.assertIn("error", json.loads(body))


class ClosedTests(SynchronousTestCase):
    """The listener before there is something to serve with."""

    def test_locked(self) -> None:
        """While the vault is locked, or there is no certificate, a connection is closed before a byte is read."""
        clock, vault = Clock(), MemoryVault(VaultState.UNLOCKED)
        clock.advance(1_760_000_000)
        settings = PhoneSettings(ORIGIN)
        store = CertificateStore(settings, MemoryBindings(vault), clock)
        listener = PhoneListener(settings, store, vault)
        site: Any = PublicSite(Echo(), public_rules(settings), clock)
        factory = ClosedFactory(site, lambda: listener.find_inner(site, clock))
        self.assertIsNone(factory.buildProtocol(None))
        listener.use(make_certificate("phone.example.org", utc(clock.seconds())), "")
        self.assertIsNotNone(factory.buildProtocol(None))
        vault.lock()
        self.assertIsNone(factory.buildProtocol(None))

    def test_connections_end(self) -> None:
        """When the vault is locked, open connections end too."""
        site: Any = PublicSite(Echo(), public_rules(PhoneSettings(ORIGIN)), Clock())
        line = Line(site)
        self.assertFalse(line.closed)
        site.end_all()
        self.assertTrue(line.closed)
        self.assertEqual(site.channels, set())
