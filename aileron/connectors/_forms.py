"""The forms in which a secret that was sent may come back, but for escapes."""

from __future__ import annotations

import base64
import binascii
import string
from collections.abc import Iterator

from attrs import field, frozen

from aileron.values import LONG_ENOUGH, base64_inside

from ._escapes import MOST_LAYERS, undone

BASE64_CHARACTERS = frozenset(string.ascii_letters + string.digits + "+/-_")

_BASIC = "basic "


@frozen
class Form:
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


def forms(secret: str) -> Iterator[Form]:
    """C{secret} as it is, with a plus for each blank, as undoing escapes leaves it, and in hexadecimal and base64."""
    yield Form("plain", secret)
    if " " in secret:
        yield Form("url", secret.replace(" ", "+"))
    raw = secret.encode("utf-8")
    if not secret.isascii():
        yield Form("plain", raw.decode("latin-1"))  # what undoing makes of its percent escapes
    yield from _collapsed(secret)
    if len(raw) >= LONG_ENOUGH:
        yield from (Form("hex", raw.hex()), Form("hex", raw.hex().upper()))
        for inside in (each.decode("ascii") for each in base64_inside(raw)):
            yield Form("base64", inside, cut=True)
            yield Form("base64url", inside.translate(str.maketrans("+/", "-_")), cut=True)


def _collapsed(secret: str) -> Iterator[Form]:
    """What is left of a secret that itself looks escaped, where other escapes around it were undone."""
    for _ in range(MOST_LAYERS):
        left = undone(secret)
        if left is None or len(left.text) < LONG_ENOUGH:
            return
        secret = left.text
        yield Form("plain", secret)
