"""A tool's side of one connection over TLS, straight or through a proxy."""

from __future__ import annotations

import socket
import ssl
import time
from types import TracebackType

from attrs import frozen

_PIECE = 1 << 18


@frozen
class Way:
    """One connection."""

    connection: ssl.SSLSocket
    host: str

    def __enter__(self) -> Way:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self.connection.close()

    def read(self, path: str, least: int = 0) -> float:
        """Send a read, and return the seconds until its answer is there.

        :param least: the bytes that the answer has at least.
        :raises RuntimeError: if it is no success, or shorter.
        """
        began = time.perf_counter()
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nUser-Agent: bench\r\n\r\n".encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, body = data.partition(b"\r\n\r\n")
        length, got = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]), len(body)
        while got < length:
            got += len(self._receive())
        if not head.startswith(b"HTTP/1.1 200") or length < least:
            raise RuntimeError(f"{self.host}{path}: {head[:300]!r} {body[:300]!r}")
        return time.perf_counter() - began

    def write(self, path: str, body: bytes) -> None:
        """Send a write, and do not wait for its answer."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        self.connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _receive(self) -> bytes:
        piece = self.connection.recv(_PIECE)
        if not piece:
            raise RuntimeError(f"{self.host} closed the connection")
        return piece


def connect_directly(host: str, port: int, trusts: ssl.SSLContext) -> Way:
    """Connect to a service on loopback."""
    return _secure(_connect(port), f"{host}:{port}", trusts)


def connect_through(port: int, line: bytes, host: str, trusts: ssl.SSLContext) -> Way:
    """Connect through a proxy.

    :param line: what the proxy wants before the request, or empty.
    :param host: the host with its port.
    :raises RuntimeError: if the proxy refuses.
    """
    connection = _connect(port)
    connection.sendall(line + f"CONNECT {host} HTTP/1.1\r\n".encode() + (b"" if line else b"Host: x\r\n") + b"\r\n")
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            raise RuntimeError(f"the proxy closed the connection: {data!r}")
        data += piece
    if b" 200 " not in data:
        raise RuntimeError(f"the proxy refused: {data!r}")
    return _secure(connection, host, trusts)


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _secure(connection: socket.socket, host: str, trusts: ssl.SSLContext) -> Way:
    return Way(trusts.wrap_socket(connection, server_hostname=host.partition(":")[0]), host)
