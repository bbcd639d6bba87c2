"""The head of a connection to the proxy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.egress._head import MOST_HEAD_BYTES, ConnectRequest, HeadRefused, read_head, write_refusal

_TICKET = b"AILERON-EGRESS abc-_9\r\n"


class HeadTests(SynchronousTestCase):
    """L{read_head}."""

    def refused(self, data: bytes) -> int:
        """The status of its refusal."""
        status: int = self.assertRaises(HeadRefused, read_head, data).status
        return status

    def test_connect(self) -> None:
        """A ticket and a CONNECT are read once the head is whole; what stands behind it is kept."""
        head = _TICKET + b"CONNECT Registry.Example:443 HTTP/1.1\r\nHost: other\r\n\r\n"
        self.assertEqual(read_head(head + b"\x16"), ConnectRequest("abc-_9", "registry.example:443", b"\x16"))
        self.assertEqual({read_head(head[:end]) for end in range(len(head))}, {None})

    def test_no_ticket(self) -> None:
        """Without the launcher's line nothing is read further."""
        self.assertEqual(self.refused(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n"), 403)
        self.assertEqual(self.refused(b"X"), 403)

    def test_others(self) -> None:
        """Other methods, other targets and what is no HTTP are refused."""
        self.assertEqual(self.refused(_TICKET + b"GET http://a.example/ HTTP/1.1\r\n\r\n"), 405)
        for target in (b"a.example", b"a.example:0", b"a.example:99999", b"user@a.example:443", b"a..example:443"):
            self.assertEqual(self.refused(_TICKET + b"CONNECT " + target + b" HTTP/1.1\r\n\r\n"), 400, target)
        for target in (b"127.0.0.1:443", b"[::1]:443"):
            self.assertEqual(self.refused(_TICKET + b"CONNECT " + target + b" HTTP/1.1\r\n\r\n"), 403, target)
        for line in (b"CONNECT a.example:443", b"CONNECT a.example:443 HTTP/2", b"\0", b""):
            self.assertEqual(self.refused(_TICKET + line + b"\r\n\r\n"), 400, line)
        self.assertEqual(self.refused(b"AILERON-EGRESS a b\r\nCONNECT a.example:443 HTTP/1.1\r\n\r\n"), 400)

    def test_endless(self) -> None:
        """A head without an end is refused at a bound."""
        self.assertEqual(self.refused(_TICKET + b"a" * MOST_HEAD_BYTES), 431)

    @given(st.binary(max_size=300))
    def test_anything(self, data: bytes) -> None:
        """Whatever comes behind a ticket is a request, the beginning of one, or refused."""
        try:
            read_head(_TICKET + data)
        except HeadRefused as refused:
            self.assertIn(refused.status, (400, 403, 405, 431))

    def test_refusal(self) -> None:
        """A refusal says why in its first line and in its body."""
        answer = write_refusal(405, "No")
        self.assertTrue(answer.startswith(b"HTTP/1.1 405 No\r\n"))
        self.assertIn(b"\r\nAllow: CONNECT\r\n", answer)
        self.assertTrue(answer.endswith(b"Content-Length: 4\r\nAllow: CONNECT\r\nConnection: close\r\n\r\nNo.\n"))
