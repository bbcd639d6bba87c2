"""The beginning of an answer: interim heads, then the final one."""

from __future__ import annotations

from typing import NamedTuple

from aileron.http1 import Malformed, ResponseHead, end_to_end, parse_response

MAX_HEAD_BYTES = 65536


class Beginning(NamedTuple):
    """As much of an answer's beginning as has come.

    :ivar interim: heads that go on at once, without what is of one hop.
    :ivar head: the final one; L{None}: it has not come whole.
    :ivar raw: the same as it came.
    :ivar rest: what came after it, or of it.
    """

    interim: bytes
    head: ResponseHead | None
    raw: bytes
    rest: bytes


def read_beginning(data: bytes) -> Beginning:
    """Read the heads at the beginning of C{data}.

    :raises Malformed: it is no answer to anything that was asked.
    """
    start, interim = 0, b""
    while (end := data.find(b"\r\n\r\n", start) + 4) >= 4:
        raw = data[start:end]
        head = parse_response(raw)
        if not head.interim:
            return Beginning(interim, head, raw, data[end:])
        if head.code == 101:
            raise Malformed("The provider switched protocols, which nobody had asked for.")
        lines = end_to_end(head.lines, head.connection)
        interim += b"".join((b"HTTP/1.1 ", head.status, lines, b"\r\n\r\n"))
        start = end
    if len(data) - start > MAX_HEAD_BYTES:
        raise Malformed("The provider's answer has too long a head.")
    return Beginning(interim, None, b"", data[start:])
