"""The double of a transit engine as an HTTP server on loopback, plain or with TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from aileron.base.certificates import Validity, make_authority, make_key, make_leaf
from tests.features.key_sources.transit_double import TransitDouble
from tests.functional.ports import LOOPBACK, another_port

_VALID = Validity(datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(days=1))

Misbehave = Callable[[BaseHTTPRequestHandler], None]


class TransitServer:
    """A server that can be stopped and started again on its port.

    :ivar double: what answers.
    :ivar misbehave: answers in place of the double, or None.
    :ivar count: the number of requests so far.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.double = TransitDouble()
        self.misbehave: Misbehave | None = None
        self.port = another_port()
        self.count = 0
        self._certificate = certificate
        self._http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{LOOPBACK}:{self.port}" if self._certificate is None else f"https://localhost:{self.port}"

    def start(self) -> None:
        """Start to listen."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.answer(self)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._http = ThreadingHTTPServer((LOOPBACK, self.port), Handler)
        self._http.daemon_threads = True
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop to listen. Idempotent."""
        http, self._http = self._http, None
        if http is not None:
            http.shutdown()
            http.socket.close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.count += 1
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        if self.misbehave is not None:
            self.misbehave(handler)
            return
        reply = self.double.answer(handler.path, dict(handler.headers), body)
        handler.send_response(reply.status)
        handler.send_header("Content-Type", f"{reply.content_type}; charset=utf-8")
        handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body)


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Write an authority, and a certificate of it for C{localhost} with its key, and return both files."""
    key, leaf_key = make_key(), make_key()
    authority = make_authority("Tests", ["localhost"], key, _VALID)
    leaf = make_leaf("localhost", leaf_key, authority, key, _VALID)
    directory.mkdir(parents=True)
    trusted, certificate = directory / "authority.pem", directory / "certificate.pem"
    trusted.write_bytes(authority.public_bytes(Encoding.PEM))
    private = leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificate.write_bytes(leaf.public_bytes(Encoding.PEM) + private)
    return trusted, certificate
