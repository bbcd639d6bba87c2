"""The table of forms: in which writings a secret that was sent may come back."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import string
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from attrs import field, frozen

from ._escapes import MOST_LAYERS, undone

LONG_ENOUGH = 6
"""Bytes.  Of anything shorter, hexadecimal and base64 would be met by chance; as it is, it is always looked for."""

BASE64_CHARACTERS = frozenset(string.ascii_letters + string.digits + "+/-_")

_BASIC = "basic "
_URL_SAFE = str.maketrans("+/", "-_")
_NEVER_ESCAPED = re.compile(r"[A-Za-z0-9_.~-]*")
_DROPPED = re.compile(r"[\0\n]")
_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
_LEFT_BY_URLS = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""What those who escape for URLs leave as it is, beside what all of them leave."""

_NUMBERED = tuple({ord(char): f"\\u{ord(char):04X}" for char in chars} for chars in ("&<>", "/&<>'"))
"""What those who write JSON for pages of HTML have by its number."""

_BEFORE_DIGITS = (("url", "%", ""), ("json", "\\u00", ""), ("json", "\\x", ""), ("html", "&#x", ";"))
"""What stands around the two hexadecimal digits of a character, where each of them is escaped."""


@frozen
class SecretForm:
    """One writing of a secret.

    :ivar kind: for the record.
    :ivar cut: whether the characters at its sides may hold some bits of the secret as well.
    """

    kind: str
    text: str = field(repr=False)
    cut: bool = False


def secrets_in(key: str, value: str) -> tuple[str, ...]:
    """Everything secret in a header.

    :param key: the credential.
    :param value: of the header, with the credential in it; of HTTP's Basic scheme also what it encodes is secret.
    """
    user_and_password = _basic(value)
    if user_and_password is None:
        return (key,)
    password = user_and_password.partition(":")[2]
    return tuple(dict.fromkeys(each for each in (key, user_and_password, password) if each))


def _basic(value: str) -> str | None:
    if not value.lower().startswith(_BASIC):
        return None
    try:
        return base64.b64decode(value[len(_BASIC) :], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def forms(secret: str) -> tuple[SecretForm, ...]:
    """Return the forms of a secret to search for in text whose escapes are undone, without duplicates.

    They are the secret as it is, with a plus for each blank, as undoing escapes leaves it, and in hexadecimal and
    base64.
    """
    return _each_once(_forms(secret))


def written_forms(secret: str) -> tuple[SecretForm, ...]:
    """Return the forms of a secret to search for in text with its escapes: L{forms}, and each one escaped as usual.

    The usual encoders escape what they must, once or twice, or every character.  A mixture of escapes is not included:
    it is found only where escapes are undone.
    """
    plain = forms(secret)
    escaped = (SecretForm(kind, text) for form in plain for kind, text in _escape(form))
    return _each_once((*plain, *escaped, *_each_escaped(secret)))


def _each_once(found: Iterable[SecretForm]) -> tuple[SecretForm, ...]:
    by_text: dict[str, SecretForm] = {}
    for form in found:
        by_text.setdefault(form.text, form)
    return tuple(by_text.values())


def _forms(secret: str) -> Iterator[SecretForm]:
    yield SecretForm("plain", secret)
    if " " in secret:
        yield SecretForm("url", secret.replace(" ", "+"))
    raw = secret.encode("utf-8")
    if not secret.isascii():
        yield SecretForm("plain", raw.decode("latin-1"))  # what undoing makes of its percent escapes
    yield from _collapse(secret)
    if len(raw) >= LONG_ENOUGH:
        yield from (SecretForm("hex", raw.hex()), SecretForm("hex", raw.hex().upper()))
        for inside in _base64_inside(raw):
            yield SecretForm("base64", inside, cut=True)
            yield SecretForm("base64url", inside.translate(_URL_SAFE), cut=True)


def _collapse(secret: str) -> Iterator[SecretForm]:
    """Yield what remains of a secret that looks escaped when the escapes around it are undone.

    What is short is left out, but for the rest of a secret with NUL or line breaks in it: undoing drops them from the
    text that is searched, together with any escape, so the secret with them is never seen there.
    """
    for _ in range(MOST_LAYERS):
        left = undone(secret)
        if left is None or not left.text or (len(left.text) < LONG_ENOUGH and not _DROPPED.search(secret)):
            return
        secret = left.text
        yield SecretForm("plain", secret)


def _base64_inside(secret: bytes) -> Iterator[str]:
    """Yield the base64 of C{secret} inside a longer text, one for each alignment."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).rstrip(b"=").decode("ascii")
        # The first characters mix with what stands before the secret, the last with what follows it.
        yield whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]


def _escape(form: SecretForm) -> Iterator[tuple[str, str]]:
    """C{form} as usual encoders escape it; of a plain one the kind is the escapes'."""
    if _NEVER_ESCAPED.fullmatch(form.text):
        return
    for kind, text in _usual_escapes(form.text):
        yield (kind if form.kind == "plain" else form.kind), text


def _usual_escapes(text: str) -> Iterator[tuple[str, str]]:
    """C{text} with what must be escaped; digits in either case, where both are usual."""
    quoted, written = quote(text, safe=""), json.dumps(text)[1:-1]
    urls = (*(quote(text, safe=left) for left in _LEFT_BY_URLS), quote(quoted, safe=""))
    jsons = (written, written.replace("/", "\\/"), *map(written.translate, _NUMBERED), json.dumps(written)[1:-1])
    for kind, escaped in (*(("url", each) for each in urls), *(("json", each) for each in jsons)):
        yield kind, escaped
        if "%" in escaped or "\\u" in escaped:
            yield kind, _DIGITS.sub(lambda digits: digits[0].lower(), escaped)
    for escaped in (html.escape(text, quote=False), html.escape(text)):
        yield "html", escaped
        yield "html", escaped.replace("&#x27;", "&#39;")


def _each_escaped(secret: str) -> Iterator[SecretForm]:
    """C{secret} with every character escaped, and in UTF-16, whichever byte of each character goes first."""
    raw = secret.encode("utf-8")
    for pairs in dict.fromkeys((raw.hex("|"), raw.hex("|").upper())):
        for kind, before, behind in _BEFORE_DIGITS:
            yield SecretForm(kind, before + pairs.replace("|", behind + before) + behind)
    yield SecretForm("html", "".join([f"&#{byte};" for byte in raw]))
    yield SecretForm("split", "\0".join(secret))
