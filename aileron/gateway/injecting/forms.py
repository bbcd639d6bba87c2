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

_NUMBERED = tuple({ord(char): f"\\u{ord(char):04X}" for char in chars} for chars in ("&<>", "/&<>'"))
"""What those who write JSON for pages of HTML have by its number."""

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
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
        yield Form(kind, escaped.encode("ascii"))
        if "%" in escaped or "\\u" in escaped:
            yield Form(kind, _DIGITS.sub(lambda digits: digits[0].lower(), escaped).encode("ascii"))
    for case in (bytes.lower, bytes.upper):
        pairs = case(secret.hex("|").encode("ascii"))
        yield Form("url", b"%" + pairs.replace(b"|", b"%"))
        yield Form("json", b"\\u00" + pairs.replace(b"|", b"\\u00"))
        if len(secret) >= _LONG_ENOUGH:
            yield Form("hex", pairs.replace(b"|", b""))
    if len(secret) >= _LONG_ENOUGH:
        for inside in _base64(secret):
            yield Form("base64", inside)
            yield Form("base64url", inside.translate(_URL_SAFE))


def _escaped(text: str) -> Iterator[tuple[str, str]]:
    """C{text} as usual encoders have it; digits in capitals, where both are usual."""
    for left in _LEFT_BY_URLS:
        yield "url", quote(text, safe=left)
    quoted = json.dumps(text)[1:-1]
    for written in (quoted, quoted.replace("/", "\\/"), *map(quoted.translate, _NUMBERED)):
        yield "json", written
    for written in (html.escape(text, quote=False), html.escape(text), html.escape(text).replace("&#x27;", "&#39;")):
        yield "html", written


def _base64(secret: bytes) -> Iterator[bytes]:
    """What base64 makes of C{secret} alone, whatever stands before and behind it: one text for each alignment."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).rstrip(b"=")
        # The first characters mix with what stands before the secret, the last with what follows it.
        yield whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]
