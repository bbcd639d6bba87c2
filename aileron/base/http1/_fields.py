"""The lines of a head: their syntax, and those that a proxy must not forward."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence


class Malformed(Exception):
    """Raised if the bytes are not an unambiguous HTTP/1.1 message.  The text is the reason."""


MAX_FIELDS = 100
CHUNKED = -1

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
# Possessive repetition of one character class prevents backtracking. A group cannot be possessive: before Python 3.11.5
# it then matches nothing.
FIELD = TOKEN + rb"+:[\t\x20-\x7e\x80-\xff]*+"
FIELDS = rb"((?:\r\n" + FIELD + rb")*)\r\n\r\n"

# A literal first and one look-ahead keep the scan at C speed.
_HOP_BY_HOP = re.compile(
    rb"\r\n(?=[cCkKpPtTuU])(?:connection|keep-alive|proxy-[a-z]+|te|upgrade):[^\r]*", re.IGNORECASE
)
# Headers that belong to the message even if Connection names them: removing them would change the message.
_NAME_NOTHING = frozenset((b"close", b"keep-alive"))
_KEPT = frozenset((b"content-length", b"host", b"transfer-encoding"))


def once(seen: Sequence[tuple[bytes, bytes]], lists: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Return the fields by lower-case name.

    :param seen: the names and values as received, without leading spaces.
    :param lists: names that may be repeated, and then form one list (RFC 9110, section 5.3).
    :raises Malformed: if another name is repeated, so that its value is ambiguous.
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
    """Return the length of a message's body in bytes, L{CHUNKED}, or None if no field states it.

    :param fields: the fields by lower-case name, without repetitions.
    :raises Malformed: if the length is ambiguous or invalid.
    """
    if b"content_length" in fields or b"transfer_encoding" in fields:  # some servers treat "_" as "-"
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
    """Return the members of a list such as C{Connection}'s, in lower case, without empty ones."""
    return frozenset(word.strip() for word in value.lower().split(b",")) - {b""}


def end_to_end(lines: bytes, connection: bytes | None) -> bytes:
    """Return the header lines without hop-by-hop headers, unchanged and in order (RFC 9110, section 7.6.1).

    :param lines: each line preceded by its line end.
    :param connection: the value of the C{Connection} field, or None if there is none.
    """
    lines = _HOP_BY_HOP.sub(b"", lines)
    if connection is None or connection.lower() in _NAME_NOTHING:
        return lines
    named = words(connection) - _KEPT
    return b"\r\n".join(line for line in lines.split(b"\r\n") if line.partition(b":")[0].lower() not in named)
