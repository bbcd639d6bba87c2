"""Builds a search, and parses messages. A message is foreign text and not trusted."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser
from itertools import islice
from quopri import decodestring
from typing import Any

from aileron.base.json import JSON
from aileron.connectors._decode import proper
from aileron.connectors._template import problem

from .imap import quoted, read_number

INBOX = "INBOX"
SOUGHT = ("mailbox", "from", "to", "subject", "text", "since", "before", "unread", "limit")
SUMMARY = b"FLAGS RFC822.SIZE BODY.PEEK[HEADER.FIELDS (FROM TO CC SUBJECT DATE MESSAGE-ID)]"
MOST_MESSAGE_BYTES = 8 * 1024 * 1024

_WORDS = (("from", "FROM"), ("to", "TO"), ("subject", "SUBJECT"), ("text", "TEXT"))
_DAYS = (("since", "SINCE"), ("before", "BEFORE"))
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_HEADERS = ("From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To")
_MOST_FOUND, _USUALLY_FOUND = 50, 20
_MOST_HEADER_CHARACTERS = 2000
_MOST_TEXT_CHARACTERS = 100_000
_MOST_TEXT_BYTES = 4 * _MOST_TEXT_CHARACTERS
_MOST_HEAD_BYTES = 32 * 1024
_MOST_PARTS, _MOST_DEPTH = 100, 8
# The charsets of real mail. Python has more, and decoding punycode takes quadratic time.
_CHARSET = re.compile(
    r"(us-)?ascii|utf-?(7|8|16|32)(-?[bl]e)?|(iso-?8859|windows|cp|ibm|koi8|latin)-?[0-9a-z]{1,5}|tis-620|macintosh"
    r"|iso-?2022-?(jp|kr)(-[0-9a-z]{1,4})?|euc-?(jp|kr)|shift-jis|sjis|gb(k|2312|18030)|big5(-hkscs)?|ks-c-5601-1987"
)


def read_search(inputs: Mapping[str, JSON]) -> dict[str, JSON]:
    """Check the inputs of a search, and return them with defaults.

    :raises InvalidRequest: if an input is invalid.
    """
    for name, value in inputs.items():
        if name not in SOUGHT:
            raise problem(name, "is unknown to the operation")
        if name == "unread" and not isinstance(value, bool | None):
            raise problem(name, "must be true or false")
        if name == "limit" and value is not None:
            check_number(name, value, _MOST_FOUND)
        elif name != "unread" and value is not None:
            _check_text(name, value)
    given = {name: value for name, value in inputs.items() if value is not None and value != ""}
    for name, _ in _DAYS:
        if name in given:
            _day(name, given[name])
    return {"mailbox": INBOX, "limit": _USUALLY_FOUND, **given}


def check_number(name: str, value: JSON, most: int) -> int:
    """Check a number, and return it.

    :raises InvalidRequest: if C{value} is no whole number from 1 to C{most}.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise problem(name, f"must be a number from 1 to {most}")
    return value


def check_mailbox(inputs: Mapping[str, JSON]) -> str:
    """Check the mailbox's name, and return it. Without a name, return C{INBOX}.

    :raises InvalidRequest: if the name is invalid.
    """
    value = inputs.get("mailbox") or INBOX
    _check_text("mailbox", value)
    return str(value)


def criteria(search: Mapping[str, JSON]) -> bytes:
    """Return a search as IMAP criteria.

    :raises ValueError: if a text has line breaks or control characters.
    :raises InvalidRequest: if a date is invalid.
    """
    found = [b"UNSEEN"] if search.get("unread") else []
    found += [key.encode() + b" " + quoted(str(search[name])) for name, key in _WORDS if name in search]
    found += [f"{key} {_day(name, search[name])}".encode() for name, key in _DAYS if name in search]
    whole = b" ".join(found or [b"ALL"])
    return whole if whole.isascii() else b"CHARSET UTF-8 " + whole


def summarize(uid: int, pairs: Mapping[bytes, Any]) -> dict[str, JSON]:
    """Return the summary of a message: its UID, its headers, whether it is unread, and its size.

    The size is null if the server sends none.
    """
    headers = pairs.get(b"BODY")
    size, flags = pairs.get(b"RFC822.SIZE"), pairs.get(b"FLAGS")
    return {
        "uid": uid,
        **_read_headers(_parse_head(headers if isinstance(headers, bytes) else b"")),
        "unread": isinstance(flags, list) and rb"\Seen" not in flags,
        "bytes": read_number(size) if isinstance(size, bytes) and size.isdigit() else None,
    }


def read_message(uid: int, source: bytes) -> dict[str, JSON]:
    """Parse a message into its headers, its text, cut if it is long, and the name and type of each attachment."""
    head, parts = _split(source)[0], [*islice(_parts(source, _MOST_DEPTH), _MOST_PARTS)]
    named = [(each.get_content_type(), _decoded(_file_name(each)), each, body) for each, body in parts]
    bodies = {kind: (each, body) for kind, name, each, body in reversed(named) if not name}
    body = bodies.get("text/plain") or bodies.get("text/html")
    text, is_cut = ("", False) if body is None else _text(*body)
    return {
        "uid": uid,
        **_read_headers(head),
        "text": text[:_MOST_TEXT_CHARACTERS],
        "truncated": is_cut or len(text) > _MOST_TEXT_CHARACTERS,
        "attachments": [
            {"name": name, "media_type": kind} for kind, name, *_ in named if name or not kind.startswith("text/")
        ],
    }


def _check_text(name: str, value: JSON) -> None:
    if not isinstance(value, str):
        raise problem(name, "must be a text")
    try:
        quoted(value)
    except UnicodeEncodeError:
        raise problem(name, "is no proper Unicode text") from None
    except ValueError as error:
        raise problem(name, str(error)) from None
    if len(value) > 500:
        raise problem(name, "must have 500 characters at most")


def _day(name: str, value: JSON) -> str:
    try:
        day = date.fromisoformat(str(value))
    except ValueError:
        raise problem(name, "must be a date, such as 2026-05-01") from None
    return f"{day.day}-{_MONTHS[day.month - 1]}-{day.year:04}"


def _read_headers(message: Message) -> dict[str, JSON]:
    found = {name.lower().replace("-", "_"): message.get(name) for name in _HEADERS}
    return {name: _decoded(value) for name, value in found.items() if value is not None}


def _decoded(text: object) -> str:
    """Decode a header, cut if it is long. If it cannot be decoded, return it without changes."""
    cut = " ".join(str(text)[:_MOST_HEADER_CHARACTERS].split())
    try:
        words = decode_header(cut)
        return proper(str(make_header(words)) if all(_is_known(charset or "ascii") for _, charset in words) else cut)
    except (MessageError, LookupError, ValueError):
        return proper(cut)


def _parse_head(head: bytes) -> Message:
    return BytesHeaderParser().parsebytes(head[:_MOST_HEAD_BYTES])


def _split(source: bytes) -> tuple[Message, bytes]:
    """Return the headers and the body of a message, or of a part of one."""
    if source.startswith(b"\r\n"):
        return Message(), source[2:]
    head, _, body = source.partition(b"\r\n\r\n")
    return _parse_head(head), body


def _parts(source: bytes, depth: int) -> Iterator[tuple[Message, bytes]]:
    """Yield headers and content of the innermost parts, in linear time.

    The package C{email} would take quadratic time for a hostile message.
    """
    head, body = _split(source)
    boundary = _parameter(head, "boundary").rstrip() if head.get_content_maintype() == "multipart" and depth else ""
    if not boundary:
        yield head, body
        return
    mark = b"\r\n--" + boundary.encode("utf-8", "replace")
    for each in (b"\r\n" + body).split(mark, _MOST_PARTS)[1:]:
        if each.startswith(b"--"):
            return
        yield from _parts(each.partition(b"\r\n")[2], depth - 1)


def _text(head: Message, body: bytes) -> tuple[str, bool]:
    """Return the decoded beginning of a text, and whether it was cut."""
    encoding = str(head.get("Content-Transfer-Encoding", "")).strip().lower()
    with suppress(ValueError):
        body = b64decode(body) if encoding == "base64" else body
        body = decodestring(body) if encoding == "quoted-printable" else body
    return _decode(body[:_MOST_TEXT_BYTES], _parameter(head, "charset") or "utf-8"), len(body) > _MOST_TEXT_BYTES


def _file_name(head: Message) -> str:
    return (_parameter(head, "filename", "Content-Disposition") or _parameter(head, "name")).strip()


def _parameter(head: Message, name: str, header: str = "Content-Type") -> str:
    """Return a decoded parameter of a header (RFC 2231), or an empty text if there is none."""
    value: Any = head.get_param(name, "", header)
    if isinstance(value, tuple):
        charset, _, text = value
        return _decode(text.encode("raw-unicode-escape"), charset or "ascii")
    return str(value)


def _decode(text: bytes, charset: str) -> str:
    try:
        return proper(text.decode(charset if _is_known(charset) else "utf-8", "replace"))
    except (LookupError, ValueError):
        return text.decode("utf-8", "replace")


def _is_known(charset: str) -> bool:
    return _CHARSET.fullmatch(charset.lower().replace("_", "-")) is not None
