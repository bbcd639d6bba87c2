"""The encodings in which a service may send back a secret that it received, each with the text to search for."""

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
"""The minimum length, in bytes, for the hexadecimal and base64 forms.

Those of a shorter secret would match by chance.
"""

BASE64_CHARACTERS = frozenset(string.ascii_letters + string.digits + "+/-_")

_BASIC = "basic "
_URL_SAFE = str.maketrans("+/", "-_")
_NEVER_ESCAPED = re.compile(r"[A-Za-z0-9_.~-]*")
_DROPPED = re.compile(r"[\0\n]")
_DIGITS = re.compile(r"(?<=%)[0-9A-Fa-f]{2}|(?<=\\u)[0-9A-Fa-f]{4}")
_LEFT_BY_URLS = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""The characters that URL encoders leave unescaped, beyond those that all of them leave."""

_NUMBERED = tuple({ord(char): f"\\u{ord(char):04X}" for char in chars} for chars in ("&<>", "/&<>'"))
"""The characters that JSON encoders for HTML pages write as numeric escapes."""

_BEFORE_DIGITS = (("url", "%", ""), ("json", "\\u00", ""), ("json", "\\x", ""), ("html", "&#x", ";"))
"""The text before and after the two hexadecimal digits of a character, in encodings that escape every character."""


@frozen
class SecretForm:
    """One encoding of a secret.

    :ivar kind: the name of the encoding, for the audit log.
    :ivar cut: whether the neighbouring characters may hold some bits of the secret too.
    """

    kind: str
    text: str = field(repr=False)
    cut: bool = False


def secrets_in(key: str, value: str) -> tuple[str, ...]:
    """Return every secret in a header: the credential, and for Basic authentication the decoded pair and the password.

    :param key: the credential.
    :param value: the value of the header, which contains the credential.
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
    """Return the forms of a secret to search for in text whose escapes are decoded, without duplicates.

    The forms are the secret as it is, with a plus for each blank, with its own escapes decoded, and in hexadecimal and
    base64.
    """
    return _each_once(_forms(secret))


def written_forms(secret: str) -> tuple[SecretForm, ...]:
    """Return the forms of a secret to search for in text with its escapes: L{forms} and their common escapes.

    Common encoders escape the characters that need it, once or twice, or every character.  A mixture of escapes is not
    included: it is found only in text whose escapes are decoded.
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
        yield SecretForm("plain", raw.decode("latin-1"))  # the result of decoding its percent escapes
    yield from _collapse(secret)
    if len(raw) >= LONG_ENOUGH:
        yield from (SecretForm("hex", raw.hex()), SecretForm("hex", raw.hex().upper()))
        for inside in _base64_inside(raw):
            yield SecretForm("base64", inside, cut=True)
            yield SecretForm("base64url", inside.translate(_URL_SAFE), cut=True)


def _collapse(secret: str) -> Iterator[SecretForm]:
    """Yield C{secret} with the escapes that it happens to contain decoded once, twice and so on.

    Short results are skipped, except for those of a secret with NULs or line breaks: decoding drops these characters
    from the searched text, so the complete secret never appears there.
    """
    for _ in range(MOST_LAYERS):
        left = undone(secret)
        if left is None or not left.text or (len(left.text) < LONG_ENOUGH and not _DROPPED.search(secret)):
            return
        secret = left.text
        yield SecretForm("plain", secret)


def _base64_inside(secret: bytes) -> Iterator[str]:
    """Yield the base64 encoding of C{secret} inside a longer text, for each of the three alignments."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).rstrip(b"=").decode("ascii")
        # The first characters mix with the bits before the secret, the last with the bits after the secret.
        yield whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]


def _escape(form: SecretForm) -> Iterator[tuple[str, str]]:
    """Yield each common escaped text of C{form} with its kind.  For a plain form, the kind is that of the escapes."""
    if _NEVER_ESCAPED.fullmatch(form.text):
        return
    for kind, text in _usual_escapes(form.text):
        yield (kind if form.kind == "plain" else form.kind), text


def _usual_escapes(text: str) -> Iterator[tuple[str, str]]:
    """Yield each kind of escape with C{text} escaped, with hexadecimal digits in both cases if both are common."""
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
    """Yield C{secret} with every character escaped, and with NULs between its characters, as in UTF-16."""
    raw = secret.encode("utf-8")
    for pairs in dict.fromkeys((raw.hex("|"), raw.hex("|").upper())):
        for kind, before, behind in _BEFORE_DIGITS:
            yield SecretForm(kind, before + pairs.replace("|", behind + before) + behind)
    yield SecretForm("html", "".join([f"&#{byte};" for byte in raw]))
    yield SecretForm("split", "\0".join(secret))
