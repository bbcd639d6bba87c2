"""Verifies minisign signatures: Ed25519 over a file or its BLAKE2b hash, and over a trusted comment."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from hashlib import blake2b

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aileron.model.errors import InvalidRequest

_ID_END, _KEY_BYTES, _SIGNATURE_BYTES, _OVERALL_BYTES = 10, 42, 74, 64
_TRUSTED = "trusted comment: "
_MOST_CHARACTERS = 4096


def read_key(text: str) -> str:
    """Return a minisign public key as one line of Base64, from that line or from the text of a key file.

    :raises InvalidRequest: if the text is not a public key.
    """
    line = text[:_MOST_CHARACTERS].strip().rpartition("\n")[2]
    if _decode(line, _KEY_BYTES)[:2] != b"Ed":
        raise InvalidRequest("This is not a minisign public key. They begin with RW.")
    return line


def verify(data: bytes, signature: str, keys: Iterable[str]) -> str:
    """Verify a signature of C{data} and return the key that signed.

    :param signature: the text of a C{.minisig} file.
    :param keys: the acceptable public keys.
    :raises InvalidRequest: if the signature is malformed or wrong, or was made by another key.
    """
    lines = signature[:_MOST_CHARACTERS].splitlines()
    if len(lines) != 4 or not lines[0].startswith("untrusted comment: ") or not lines[2].startswith(_TRUSTED):
        raise InvalidRequest("The signature is not in minisign's format.")
    head, overall = _decode(lines[1], _SIGNATURE_BYTES), _decode(lines[3], _OVERALL_BYTES)
    key_id, made = head[2:_ID_END], head[_ID_END:]
    found = {key: each for key in keys if (each := _decode(key, _KEY_BYTES))[2:_ID_END] == key_id}
    signed = {b"Ed": data, b"ED": blake2b(data).digest()}.get(head[:2])
    if signed is None or not found:
        raise InvalidRequest(
            f"The package is signed by an unknown key with the ID {key_id[::-1].hex().upper()}. Nothing was "
            "installed. Get that key from its publisher, and pass it with --publisher-key."
        )
    for key, raw in found.items():
        public = Ed25519PublicKey.from_public_bytes(raw[_ID_END:])
        try:
            public.verify(made, signed)
            public.verify(overall, made + lines[2].removeprefix(_TRUSTED).encode())
        except InvalidSignature:
            continue
        return key
    raise InvalidRequest("The signature is wrong: the package is not what its publisher signed. Nothing was installed.")


def _decode(line: str, size: int) -> bytes:
    try:
        data = base64.b64decode(line, validate=True)
    except ValueError:
        data = b""
    if len(data) != size:
        raise InvalidRequest("A key or signature is not in minisign's format.")
    return data
