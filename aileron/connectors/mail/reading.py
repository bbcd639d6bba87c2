"""Reads a search, and takes a message apart: a stranger's text, of which nothing is believed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from typing import Any

from aileron.connectors._decode import proper
from aileron.connectors._template import problem
from aileron.values import JSON

from .imap import quoted

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
_MOST_PARTS = 100


def read_search(inputs: Mapping[str, JSON]) -> dict[str, JSON]:
    """Check what is looked for.

    :raises InvalidRequest: it is no search.
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
    """Return the number that an input is; raises as L{read_search}."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise problem(name, f"must be a number from 1 to {most}")
    return value


def check_mailbox(inputs: Mapping[str, JSON]) -> str:
    """Return the name of the mailbox that is meant; raises as L{read_search}."""
    value = inputs.get("mailbox") or INBOX
    _check_text("mailbox", value)
    return str(value)


def criteria(search: Mapping[str, JSON]) -> bytes:
    """Write a search as IMAP has it."""
    found = [b"UNSEEN"] if search.get("unread") else []
    found += [key.encode() + b" " + quoted(str(search[name])) for name, key in _WORDS if name in search]
    found += [f"{key} {_day(name, search[name])}".encode() for name, key in _DAYS if name in search]
    whole = b" ".join(found or [b"ALL"])
    return whole if whole.isascii() else b"CHARSET UTF-8 " + whole


def summarize(uid: int, pairs: Mapping[bytes, Any]) -> dict[str, JSON]:
    """Describe a message that was found."""
    headers = pairs.get(b"BODY")
    size, flags = pairs.get(b"RFC822.SIZE"), pairs.get(b"FLAGS")
    return {
        "uid": uid,
        **_read_headers(message_from_bytes(headers if isinstance(headers, bytes) else b"")),
        "unread": isinstance(flags, list) and rb"\Seen" not in flags,
        "bytes": int(size) if isinstance(size, bytes) and size.isdigit() else None,
    }


def read_message(uid: int, source: bytes) -> dict[str, JSON]:
    """Read a message: its headers, its text, and which attachments it has."""
    message = message_from_bytes(source)
    parts = list(_parts(message))
    text = next((_text(each) for kind in ("text/plain", "text/html") for each in parts if _is_body(each, kind)), "")
    attached = [each for each in parts if not each.get_content_type().startswith("text/") or each.get_filename()]
    return {
        "uid": uid,
        **_read_headers(message),
        "text": text[:_MOST_TEXT_CHARACTERS],
        "truncated": len(text) > _MOST_TEXT_CHARACTERS,
        "attachments": [
            {"name": _decoded(each.get_filename() or ""), "media_type": each.get_content_type()} for each in attached
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
    return {name: _decoded(str(value)) for name, value in found.items() if value is not None}


def _decoded(text: str) -> str:
    """Decode a header; what cannot be decoded stays as it came."""
    cut = " ".join(text[:_MOST_HEADER_CHARACTERS].split())
    try:
        return proper(str(make_header(decode_header(cut))))
    except (MessageError, LookupError, ValueError):
        return proper(cut)


def _parts(message: Message) -> Iterator[Message]:
    """Yield the parts that hold no others, as far as a message has a proper number of them."""
    for number, each in enumerate(message.walk()):
        if number == _MOST_PARTS:
            return
        if not each.is_multipart():
            yield each


def _is_body(part: Message, kind: str) -> bool:
    return part.get_content_type() == kind and not part.get_filename()


def _text(part: Message) -> str:
    content = part.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    try:
        return proper(raw.decode(part.get_content_charset("utf-8"), "replace"))
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")
