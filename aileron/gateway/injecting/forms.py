"""The forms in which a key that was put in may come back."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from aileron.values import LONG_ENOUGH, base64_inside

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
        if len(secret) >= LONG_ENOUGH:
            yield Form("hex", pairs.replace(b"|", b""))
    if len(secret) >= LONG_ENOUGH:
        for inside in base64_inside(secret):
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
