"""Credentials that never change: API keys, user names with passwords, and private SSH keys."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from aileron.model.connectors import Request
from aileron.model.vault import Authorization

from ._kind import CredentialKind, CredentialUse, SettingRule, only

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

MAX_KEPT_BYTES = 8192
"""The maximum size of a credential that a person enters."""

LEAST_RSA_BITS = 2048
"""The minimum size of an RSA key for SSH, for client and server."""

_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_ARMOR = re.compile(r"-----[A-Z ]+-----|\s")
_FILE = re.compile(rb"\s*-----BEGIN ([A-Z ]+)-----\s[A-Za-z0-9+/=\s]+-----END \1-----\s*")
_ENTERED = "must be a private key in OpenSSH's format or PEM, entered from its file with --secret-fd"
_HEADER = re.compile(r"\s*(?:[A-Za-z][A-Za-z-]{0,60}:\s{0,9})?(Bearer|Basic|Token|ApiKey|Bot)\s", re.IGNORECASE).match
_QUOTES = frozenset("\"'`")
_PARAMETER = re.compile(r"[A-Za-z0-9_.~-]{1,128}").fullmatch
_SEGMENT = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.~-]{1,128}").fullmatch


def _check_size(kept: bytes) -> None:
    if not 1 <= len(kept) <= MAX_KEPT_BYTES:
        raise ValueError(f"must have 1 to {MAX_KEPT_BYTES} bytes")


def header_problem(text: str) -> str | None:
    """Return the fault of a text that is a complete header value instead of a key, or None if it is not one.

    :return: the end of a sentence that begins with the secret's name.
    """
    found = _HEADER(text)
    return None if found is None else f"must be the key alone: paste only the key, without '{found[1]}'"


def _is_prefix(text: str) -> bool:
    before, key, after = text.partition("{key}")
    return bool(key) and text.startswith("/") and all(map(_SEGMENT, (before + "-" + after)[1:].split("/")))


class ApiKey(CredentialKind):
    """A key that is sent unchanged in a header, in a query parameter or at the beginning of the path."""

    name: ClassVar[str] = "api_key"
    header: ClassVar[str] = ""
    format: ClassVar[str] = "{key}"
    settings: ClassVar[Mapping[str, SettingRule]] = {
        "query": SettingRule(
            only(_PARAMETER, "must be the name of a query parameter, of letters, digits, '_', '.', '~' and '-'")
        ),
        "path": SettingRule(
            only(_is_prefix, "must be the beginning of a path with {key} in it once, such as /bot{key}")
        ),
    }

    def check(self, kept: bytes) -> None:
        """Raise C{ValueError} if C{kept} is not a header value, or was copied with text around the key."""
        _check_size(kept)
        text = kept.decode("utf-8", "replace")
        if problem := header_problem(text):
            raise ValueError(problem)
        if text[0] == text[-1] and text[0] in _QUOTES:
            raise ValueError("must be the key alone: paste only the key, without quotes")
        if not all(0x21 <= byte <= 0x7E for byte in kept):
            raise ValueError("must be visible ASCII without spaces")

    def make_sample(self, secret: str) -> bytes:
        """Return C{secret} as a key, for C{aileron connector prove}."""
        return secret.encode()

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return the key as it is stored, since it is sent unchanged."""
        return use.kept


class Basic(CredentialKind):
    """A user name and password for HTTP Basic authentication (RFC 7617).  The name is not secret."""

    name: ClassVar[str] = "basic"
    format: ClassVar[str] = "Basic {key}"

    def check(self, kept: bytes) -> None:
        """Raise C{ValueError} if C{kept} is not a name and a password separated by a colon."""
        _check_size(kept)
        user, colon, password = kept.decode("utf-8").partition(":")
        if not (user and colon and password):
            raise ValueError("must be USER:PASSWORD")
        if not (user + password).isprintable():
            raise ValueError("must not hold a control character")

    def make_sample(self, secret: str) -> bytes:
        """Return a user name with C{secret} as the password, for C{aileron connector prove}."""
        return f"prove:{secret}".encode()

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return C{user:password} in base64, as HTTP Basic authentication sends it."""
        return base64.b64encode(use.kept)

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the texts to remove from logs and results: C{user:password} in base64, and the password."""
        pair = kept.decode("utf-8")
        return pair, pair.partition(":")[2]


def load_private_key(kept: bytes, *, is_kept: bool) -> Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey:
    """Return a private key for login over SSH.

    :param is_kept: whether the key was loaded before. The slow check of an RSA key's numbers is then skipped.
    :raises ValueError: if the key is invalid, has a passphrase, or has a type or size that is not supported.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    load = load_ssh_private_key if b"BEGIN OPENSSH" in kept else load_pem_private_key
    try:
        key = load(kept, None, unsafe_skip_rsa_key_validation=is_kept)
    except TypeError:
        raise ValueError("must have no passphrase of its own; to remove it, run: ssh-keygen -p -f FILE") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(_ENTERED) from None
    if isinstance(key, Ed25519PrivateKey):
        return key
    if isinstance(key, RSAPrivateKey) and key.key_size >= LEAST_RSA_BITS:
        return key
    if isinstance(key, EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return key
    raise ValueError(
        f"must be Ed25519, ECDSA, or RSA of {LEAST_RSA_BITS} bits or more; to make a key, run: ssh-keygen -t ed25519"
    )


class SshKey(CredentialKind):
    """A private key for SSH without a passphrase: the vault encrypts the key."""

    name: ClassVar[str] = "ssh_key"
    header: ClassVar[str] = ""
    format: ClassVar[str] = "{key}"
    placed: ClassVar[bool] = False

    def check(self, kept: bytes) -> None:
        """Raise C{ValueError} if C{kept} is not a key for login over SSH."""
        if len(kept) > MAX_KEPT_BYTES or not kept.isascii():
            raise ValueError(_ENTERED)
        load_private_key(kept, is_kept=False)
        if not _FILE.fullmatch(kept):  # text around the key would be stored and searched for in responses
            raise ValueError(_ENTERED)

    def make_sample(self, secret: str) -> None:
        """Return None: C{aileron connector prove} does not cover git over SSH."""

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the texts to remove from logs and results: the private key, and its base64 without line breaks."""
        text = kept.decode("ascii")
        return text, _ARMOR.sub("", text)

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Return the key for the connection of C{request}."""
        return Authorization(private_key=use.kept.decode("ascii"), secrets=self.secrets(use.kept))
