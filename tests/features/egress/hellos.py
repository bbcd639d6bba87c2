"""ClientHellos, by the real library and by hand."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from functools import cache

HANDSHAKE, CHANGE_CIPHER_SPEC, APPLICATION = 22, 20, 23
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_ECH = 0xFE0D


@cache
def real_hello(name: str | None) -> bytes:
    """The first bytes of OpenSSL's client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("It waits for nobody.")


def vector(content: bytes, length_bytes: int) -> bytes:
    """Bytes behind their length."""
    return len(content).to_bytes(length_bytes, "big") + content


def extension(kind: int, content: bytes = b"") -> bytes:
    """One extension."""
    return kind.to_bytes(2, "big") + vector(content, 2)


def server_name(*names: bytes) -> bytes:
    """The extension that names servers."""
    return extension(0, vector(b"".join(b"\0" + vector(name, 2) for name in names), 2))


def ech() -> bytes:
    """The extension that hides another hello."""
    return extension(_ECH, b"\0" * 32)


def message(*extensions: bytes, behind: bytes = b"") -> bytes:
    """A ClientHello without its record."""
    body = b"\3\3" + bytes(32) + vector(b"", 1) + vector(b"\x13\x01", 2) + vector(b"\0", 1)
    return b"\1" + vector(body + vector(b"".join(extensions), 2) + behind, 3)


def record(content: bytes, kind: int = HANDSHAKE) -> bytes:
    """One record."""
    return bytes((kind, 3, 1)) + vector(content, 2)


def records(content: bytes, sizes: Sequence[int]) -> bytes:
    """A message in records of these sizes, the last of what is left."""
    pieces: list[bytes] = []
    for size in sizes:
        pieces, content = [*pieces, content[:size]], content[size:]
    return b"".join(map(record, filter(None, [*pieces, content])))


def server_hello(random: Iterable[int] = bytes(32)) -> bytes:
    """A server's first message."""
    return record(b"\2" + vector(b"\3\3" + bytes(random) + bytes(6), 3))
