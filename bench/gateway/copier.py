"""What Python costs that only copies: C{python -m bench.gateway.copier URL} prints the port that it serves.

No proxy: each connection has one of its own to the upstream, and what comes goes on unread, by a bare loop of epoll.
Whatever relays in Python takes more.  It does not wait for a peer that does not read.
"""

from __future__ import annotations

import gc
import select
import socket
import ssl
import sys
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from attrs import field, frozen

_PIECE_BYTES = 65536
_RECORD_BYTES = 16384
_MOST_EVENTS = 512

Step = Callable[[], bool]
"""Copies what has come; whether more may come."""


def plain(source: socket.socket, sink: socket.socket) -> Step:
    """From one to the other."""
    receive, send = source.recv, sink.send

    def step() -> bool:
        data = receive(_PIECE_BYTES)
        if data:
            send(data)
        return bool(data)

    return step


def secured(client: socket.socket, upstream: socket.socket, context: ssl.SSLContext) -> tuple[Step, Step]:
    """There with TLS and back."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    _shake_hands(tls, upstream, incoming, outgoing)

    def there() -> bool:
        data = client.recv(_PIECE_BYTES)
        if data:
            tls.write(data)
            upstream.send(outgoing.read())
        return bool(data)

    def back() -> bool:
        data = upstream.recv(_PIECE_BYTES)
        incoming.write(data)
        while incoming.pending:
            try:
                client.send(tls.read(_RECORD_BYTES))
            except ssl.SSLWantReadError:
                break
        return bool(data)

    return there, back


def _shake_hands(tls: ssl.SSLObject, upstream: socket.socket, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            upstream.sendall(outgoing.read())
            incoming.write(upstream.recv(_PIECE_BYTES))
        else:
            upstream.sendall(outgoing.read())
            return


@frozen
class Copier:
    """The loop."""

    upstream: SplitResult
    listening: socket.socket
    context: ssl.SSLContext = field(factory=ssl.create_default_context)
    poller: select.epoll = field(factory=select.epoll)
    steps: dict[int, tuple[Step, socket.socket, socket.socket]] = field(factory=dict)

    def run(self) -> None:
        """For good."""
        self.poller.register(self.listening, select.EPOLLIN)
        gc.freeze()
        while True:
            for descriptor, _ in self.poller.poll(-1, _MOST_EVENTS):
                if descriptor in self.steps:
                    self._copy(*self.steps[descriptor])
                elif descriptor == self.listening.fileno():
                    self._accept()

    def _accept(self) -> None:
        client, _ = self.listening.accept()
        upstream = socket.create_connection((self.upstream.hostname, self.upstream.port))
        there, back = plain(client, upstream), plain(upstream, client)
        if self.upstream.scheme == "https":
            there, back = secured(client, upstream, self.context)
        for step, source, sink in ((there, client, upstream), (back, upstream, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            source.setblocking(False)
            self.steps[source.fileno()] = step, source, sink
            self.poller.register(source, select.EPOLLIN)

    def _copy(self, step: Step, source: socket.socket, sink: socket.socket) -> None:
        try:
            more = step()
        except OSError:
            more = False
        if not more:
            for each in (source, sink):
                del self.steps[each.fileno()]
                each.close()


def main(url: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listening.getsockname()[1], flush=True)
    Copier(urlsplit(url), listening).run()


if __name__ == "__main__":
    main(sys.argv[1])
