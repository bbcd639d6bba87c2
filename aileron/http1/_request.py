"""What the head of a request says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ._bodies import Body, announced
from ._fields import CHUNKED, FIELDS, MAX_FIELDS, TOKEN, length_of, once
from ._malformed import Malformed

_HEAD = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.([01])" + FIELDS).fullmatch

# The only fields that are looked at before a route is.  A literal first and one look-ahead keep the scan at C speed.
_SEEN = re.compile(
    rb"\r\n(?=[aAcChHoOsStTuUxX])"
    rb"(a(?:nthropic-version|uthorization)|co(?:n(?:nection|tent(?:[-_]length|-type))|okie)|host|origin|"
    rb"sec-fetch-(?:dest|site|mode)|transfer[-_]encoding|upgrade|x-a(?:ileron-(?:gateway-key|proof)|pi-key)): *"
    rb"([^\r]*)",
    re.IGNORECASE,
).findall

# May stand more than once.
_LISTS = frozenset((b"anthropic-version", b"connection", b"origin", b"upgrade", b"x-api-key"))


class RequestHead(NamedTuple):
    """What a request's head says.

    :ivar minor: 0 or 1, of C{HTTP/1.x}.
    :ivar fields: those that are looked at, by lower-case name.
    :ivar length: of the body in bytes, or L{CHUNKED}.
    :ivar lines: all fields as they came, each with the line end before it.
    :ivar raw: the whole head as it came, with the closing empty line.
    """

    method: bytes
    target: bytes
    minor: int
    fields: Mapping[bytes, bytes]
    length: int
    lines: bytes
    raw: bytes

    @property
    def path(self) -> bytes:
        """The target without its query."""
        return self.target.partition(b"?")[0]

    def body(self) -> Body | None:
        """A fresh finder of the body's end, or L{None} where no body follows."""
        return announced(self.length)


def parse_request(raw: bytes) -> RequestHead:
    """Read a whole head, with its closing empty line.

    :raises Malformed: it is none.
    """
    match = _HEAD(raw)
    if match is None or raw.count(b"\r\n") > MAX_FIELDS:
        raise Malformed("This is no HTTP/1.1 request that can be read in only one way.")
    method, target, minor, lines = match.groups()
    fields = once(_SEEN(lines), _LISTS)
    length = length_of(fields) or 0
    if length == CHUNKED and minor == b"0":
        raise Malformed("HTTP/1.0 knows no chunks.")
    return RequestHead(method, target, int(minor), fields, length, lines, raw)
