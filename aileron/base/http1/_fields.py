"""The lines of a head: what they look like, and those that a proxy must not pass on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence


class Malformed(Exception):
    """The bytes are not one unambiguous HTTP/1.1 message; the text says why."""


MAX_FIELDS = 100
CHUNKED = -1

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
# What repeats one character gives nothing back.  A group cannot say so: before Python 3.11.5 it then finds nothing.
FIELD = TOKEN + rb"+:[\t\x20-\x7e\x80-\xff]*+"
FIELDS = rb"((?:\r\n" + FIELD + rb")*)\r\n\r\n"

# A literal first and one look-ahead keep the scan at C speed.
_HOP_BY_HOP = re.compile(
    rb"\r\n(?=[cCkKpPtTuU])(?:connection|keep-alive|proxy-[a-z]+|te|upgrade):[^\r]*", re.IGNORECASE
)
# Named by Connection, these are still the message's own: naming them would change what it says.
_NAME_NOTHING = frozenset((b"close", b"keep-alive"))
_KEPT = frozenset((b"content-length", b"host", b"transfer-encoding"))


def once(seen: Sequence[tuple[bytes, bytes]], lists: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Return the fields by lower-case name.

    :param seen: names and values as they came, but for spaces before them.
    :param lists: names that may stand more than once, and mean one list then (RFC 9110, section 5.3).
    :raises Malformed: another one stands twice: nobody could say which one holds.
    """
    fields = {name.lower(): value.rstrip(b" ") for name, value in seen}
    return fields if len(fields) == len(seen) else _join(seen, lists)


def _join(seen: Sequence[tuple[bytes, bytes]], lists: Collection[bytes]) -> Mapping[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for name, value in seen:
        key, given = name.lower(), value.rstrip(b" ")
        if key not in fields:
            fields[key] = given
        elif key in lists:
            fields[key] += b", " + given
        else:
            raise Malformed(f"The field {key.decode('ascii')} stands twice.")
    return fields


def length_of(fields: Mapping[bytes, bytes]) -> int | None:
    """Read the length of a message's body in bytes, L{CHUNKED}, or L{None}: nothing was said.

    :param fields: by lower-case name, each of which stood once.
    :raises Malformed: it could be read in two ways.
    """
    if b"content_length" in fields or b"transfer_encoding" in fields:  # the same as with "-" to some servers
        raise Malformed("A field of framing is misspelt.")
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None or coding.lower() != b"chunked":
            raise Malformed("The body's length is ambiguous.")
        return CHUNKED
    if length is None:
        return None
    if not length.isdigit() or len(length) > 18:
        raise Malformed("Content-Length is not a number.")
    return int(length)


def words(value: bytes) -> frozenset[bytes]:
    """Split the members of a list such as C{Connection}'s, in lower case; empty ones are none."""
    return frozenset(word.strip() for word in value.lower().split(b",")) - {b""}


def end_to_end(lines: bytes, connection: bytes | None) -> bytes:
    """Return the lines without those of one hop, as they came and in their order (RFC 9110, section 7.6.1).

    :param lines: each with the line end before it.
    :param connection: value of the C{Connection} field, L{None} where there is none.
    """
    lines = _HOP_BY_HOP.sub(b"", lines)
    if connection is None or connection.lower() in _NAME_NOTHING:
        return lines
    named = words(connection) - _KEPT
    return b"\r\n".join(line for line in lines.split(b"\r\n") if line.partition(b":")[0].lower() not in named)
