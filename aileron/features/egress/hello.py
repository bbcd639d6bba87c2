"""Parses the server name that a TLS client requests in its first message (RFC 8446, RFC 6066), the "hello".

Its size is limited. Ambiguous messages are refused: bytes that are not TLS, a hello without exactly one name, and a
hello with an encrypted second hello (Encrypted Client Hello), which a server may use instead of the visible one.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from aileron.base.addresses import read_host

MOST_HELLO_BYTES = 16 * 1024
"""The limit of a whole hello. Hellos of current clients have about two thousand bytes."""

SERVER_HELLO_BYTES = 43
"""The number of first bytes that show whether a server requests another hello."""

_RECORD_HEAD, _MESSAGE_HEAD = 5, 4
_MOST_RECORD = 2**14
_MOST_RECORDS = 16  # all records are parsed again with each piece that arrives
_MAJOR = 3
_HANDSHAKE, _CHANGE_CIPHER_SPEC = 22, 20
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SERVER_NAME, _HOST_NAME = 0, 0
_ENCRYPTED = {0xFE0D: "ECH", 0xFFCE: "ESNI"}
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a server's hello that asks for another one (RFC 8446, section 4.1.3)."""


@frozen
class Hello:
    """A complete first TLS message ("hello") of a client.

    :ivar name: the requested server's name, in lower case.
    :ivar length: the number of bytes that the hello occupies.
    """

    name: str
    length: int


@frozen
class HelloRefused(Exception):
    """The error for first bytes of a client that are no hello with exactly one visible name.

    :ivar why: the reason, as the end of a sentence whose subject is the client's message.
    """

    why: str


def read_hello(data: bytes) -> Hello | None:
    """Parse a client's hello, and return the hello or None if it is incomplete.

    :param data: all bytes that the client sent, or sent since the server requested another hello.
    :raises HelloRefused: if the bytes cannot be the beginning of a hello with exactly one visible name.
    """
    message, length = _read_message(data)
    if message is None:
        if len(data) >= MOST_HELLO_BYTES:
            raise HelloRefused(f"is longer than {MOST_HELLO_BYTES} bytes")
        return None
    try:
        return Hello(_name_of(dict(_extensions_of(_HelloReader(message)))), length)
    except (IndexError, ValueError):
        raise HelloRefused("is no valid TLS ClientHello") from None


def asks_again(first: bytes) -> bool:
    """Return True if the first L{SERVER_HELLO_BYTES} of a server request another hello from the client."""
    return first[0] == _HANDSHAKE and first[_RECORD_HEAD] == _SERVER_HELLO and first[11:43] == _RETRY


def _read_message(data: bytes) -> tuple[bytes | None, int]:
    """Join the hello from its records. Return the hello and the length of the records, or None and 0 if incomplete.

    :raises HelloRefused: if the bytes cannot be the beginning of a hello.
    """
    body, end, count = b"", 0, 0
    while len(data) - end >= _RECORD_HEAD:
        count += 1
        if count > _MOST_RECORDS:
            raise HelloRefused(f"comes in more than {_MOST_RECORDS} TLS records")
        start, length = end + _RECORD_HEAD, int.from_bytes(data[end + 3 : end + 5], "big")
        _check_record(data[end], data[end + 1], length, begun=bool(body))
        if data[end] == _HANDSHAKE:
            body += data[start : start + length]
        end = start + length
        if _is_whole(body) and end <= len(data):
            return body[_MESSAGE_HEAD:], end
    if end < len(data) and data[end] not in (_HANDSHAKE, _CHANGE_CIPHER_SPEC):
        raise HelloRefused("is not TLS")
    return None, 0


def _check_record(kind: int, major: int, length: int, *, begun: bool) -> None:
    """Check the head of a TLS record.

    :param begun: whether an earlier record contained a part of the hello.
    :raises HelloRefused: if a client may not send such a record before the server's answer.
    """
    if kind not in (_HANDSHAKE, _CHANGE_CIPHER_SPEC) or major != _MAJOR:
        raise HelloRefused("is not TLS")
    if not 0 < length <= _MOST_RECORD or (kind == _CHANGE_CIPHER_SPEC and (begun or length != 1)):
        raise HelloRefused("is no valid TLS ClientHello")


def _is_whole(body: bytes) -> bool:
    """Return True if the client's first TLS message (the "hello") is complete.

    :raises HelloRefused: if the message is no hello or too long, or another message follows in its records.
    """
    if body and body[0] != _CLIENT_HELLO:
        raise HelloRefused("is no TLS ClientHello")
    if len(body) < _MESSAGE_HEAD:
        return False
    length = _MESSAGE_HEAD + int.from_bytes(body[1:_MESSAGE_HEAD], "big")
    if length > MOST_HELLO_BYTES:
        raise HelloRefused(f"is longer than {MOST_HELLO_BYTES} bytes")
    if len(body) > length:
        raise HelloRefused("has more than one message in a TLS record")
    return len(body) == length


class _HelloReader:
    """A reader of fields from the front of bytes, which raises IndexError if the bytes end early."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, length: int) -> bytes:
        if len(self.left) < length:
            raise IndexError
        taken, self.left = self.left[:length], self.left[length:]
        return taken

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")

    def vector(self, length_bytes: int) -> bytes:
        return self.take(self.number(length_bytes))


def _extensions_of(hello: _HelloReader) -> Iterator[tuple[int, bytes]]:
    """Yield the type and content of each extension.

    :raises ValueError: if an extension occurs twice, or bytes follow the extensions.
    """
    hello.take(2 + 32)  # version and random
    for length_bytes in (1, 2, 1):  # session, cipher suites, compression
        hello.vector(length_bytes)
    extensions, seen = _HelloReader(hello.vector(2) if hello.left else b""), set()
    if hello.left:
        raise ValueError
    while extensions.left:
        kind = extensions.number(2)
        if kind in seen:
            raise ValueError
        seen.add(kind)
        yield kind, extensions.vector(2)


def _name_of(extensions: dict[int, bytes]) -> str:
    hidden = next((name for kind, name in _ENCRYPTED.items() if kind in extensions), None)
    if hidden is not None:
        raise HelloRefused(f"hides a server name ({hidden})")
    if _SERVER_NAME not in extensions:
        raise HelloRefused("has no server name (SNI)")
    outer = _HelloReader(extensions[_SERVER_NAME])
    names = _HelloReader(outer.vector(2))
    if outer.left or names.number(1) != _HOST_NAME:
        raise ValueError
    name = names.vector(2)
    if names.left:
        raise ValueError
    return read_host(name.decode("ascii"))
