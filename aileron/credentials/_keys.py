"""Credentials that a service gave out once and that never change: API keys, and a name with its password."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import ClassVar

from ._kind import CredentialKind, CredentialUse, SettingRule

MAX_KEPT_BYTES = 8192
"""Most that is kept of one credential that a person enters."""

_PARAMETER = re.compile(r"[A-Za-z0-9_.~-]{1,128}")
_SEGMENT = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.~-]{1,128}").fullmatch


def _check_size(kept: bytes) -> None:
    if not 1 <= len(kept) <= MAX_KEPT_BYTES:
        raise ValueError(f"must have 1 to {MAX_KEPT_BYTES} bytes")


def _read_parameter(text: str) -> str:
    if not _PARAMETER.fullmatch(text):
        raise ValueError("must be the name of a query parameter, of letters, digits, '_', '.', '~' and '-'")
    return text


def _read_prefix(text: str) -> str:
    before, key, after = text.partition("{key}")
    if not (key and text.startswith("/") and all(map(_SEGMENT, (before + "-" + after)[1:].split("/")))):
        raise ValueError("must be the beginning of a path with {key} in it once, such as /bot{key}")
    return text


class ApiKey(CredentialKind):
    """A key that is sent as it is, in a header, in a parameter of the query or at the beginning of the path."""

    name: ClassVar[str] = "api_key"
    header: ClassVar[str] = ""
    format: ClassVar[str] = "{key}"
    settings: ClassVar[Mapping[str, SettingRule]] = {
        "query": SettingRule(_read_parameter),
        "path": SettingRule(_read_prefix),
    }

    def check(self, kept: bytes) -> None:
        """Refuse what could not be one header's value."""
        _check_size(kept)
        if not all(0x21 <= byte <= 0x7E for byte in kept):
            raise ValueError("must be visible ASCII without spaces")

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return the key as it is kept."""
        return use.kept


class Basic(CredentialKind):
    """A user name and its password, for HTTP's Basic scheme (RFC 7617); the name is no secret."""

    name: ClassVar[str] = "basic"
    format: ClassVar[str] = "Basic {key}"

    def check(self, kept: bytes) -> None:
        """Refuse what is no name and password with a colon between."""
        _check_size(kept)
        user, colon, password = kept.decode("utf-8").partition(":")
        if not (user and colon and password):
            raise ValueError("must be USER:PASSWORD")
        if not (user + password).isprintable():
            raise ValueError("must not hold a control character")

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return the pair in base64."""
        return base64.b64encode(use.kept)

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the pair itself, and the password."""
        pair = kept.decode("utf-8")
        return pair, pair.partition(":")[2]
