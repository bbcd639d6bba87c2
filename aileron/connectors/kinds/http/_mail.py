"""The body kind C{mail}: a message of plain text (RFC 5322), for services that accept whole messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from quopri import encodestring

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._headers import encode_line, read_line
from aileron.connectors._template import Omitted, ReferenceScope, Template, problem, references, render

_ADDRESSES = {"to": "To", "cc": "Cc", "bcc": "Bcc"}
_TEXTS = {"subject": "Subject"}
_IDS = {"message_id": "Message-ID", "in_reply_to": "In-Reply-To", "references": "References"}
PARTS = {**_ADDRESSES, **_TEXTS, **_IDS, "text": ""}

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")
_ID = re.compile(r"[!-~]+(?: [!-~]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_LINE_BYTES = 998  # RFC 5322 2.1.1
_MOST_SUBJECT = 250
_MOST_ADDRESSES = 500


def read_mail(table: FileTable) -> Mapping[str, Template]:
    """Return the templates in the table C{mail} of an operation, by part. Faults are added to the table."""
    for name in table.values:
        if name not in PARTS:
            table.fault(name, f"is no part of a mail: {', '.join(PARTS)}")
        elif not isinstance(table.values[name], str):
            table.fault(name, "must be a text")
    for name in ("to", "text"):
        if name not in table.values:
            table.fault(name, "is missing")
    return dict(table.values)


def write_mail(template: Mapping[str, Template], scope: ReferenceScope) -> bytes:
    """Return the message: equal inputs give equal bytes, and no input can add or end a header.

    :raises InvalidRequest: if an input is no valid address, subject or text.
    """
    lines, content = [], ""
    for part, each in template.items():
        value = render(each, scope)
        is_left_out = value is None or isinstance(value, Omitted) or value in ("", [])
        if is_left_out and part != "to":
            continue
        try:
            if part == "text":
                content = _text(value)
            else:
                lines.append(f"{PARTS[part]}: {_header(part, value)}")
        except ValueError as error:
            named = sorted(name.removeprefix("in.") for name in references(each))
            raise problem(named[0] if named else part, str(error)) from error
    body = _LINE_END.sub("\r\n", content).encode("utf-8")
    long = any(len(line) > _MOST_LINE_BYTES for line in body.split(b"\r\n"))
    encoding = "quoted-printable" if long else "8bit"
    lines += ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", f"Content-Transfer-Encoding: {encoding}"]
    head = "\r\n".join([*lines, "", ""]).encode("ascii")
    return head + (encodestring(body.replace(b"\r\n", b"\n")).replace(b"\n", b"\r\n") if long else body)


def _header(part: str, value: JSON | Omitted) -> str:
    if part in _ADDRESSES:
        return ",\r\n ".join(_addresses(value))
    text = _text(value)
    if part in _IDS:
        if not _ID.fullmatch(text) or len(text) > _MOST_LINE_BYTES - 20:
            raise ValueError("must be visible ASCII without a line break")
        return text.replace(" ", "\r\n ")
    if len(text) > _MOST_SUBJECT:
        raise ValueError(f"must be one line of at most {_MOST_SUBJECT} characters")
    return encode_line(read_line(text))


def _text(value: JSON | Omitted) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("must be a text")
    value.encode("utf-8")  # a lone surrogate raises
    return value


def _addresses(value: JSON | Omitted) -> Iterator[str]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not 0 < len(given) <= _MOST_ADDRESSES:
        raise ValueError(f"must be 1 to {_MOST_ADDRESSES} addresses")
    for each in given:
        address = each.strip(" ") if isinstance(each, str) else ""
        if not _ADDRESS.fullmatch(address):
            raise ValueError("must be mail addresses such as ada@example.org, separated by commas")
        yield address
