"""Nothing that we accept is read differently by h11: requests and answers, mutated, in pieces, with what follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import h11
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.http1 import UNTIL_CLOSE, Body, Malformed, announced, parse_request, parse_response

EXAMPLES = 300

_LINES = st.lists(
    st.sampled_from(
        (
            b"Host: h",
            b"X-A: 1",
            b"x-a:  two words\t",
            b"Connection: close",
            b"Connection: keep-alive",
            b"Content-Length: 5",
            b"content-length: 12",
            b"Content-Length: 0",
            b"Content-Length: 5, 5",
            b"Transfer-Encoding: chunked",
            b"transfer-encoding: CHUNKED",
            b"Transfer-Encoding: gzip, chunked",
            b"Transfer-Encoding: identity",
            b"Content-Encoding: gzip",
            b"Expect: 100-continue",
            b"Trailer: X-T",
            b"Empty:",
            b"X-\xe4: 1",
            b"X-B: \xe4",
        )
    ),
    max_size=5,
)
_FIRST = st.sampled_from((b"POST /a?b HTTP/1.1", b"GET / HTTP/1.1", b"HEAD /x HTTP/1.1", b"PUT /x HTTP/1.0"))
_STATUS = st.sampled_from(
    (
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200",
        b"HTTP/1.1 404 ",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 204 None",
        b"HTTP/1.1 304 Same",
        b"HTTP/1.1 100 Go on",
        b"HTTP/1.1 103 Hints",
        b"HTTP/1.1 599 \xe4",
    )
)
_BODY = st.sampled_from(
    (
        b"",
        b"hello",
        b"hello world!",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;a=b\r\nhello\r\n7\r\n world!\r\n0\r\nX-T: 1\r\nX-U:\r\n\r\n",
        b"0\r\n\r\n",
        b"A\r\n0123456789\r\n00\r\n\r\n",
    )
)
_AFTER = st.sampled_from((b"", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"\r\n", b"x"))
_WRONG = st.sampled_from(
    (
        b"",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b";",
        b",",
        b"\x00",
        b"\x0b",
        b"\xa0",
        b"0",
        b"5",
        b"f",
    )
)
_MUTATIONS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 2), _WRONG), max_size=3)
_CUTS = st.lists(st.integers(1, 40), max_size=12)
_METHODS = st.sampled_from((b"GET", b"POST", b"HEAD"))


@frozen
class Read:
    """What a parser makes of one message.

    :ivar first: method and target, or the code.
    :ivar fields: by lower-case name.
    :ivar body: decoded; L{None}: it is not whole.
    :ivar end: where the message ends; L{None}: not in what came, or with its connection.
    """

    first: tuple[bytes, ...]
    fields: list[tuple[bytes, bytes]]
    body: bytes | None
    end: int | None


def mutated(message: bytes, mutations: list[tuple[int, int, bytes]]) -> bytes:
    """The message with some bytes taken out and others put in."""
    for where, out, put in mutations:
        at = where % (len(message) + 1)
        message = message[:at] + put + message[at + out :]
    return message


class RequestTests(SynchronousTestCase):
    """Requests."""

    @settings(deadline=None, max_examples=EXAMPLES)
    @given(_FIRST, _LINES, _BODY, _AFTER, _MUTATIONS, _CUTS)
    def test_same(
        self,
        first: bytes,
        lines: list[bytes],
        body: bytes,
        after: bytes,
        mutations: list[tuple[int, int, bytes]],
        cuts: list[int],
    ) -> None:
        """A request that we accept is the same to h11: method, target, fields, body, and where it ends."""
        message = mutated(b"\r\n".join([first, b"Host: h", *lines, b"", body]), mutations) + after
        ours = read_request(message, cuts)
        if ours is not None:
            theirs = h11_reads(h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), message)
            agree(self, ours, theirs, message)


class AnswerTests(SynchronousTestCase):
    """Answers."""

    @settings(deadline=None, max_examples=EXAMPLES)
    @given(_METHODS, _STATUS, _LINES, _BODY, _AFTER, _MUTATIONS, _CUTS)
    def test_same(
        self,
        method: bytes,
        first: bytes,
        lines: list[bytes],
        body: bytes,
        after: bytes,
        mutations: list[tuple[int, int, bytes]],
        cuts: list[int],
    ) -> None:
        """An answer that we accept is the same to h11: code, fields, body, and where it ends."""
        message = mutated(b"\r\n".join([first, *lines, b"", body]), mutations) + after
        ours = read_answer(message, cuts, method)
        if ours is not None:
            client = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
            asked = h11.Request(method=method, target="/", headers=[("Host", "h"), ("Content-Length", "0")])
            client.send(asked)
            client.send(h11.EndOfMessage())
            agree(self, ours, h11_reads(client, message), message)


def agree(case: SynchronousTestCase, ours: Read, theirs: Read | None, message: bytes) -> None:
    """Assert that h11 reads the same, or nothing."""
    if theirs is None:
        return
    case.assertEqual((ours.first, ours.fields), (theirs.first, theirs.fields), message)
    case.assertEqual((ours.end, ours.body), (theirs.end, theirs.body), message)


def split(message: bytes) -> tuple[bytes, bytes] | None:
    """Head and rest, if the head is whole."""
    end = message.find(b"\r\n\r\n")
    return None if end < 0 else (message[: end + 4], message[end + 4 :])


def read_request(message: bytes, cuts: list[int]) -> Read | None:
    """What we make of it; L{None}: we refuse it, or its head is not whole."""
    parts = split(message)
    if parts is None:
        return None
    try:
        head = parse_request(parts[0])
        end = end_of(announced(head.length), parts[1], cuts)
    except Malformed:
        return None
    first = (head.method, head.target, b"1.%d" % head.minor)
    return _read(first, head.lines, parts, end, chunked=head.length == -1)


def read_answer(message: bytes, cuts: list[int], method: bytes) -> Read | None:
    """The same of an answer."""
    parts = split(message)
    if parts is None:
        return None
    try:
        head = parse_response(parts[0])
        body = head.body(method)
        end = end_of(body, parts[1], cuts)
    except Malformed:
        return None
    until_close = head.length == UNTIL_CLOSE and body is not None
    end = len(parts[1]) if until_close else end
    return _read((b"%d" % head.code,), head.lines, parts, end, chunked=head.length == -1 and body is not None)


def end_of(body: Body | None, data: bytes, cuts: list[int]) -> int | None:
    """Where a body ends, fed in pieces of these lengths and the rest at once; L{None}: later."""
    if body is None:
        return 0
    at = 0
    for length in [*cuts, len(data)]:
        end = body.take(data[at : at + length])
        if end >= 0:
            return at + end
        at += len(data[at : at + length])
    return None


def _read(
    first: tuple[bytes, ...], lines: bytes, parts: tuple[bytes, bytes], end: int | None, *, chunked: bool
) -> Read:
    head, rest = parts
    pairs = (line.partition(b":")[::2] for line in lines.split(b"\r\n") if line)
    fields = _same_case([(name.lower(), value.strip(b" \t")) for name, value in pairs])
    if end is None:
        return Read(first, fields, None, None)
    return Read(first, fields, decoded(rest[:end]) if chunked else rest[:end], len(head) + end)


def decoded(framed: bytes) -> bytes:
    """What chunks say that we accept."""
    said = b""
    while True:
        line, _, framed = framed.partition(b"\r\n")
        length = int(line.partition(b";")[0], 16)
        if not length:
            return said
        said, framed = said + framed[:length], framed[length + 2 :]


def _same_case(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in fields]


def h11_reads(connection: h11.Connection, message: bytes) -> Read | None:
    """What h11 makes of it; L{None}: it refuses it."""
    connection.receive_data(message)
    try:
        head, *rest = events(connection)
    except h11.RemoteProtocolError:
        return None
    first = _first(head)
    fields = _same_case(head.headers)
    if not isinstance([head, *rest][-1], h11.EndOfMessage | h11.InformationalResponse):
        return Read(first, fields, None, None)
    said = b"".join(bytes(event.data) for event in rest if isinstance(event, h11.Data))
    return Read(first, fields, said, len(message) - len(connection.trailing_data[0]))


def _first(head: Any) -> tuple[bytes, ...]:
    if isinstance(head, h11.Request):
        return head.method, head.target, head.http_version
    return (b"%d" % head.status_code,)


def events(connection: h11.Connection) -> Iterator[Any]:
    """What it tells of one message, until that ends or more must come."""
    fields: set[bytes] = set()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.their_state is not h11.SEND_BODY or fields & {b"content-length", b"transfer-encoding"}:
                return
            connection.receive_data(b"")  # only this ends it
            continue
        yield event
        if isinstance(event, h11.EndOfMessage | h11.InformationalResponse):
            return
        if isinstance(event, h11.Request | h11.Response):
            fields = {name for name, _ in event.headers}
