"""A blocking request to a service: bounded in time and size, and never sent elsewhere; with a server on loopback."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.blocking import MOST_BYTES, Posted, ServiceReply, ServiceSilent, post
from tests.features.key_sources.transit_double import SECRET_ID
from tests.functional.ports import LOOPBACK, another_port
from tests.functional.transit_server import TransitServer, make_certificate

_RESOLVE = socket.getaddrinfo
PATH = "/v1/auth/approle/login"
BODY = b'{"role_id": "role-1", "secret_id": "%s"}' % SECRET_ID.encode()


class ServedCase(SynchronousTestCase):
    """A server on loopback."""

    def serve(self, certificate: Path | None = None) -> TransitServer:
        """Start a server."""
        server = TransitServer(certificate)
        server.start()
        self.addCleanup(server.stop)
        return server

    def silent(self, request: Posted, word: str, seconds: float = 5.0) -> None:
        """Check that there is no answer, and why."""
        error = self.assertRaises(ServiceSilent, post, request, seconds)
        self.assertIn(word, str(error))


class PostTests(ServedCase):
    """Without TLS, to this machine."""

    def setUp(self) -> None:
        self.server = self.serve()
        self.request = Posted(self.server.url, PATH, BODY, {"X-Other": "1"})

    def test_answered(self) -> None:
        """The status, the media type and the body are returned; headers and body arrive; no proxy is used."""
        self.patch_proxy()
        reply = post(self.request, 5.0)
        self.assertEqual((reply.status, reply.content_type), (200, "application/json"))
        self.assertIn(b"client_token", reply.body)
        ((path, headers),) = self.server.double.log
        self.assertEqual((path, headers["X-Other"]), (PATH, "1"))
        self.assertEqual(post(Posted(self.server.url, "/v1/other", b"{}", {}), 5.0).status, 404)

    def patch_proxy(self) -> None:
        """Have the environment name a proxy that is not there."""
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            self.patch(os, "environ", {**os.environ, name: f"http://{LOOPBACK}:1"})

    def test_plain(self) -> None:
        """Plain HTTP to another machine, and a URL with a password, are refused before anything is sent."""
        for url in ("http://vault.example.org:8200", f"http://me:pw@{LOOPBACK}:{self.server.port}", "ftp://localhost"):
            self.assertRaises(ValueError, post, Posted(url, PATH, BODY, {}), 0.2)
        self.assertEqual(self.server.count, 0)

    def test_name(self) -> None:
        """A name of this machine is not resolved, and is sent as the host."""
        reply = post(Posted(f"http://localhost:{self.server.port}", PATH, BODY, {}), 5.0)
        self.assertEqual(reply.status, 200)
        self.assertEqual(self.server.double.log[0][1]["Host"], f"localhost:{self.server.port}")
        self.patch(socket, "getaddrinfo", self.resolve)
        post(Posted(f"http://localhost:{self.server.port}", PATH, BODY, {}), 5.0)

    def resolve(self, host: str, *arguments: Any, **more: Any) -> Any:
        """Stand in for a resolver: only addresses are looked up."""
        self.assertEqual(host, LOOPBACK)
        return _RESOLVE(host, *arguments, **more)

    def test_redirect(self) -> None:
        """A redirect is an answer; nothing is sent to its address."""
        other = self.serve()

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(307)
            handler.send_header("Location", other.url + PATH)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        self.server.misbehave = redirect
        self.assertEqual(post(self.request, 5.0), ServiceReply(307, "", b""))
        self.assertEqual(other.count, 0)

    def test_slow(self) -> None:
        """A server that is silent, or sends a byte now and then, is given up when the time is over."""

        def sleep(_: BaseHTTPRequestHandler) -> None:
            time.sleep(3.0)

        def trickle(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(100):
                    handler.wfile.write(b" ")
                    time.sleep(0.05)

        for misbehave in (sleep, trickle):
            self.server.misbehave = misbehave
            began = time.monotonic()
            self.silent(self.request, "did not answer", 0.4)
            self.assertLess(time.monotonic() - began, 1.5)

    def test_endless(self) -> None:
        """A body beyond the limit is not read, whether its length is told or not."""

        def endless(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    handler.wfile.write(b" " * MOST_BYTES)

        def long(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(MOST_BYTES + 1))
            handler.end_headers()
            handler.wfile.write(b" " * (MOST_BYTES + 1))

        for misbehave in (endless, long):
            self.server.misbehave = misbehave
            self.silent(self.request, "too long an answer")

    def test_broken(self) -> None:
        """A server that is not there, cuts the answer off, or speaks something else, gives no answer."""

        def cut(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b"{")

        def other(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")

        for misbehave in (cut, other):
            self.server.misbehave = misbehave
            self.silent(self.request, "could not be reached")
        self.silent(Posted(f"http://{LOOPBACK}:{another_port()}", PATH, BODY, {}), "could not be reached")
        self.silent(Posted(self.server.url.replace("http:", "https:"), PATH, BODY, {}), "could not be reached")


class TlsTests(ServedCase):
    """With TLS."""

    def setUp(self) -> None:
        self.trusted, certificate = make_certificate(Path(self.mktemp()))
        self.server = self.serve(certificate)

    def test_trusted(self) -> None:
        """A certificate of the given authority is accepted, and no keys are written for whoever reads along."""
        keys = Path(self.mktemp()).absolute()
        self.patch(os, "environ", {**os.environ, "SSLKEYLOGFILE": str(keys)})
        self.assertEqual(post(Posted(self.server.url, PATH, BODY, {}, self.trusted), 5.0).status, 200)
        self.assertFalse(keys.exists())

    def test_other_authority(self) -> None:
        """A certificate of another authority, or for another name, is refused, and no request is sent."""
        other, _ = make_certificate(Path(self.mktemp()))
        for url, trusted in (
            (self.server.url, None),
            (self.server.url, other),
            (self.server.url.replace("localhost", LOOPBACK), self.trusted),
        ):
            self.silent(Posted(url, PATH, BODY, {}, trusted), "no valid certificate")
        empty = Path(self.mktemp())
        empty.touch()
        for path in (Path("/nowhere/ca.pem"), empty):
            self.silent(Posted(self.server.url, PATH, BODY, {}, path), "no certificate authorities")
        self.assertEqual(self.server.count, 0)
