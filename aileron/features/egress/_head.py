"""Parses the head of a connection to the proxy: the launcher's line with a ticket, then a CONNECT request.

The launcher writes its line outside of the sandbox, so no program inside holds a key. The bytes after that line come
from inside (RFC 9110, section 9.3.6).
"""

from __future__ import annotations

import re

from attrs import field, frozen

from aileron.base.addresses import read_address, read_host_and_port

from .values import EGRESS_LINE

MOST_HEAD_BYTES = 16 * 1024

_END = b"\r\n\r\n"
_TICKET = re.compile(re.escape(EGRESS_LINE) + rb"([A-Za-z0-9_-]{1,128})")
_REQUEST = re.compile(rb"([A-Z]{1,32}) ([\x21-\x7e]+) HTTP/1\.[01]")
_CONNECT = b"CONNECT"


@frozen
class HeadRefused(Exception):
    """The error for a connection that the proxy refuses.

    :ivar status: the status of the response.
    :ivar why: the reason, as a sentence without its full stop.
    """

    status: int
    why: str


@frozen
class ConnectRequest:
    """A CONNECT request to the proxy, which asks for a connection to a host.

    :ivar ticket: the ticket of the session.
    :ivar host: the requested host with its port, in lower case.
    :ivar rest: the bytes after the head.
    """

    ticket: str = field(repr=False)
    host: str
    rest: bytes = field(repr=False)


def read_head(data: bytes) -> ConnectRequest | None:
    """Parse a head, and return the request or None if the head is incomplete.

    :raises HeadRefused: if the bytes cannot be the beginning of a head.
    """
    if not data.startswith(EGRESS_LINE[: len(data)]):
        raise HeadRefused(403, "This proxy serves sandboxes of Aileron only")
    head, end, rest = data.partition(_END)
    if not end:
        if len(data) > MOST_HEAD_BYTES:
            raise HeadRefused(431, "The request has too many headers")
        return None
    lines = head.split(b"\r\n")
    ticket, request = _TICKET.fullmatch(lines[0]), _REQUEST.fullmatch(lines[1]) if len(lines) > 1 else None
    if ticket is None or request is None:
        raise HeadRefused(400, "The request cannot be read")
    if request[1] != _CONNECT:
        raise HeadRefused(405, "Aileron's proxy serves HTTPS only (CONNECT)")
    try:
        host = read_host_and_port(request[2].decode("ascii").lower())
    except ValueError:
        raise HeadRefused(400, "The request names no proper host and port") from None
    if read_address(host.rpartition(":")[0].strip("[]")) is not None:
        raise HeadRefused(403, "Aileron's proxy connects to names, which TLS can say, and to no IP address")
    return ConnectRequest(ticket[1].decode("ascii"), host, rest)


def write_refusal(status: int, why: str) -> bytes:
    """Return an HTTP response that refuses a request.

    Clients show its reason phrase or its body, so both hold the reason.
    """
    body = f"{why}.\n".encode("ascii")
    head = (
        f"HTTP/1.1 {status} {why}",
        "Content-Type: text/plain; charset=us-ascii",
        f"Content-Length: {len(body)}",
        *(["Allow: CONNECT"] if status == 405 else []),
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode("ascii") + body
