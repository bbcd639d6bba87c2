"""The name in a client's hello."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.egress.hello import MOST_HELLO_BYTES, Hello, HelloRefused, asks_again, read_hello
from tests.features.egress.hellos import (
    CHANGE_CIPHER_SPEC,
    RETRY,
    ech,
    extension,
    message,
    real_hello,
    record,
    records,
    server_hello,
    server_name,
    vector,
)

_HOST = "registry.example"


class HelloTests(SynchronousTestCase):
    """L{read_hello}."""

    def refused(self, data: bytes) -> str:
        """Why it is refused."""
        why: str = self.assertRaises(HelloRefused, read_hello, data).why
        return why

    def test_real(self) -> None:
        """The hello of a real client names its server once it is whole, and not before."""
        data = real_hello(_HOST)
        self.assertEqual(read_hello(data + b"more"), Hello(_HOST, len(data)))
        self.assertEqual({read_hello(data[:end]) for end in range(len(data))}, {None})

    @given(st.lists(st.integers(1, 40), max_size=15), st.binary(max_size=20))
    def test_fragments(self, sizes: list[int], behind: bytes) -> None:
        """A hello in any number of records is read like one, and what stands behind it is not part of it."""
        data = records(message(server_name(_HOST.encode())), sizes)
        self.assertEqual(read_hello(data + behind), Hello(_HOST, len(data)))

    @given(st.binary(max_size=200))
    def test_anything(self, data: bytes) -> None:
        """Whatever comes is a hello, the beginning of one, or refused."""
        try:
            found = read_hello(data)
        except HelloRefused as refused:
            self.assertTrue(refused.why)
        else:
            self.assertTrue(found is None or found.length <= len(data))

    @given(st.integers(5, 500), st.integers(0, 255))
    def test_altered(self, at: int, byte: int) -> None:
        """A real hello with one byte changed is refused, goes on, or names what stands in it."""
        data = bytearray(real_hello(_HOST))
        data[at % len(data)] = byte
        try:
            found = read_hello(bytes(data))
        except HelloRefused:
            return
        self.assertTrue(found is None or found.name.encode() in bytes(data).lower())

    def test_no_name(self) -> None:
        """A hello without a name, with two, with an address or with bytes that are no name is refused."""
        self.assertEqual(self.refused(real_hello(None)), "has no server name (SNI)")
        for names in ((b"a.example", b"b.example"), (b"a.example.",), ("ä.example".encode(),), (b"",), ()):
            self.assertEqual(self.refused(record(message(server_name(*names)))), "is no valid TLS ClientHello")
        twice = message(server_name(b"a.example"), server_name(b"b.example"))
        self.assertEqual(self.refused(record(twice)), "is no valid TLS ClientHello")

    def test_encrypted(self) -> None:
        """A hello that carries another one encrypted is refused, whatever its visible name."""
        self.assertEqual(self.refused(record(message(server_name(b"a.example"), ech()))), "hides a server name (ECH)")
        esni = message(server_name(b"a.example"), extension(0xFFCE))
        self.assertEqual(self.refused(record(esni)), "hides a server name (ESNI)")

    def test_not_tls(self) -> None:
        """What is no TLS is refused by its first byte, or as soon as its record says so."""
        for data in (b"G", b"SSH-2.0-x\r\n", b"\x16\x02\x00\x00\x10", b"\x80\x2e\x01\x03\x01"):
            self.assertEqual(self.refused(data), "is not TLS")
        self.assertEqual(self.refused(record(b"\2" + bytes(20))), "is no TLS ClientHello")
        self.assertEqual(self.refused(record(b"")), "is no valid TLS ClientHello")

    def test_too_long(self) -> None:
        """A hello that says or shows that it is too long, or that comes in too many pieces, is refused."""
        too_long = f"is longer than {MOST_HELLO_BYTES} bytes"
        self.assertEqual(self.refused(record(b"\1" + (MOST_HELLO_BYTES + 1).to_bytes(3, "big"))), too_long)
        longest = record(b"\1" + vector(bytes(MOST_HELLO_BYTES - 4), 3))
        self.assertEqual(self.refused(longest[:MOST_HELLO_BYTES]), too_long)
        self.assertEqual(self.refused(records(message(), [1] * 16)), "comes in more than 16 TLS records")

    def test_trailing(self) -> None:
        """A second message in the hello's record, or bytes behind its extensions, are refused."""
        name = server_name(b"a.example")
        self.assertEqual(self.refused(record(message(name) * 2)), "has more than one message in a TLS record")
        self.assertEqual(self.refused(record(message(name, behind=b"x"))), "is no valid TLS ClientHello")
        outer = extension(0, vector(b"\0" + vector(b"a.example", 2), 2) + b"x")
        self.assertEqual(self.refused(record(message(outer))), "is no valid TLS ClientHello")

    def test_compatibility(self) -> None:
        """A second hello may stand behind the one record that clients send for old middleboxes, and nothing between."""
        whole = message(server_name(b"a.example"))
        data = record(b"\1", CHANGE_CIPHER_SPEC) + record(whole)
        self.assertEqual(read_hello(data), Hello("a.example", len(data)))
        between = record(whole[:9]) + record(b"\1", CHANGE_CIPHER_SPEC) + record(whole[9:])
        self.assertEqual(self.refused(between), "is no valid TLS ClientHello")

    def test_asks_again(self) -> None:
        """A server that asks for another hello is told from one that does not."""
        self.assertTrue(asks_again(server_hello(RETRY)))
        self.assertFalse(asks_again(server_hello()))
