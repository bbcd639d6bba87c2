"""In-band mode beside the plain gateway: how soon the first text is there, of one daemon, asked in turn."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from urllib.request import Request, urlopen

from attrs import frozen

from bench.gateway._certificate import CERTIFICATE, write_certificate
from bench.gateway._daemon import Home
from bench.gateway._processes import cores
from bench.table import row

ASKED = 400
"""Requests by each way, for each second that a figure may take."""

_EVENT = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%b}]}\n\n'
)
_DELTAS = (b'{"role":"assistant","content":""}', b'{"content":"first"}')
_HISTORY = [{"role": "user", "content": "word " * 200}, {"role": "assistant", "content": "word " * 200}] * 10
_BODY = json.dumps(
    {"model": "m", "stream": True, "messages": [*_HISTORY, {"role": "user", "content": "go on"}]}
).encode()


@frozen
class Provider:
    """Answers each request at once with a text.

    :ivar url: of it.
    """

    url: str

    @classmethod
    def start(cls) -> Provider:
        """Serve until the process ends."""
        listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=cls._accept, args=(listening,), daemon=True).start()
        return cls(f"http://127.0.0.1:{listening.getsockname()[1]}")

    @classmethod
    def _accept(cls, listening: socket.socket) -> None:
        while True:
            threading.Thread(target=cls._serve, args=(listening.accept()[0],), daemon=True).start()

    @staticmethod
    def _serve(connection: socket.socket) -> None:
        events = b"".join(_chunk(_EVENT % delta) for delta in _DELTAS)
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + events
        rest = _chunk(_EVENT.replace(b"%b", b'{},"finish_reason":"stop"')) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        while piece := connection.recv(1 << 16):
            data += piece
            head, end, body = data.partition(b"\r\n\r\n")
            if end and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
                connection.sendall(answer)
                time.sleep(0.002)  # so that what is measured is the text, and not the whole
                connection.sendall(rest)
                data = b""


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@frozen
class Way:
    """One address that is asked, on a connection of its own."""

    path: str
    connection: socket.socket

    def ask(self) -> float:
        """The seconds until the first text."""
        head = f"POST {self.path} HTTP/1.1\r\nHost: {_host(self.connection)}\r\nContent-Type: application/json\r\n"
        began = time.perf_counter()
        self.connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(_BODY) + _BODY)
        data = b""
        while b"first" not in data:
            data += self._receive()
        passed = time.perf_counter() - began
        while not data.endswith(b"0\r\n\r\n"):
            data += self._receive()
        return passed

    def _receive(self) -> bytes:
        piece = self.connection.recv(1 << 16)
        if not piece:
            raise RuntimeError("the daemon closed the connection")
        return piece


def _host(connection: socket.socket) -> str:
    return f"127.0.0.1:{connection.getpeername()[1]}"


def report(seconds: float) -> None:
    """Print how much later the first text is there than by the gateway alone.

    :param seconds: as of all figures.
    """
    provider = Provider.start()
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        directory = Path(place)
        write_certificate(directory)
        home = Home(directory / "home")
        home.furnish(directory / CERTIFICATE, "off")
        with home.serving(provider, cores().measured) as server:  # type: ignore[arg-type]  # of it only the URL counts
            found = json.loads((home.directory / "aileron/daemon.json").read_text())
            opened = _open_session(found["url"], found["launch_key"])
            plain, in_band = f"/s/{opened['gateway_key']}/openai", f"/s/{opened['in_band_key']}/inband/openai"
            times = _take_turns(server.port, [plain, in_band], round(ASKED * seconds))
    for name, of in (("median", median), ("quickest tenth", lambda each: quantiles(each, n=10)[0])):
        by_gateway, in_band_mode = (of(each) * 1e3 for each in times)
        added = f"{in_band_mode - by_gateway:+.2f} ms"
        row(
            f"first text in in-band mode, {name}",
            f"{in_band_mode:.2f} ms",
            f"gateway {by_gateway:.2f} ms, added {added}",
        )


def _open_session(url: str, launch_key: str) -> dict[str, str]:
    body = json.dumps({"agent": "bench", "in_band": True}).encode()
    headers = {"Authorization": f"Bearer {launch_key}", "Content-Type": "application/json"}
    with urlopen(Request(f"{url}/v1/sessions", body, headers)) as answer:
        opened: dict[str, str] = json.load(answer)
        return opened


def _take_turns(port: int, prefixes: list[str], number: int) -> list[list[float]]:
    """The times of each way, the first of them left out."""
    ways = [Way(f"{each}/v1/chat/completions", socket.create_connection(("127.0.0.1", port))) for each in prefixes]
    for way in ways:
        way.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(number + 10):
        for way, its in zip(ways, times, strict=True):
            its.append(way.ask())
    for way in ways:
        with closing(way.connection):
            pass
    return [its[10:] for its in times]
