"""The forms in which a key that was put in may come back."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

_LONG_ENOUGH = 6
"""Bytes.  Of anything shorter, hexadecimal and base64 would be met by chance; as it is, it is always looked for."""

_LEFT_BY_URLS = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""What those who escape for URLs leave as it is, beside what all of them leave."""

_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")


class Form(NamedTuple):
    """One writing of a key.

    :ivar kind: for the record, as connectors name it.
    """

    kind: str
    text: bytes


def forms(secret: bytes) -> tuple[Form, ...]:
    """C{secret} as it is, escaped for URLs, JSON and HTML, and in hexadecimal and base64; each writing once.

    :param secret: visible ASCII.
    """
    found: dict[bytes, Form] = {}
    for form in _forms(secret):
        found.setdefault(form.text, form)
    return tuple(found.values())


def _forms(secret: bytes) -> Iterator[Form]:
    yield Form("plain", secret)
    for kind, escaped in _escaped(secret.decode("ascii")):
        for written in (escaped, _DIGITS.sub(_lower, escaped), _DIGITS.sub(_upper, escaped)):
            yield Form(kind, written.encode("ascii"))
    if len(secret) >= _LONG_ENOUGH:
        yield from (Form("hex", secret.hex().encode("ascii")), Form("hex", secret.hex().upper().encode("ascii")))
        for inside in _base64(secret):
            yield Form("base64", inside)
            yield Form("base64url", inside.translate(bytes.maketrans(b"+/", b"-_")))


def _escaped(text: str) -> Iterator[tuple[str, str]]:
    for left in _LEFT_BY_URLS:
        yield "url", quote(text, safe=left)
    yield "url", "".join(f"%{ord(char):02x}" for char in text)
    quoted = json.dumps(text)[1:-1]
    for written in (quoted, quoted.replace("/", "\\/"), _numbered(quoted, "/&<>'"), _numbered(quoted, "&<>")):
        yield "json", written
    yield "json", _numbered(text, text)
    for written in (html.escape(text, quote=False), html.escape(text), html.escape(text).replace("&#x27;", "&#39;")):
        yield "html", written


def _numbered(text: str, characters: str) -> str:
    """C{text} with some characters by their number, as JSON has it."""
    return "".join(f"\\u{ord(char):04x}" if char in characters else char for char in text)


def _lower(digits: re.Match[str]) -> str:
    return digits[0].lower()


def _upper(digits: re.Match[str]) -> str:
    return digits[0].upper()


def _base64(secret: bytes) -> Iterator[bytes]:
    """What base64 makes of C{secret} alone, whatever stands before and behind it: one text for each alignment."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).rstrip(b"=")
        # The first characters mix with what stands before the secret, the last with what follows it.
        yield whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]
