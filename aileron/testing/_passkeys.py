"""Passkeys in memory, and a software authenticator."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.base.signatures import write_public_key
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.interfaces.authority import IPasskeyBook

from ._vault import MemoryVault

_PRESENT, _VERIFIED, _SYNCED, _ATTESTED = 0x01, 0x04, 0x18, 0x40
_COUNT_BYTES, _LENGTH_BYTES, _NUMBER_BYTES = 4, 2, 32
# The CBOR (RFC 8949) of a P-256 key in COSE (RFC 9053), without its two numbers: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
_COSE_X, _COSE_Y = bytes.fromhex("a5010203262001215820"), bytes.fromhex("225820")
# The CBOR of {"fmt": "none", "attStmt": {}, "authData": …}, followed by the length as two bytes
_ATTESTATION = bytes.fromhex("a363666d74646e6f6e656761747453746d74a068617574684461746159")


@implementer(IPasskeyBook)
class MemoryPasskeyBook:
    """An L{IPasskeyBook} in memory.

    :param vault: the vault whose state applies, by default an unlocked one.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self._keys: tuple[Passkey, ...] = ()
        self._rule = PasskeyRule()

    def passkeys(self) -> tuple[Passkey, ...]:
        return self._keys

    def passkey_rule(self) -> PasskeyRule:
        return self._rule

    def keep_passkeys(self, keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        self._vault.check()
        self._keys, self._rule = tuple(keys), rule


@define
class SoftwareAuthenticator:
    """An authenticator and browser for tests.

    :ivar origin: the origin of the page.
    :ivar site: the site that the browser believes the page to belong to.
    :ivar verifies: whether the authenticator verifies the user.
    :ivar count: the number of uses.
    :ivar synced: whether its key may be, and is, copied to other devices.
    :ivar more: further members of the client data, such as C{crossOrigin} of an embedded page.
    """

    origin: str
    site: str = "localhost"
    verifies: bool = True
    count: int = 0
    key: ec.EllipticCurvePrivateKey = field(factory=lambda: ec.generate_private_key(ec.SECP256R1()), repr=False)
    id: bytes = b"credential-1"
    synced: bool = False
    more: Mapping[str, JSON] = field(factory=dict)

    def create(self, options: Mapping[str, Any]) -> dict[str, JSON]:
        """Return the result of C{navigator.credentials.create} for these options."""
        length = len(self.id).to_bytes(_LENGTH_BYTES, "big")
        data = self._data(_ATTESTED) + bytes(16) + length + self.id + self._cose()
        given = {"clientDataJSON": self._client("webauthn.create", options)}
        size = len(data).to_bytes(_LENGTH_BYTES, "big")
        return self._credential({**given, "attestationObject": _ATTESTATION + size + data})

    def get(self, options: Mapping[str, Any]) -> dict[str, JSON]:
        """Return the result of C{navigator.credentials.get} for these options."""
        self.count += 1
        client, data = self._client("webauthn.get", options), self._data()
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._credential({"clientDataJSON": client, "authenticatorData": data, "signature": signature})

    def _client(self, kind: str, options: Mapping[str, Any]) -> bytes:
        told = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps({**told, **self.more}).encode()

    def _data(self, more: int = 0) -> bytes:
        flags = _PRESENT | more | (_VERIFIED if self.verifies else 0) | (_SYNCED if self.synced else 0)
        return hashlib.sha256(self.site.encode()).digest() + bytes([flags]) + self.count.to_bytes(_COUNT_BYTES, "big")

    def _cose(self) -> bytes:
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(_NUMBER_BYTES, "big") for number in (numbers.x, numbers.y))
        return _COSE_X + x + _COSE_Y + y

    def _credential(self, response: Mapping[str, bytes]) -> dict[str, JSON]:
        id_, texts = _text(self.id), {name: _text(value) for name, value in response.items()}
        return {"id": id_, "rawId": id_, "type": "public-key", "response": texts, "clientExtensionResults": {}}


def public_key_of(person: SoftwareAuthenticator) -> str:
    """Return the public key of an authenticator, as signed decisions name it."""
    return write_public_key(person.key.public_key())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
