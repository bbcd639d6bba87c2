"""What two parsers could read differently is refused: the corpus, against what reads heads and bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.http1 import Body, Chunked, Malformed, announced, parse_request, parse_response
from tests.base.http1.corpus import ANSWERS, CHUNKED_ANSWERS, CHUNKED_REQUESTS, FOLLOWED, REQUESTS

# Well formed, and refused by whoever knows who is asked and for what.
_BY_OTHERS = frozenset(
    (
        "line: HTTP/1.0",
        "line: absolute target",
        "line: absolute target of another",
        "line: authority",
        "line: asterisk",
        "line: relative target",
        "field: no host",
        "field: foreign host",
        "101",
        "interim, then garbage",
    )
)


def split(message: bytes) -> tuple[bytes, bytes]:
    """Head and what follows."""
    end = message.index(b"\r\n\r\n") + 4
    return message[:end], message[end:]


def whole(body: Body, data: bytes) -> int:
    """The end of a body that comes at once."""
    return body.take(data)


def slowly(body: Body, data: bytes) -> int:
    """The same, if it comes byte by byte; a very long one in somewhat larger pieces."""
    step = 1 if len(data) < 2000 else 97
    for at in range(0, len(data), step):
        end = body.take(data[at : at + step])
        if end >= 0:
            return at + end
    return -1


class CorpusTests(SynchronousTestCase):
    """Every entry."""

    def test_heads(self) -> None:
        """Requests and answers whose heads can be read in two ways are refused by their heads."""
        parsers: tuple[tuple[Mapping[str, bytes], Callable[[bytes], object]], ...] = (
            (REQUESTS, parse_request),
            (ANSWERS, parse_response),
        )
        for messages, parse in parsers:
            for name, message in messages.items():
                if name not in _BY_OTHERS:
                    with self.assertRaises(Malformed, msg=name):
                        parse(split(message)[0])

    def test_bodies(self) -> None:
        """Chunks that can be read in two ways are refused, in one piece and in many."""
        requests = ((name, *split(message), True) for name, message in CHUNKED_REQUESTS.items())
        answers = ((name, *split(message), False) for name, message in CHUNKED_ANSWERS.items())
        for name, head, rest, is_request in chain(requests, answers):
            for way in (whole, slowly):
                body = announced(parse_request(head).length) if is_request else parse_response(head).body(b"GET")
                assert body is not None
                with self.assertRaises(Malformed, msg=name):
                    self.assertEqual(way(body, rest), "refused")

    def test_at_once(self) -> None:
        """A body that goes wrong is refused with the first byte that cannot stand there, however it is cut."""
        for sound, wrong in (
            (b"", b"\r"),
            (b"", b";"),
            (b"3", b"g"),
            (b"3\r", b"x"),
            (b"3\r\nabc", b"x"),
            (b"3\r\nabc\r", b"x"),
            (b"3\r\nabc\r\n", b"\r"),
            (b"3\r\nabc\r\n", b";"),
            (b"0\r\n\r", b"x"),
        ):
            for pieces in ([sound], [sound[at : at + 1] for at in range(len(sound))]):
                body = Chunked()
                for piece in pieces:
                    self.assertEqual(body.take(piece), -1)
                self.assertRaises(Malformed, body.take, wrong)

    def test_followed(self) -> None:
        """An answer ends where it ends, whatever follows."""
        for name, (method, message, behind) in FOLLOWED.items():
            head, rest = split(message)
            body = parse_response(head).body(method.encode())
            self.assertEqual(body.take(rest + behind) if body else 0, len(rest), name)

    def test_sound(self) -> None:
        """What the entries are bent from is read."""
        for line in (b"Content-Length: 4", b"Content-Length:4", b"content-length:   0004  ", b"CONTENT-LENGTH: 4"):
            self.assertEqual(parse_request(b"POST /x HTTP/1.1\r\nHost: h\r\n" + line + b"\r\n\r\n").length, 4)
            self.assertEqual(parse_response(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n").length, 4)
        for coding in (b"chunked", b"Chunked", b"CHUNKED", b"  chunked  "):
            line = b"\r\nTransfer-Encoding:" + coding + b"\r\n\r\n"
            self.assertEqual(parse_request(b"POST /x HTTP/1.1\r\nHost: h" + line).length, -1)
            self.assertEqual(parse_response(b"HTTP/1.1 200 OK" + line).length, -1)
