"""Key sources whose private key is derived from a secret that a service, or another package, keeps (ADR 111)."""

from __future__ import annotations

from attrs import frozen
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aileron.base.json import JSON, canonical
from aileron.model.errors import VaultDamaged
from aileron.model.vault import KeySource, KeySourceKind

from ._cipher import KEY_BYTES
from ._key_sources import public_key_of

_TAG = "aileron.vault.derived-source.v1"


def derive(info: JSON, secret: bytes) -> bytes:
    """Return the X25519 private key of a source of one vault (HKDF-SHA256, RFC 5869), 32 bytes.

    :param info: what the key is for: the vault and the source. The same secret has another private key for another one.
    :param secret: the secret of the source, 32 bytes.
    :raises ValueError: if the secret has another length.
    """
    if len(secret) != KEY_BYTES:
        raise ValueError(f"the secret of a key source has {KEY_BYTES} bytes")
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=canonical(info)).derive(secret)


def derive_from_secret(vault: str, kind: KeySourceKind, secret: bytes) -> bytes:
    """Return the private key of a source that keeps a secret. See L{derive}.

    :param vault: the ID of the vault.
    """
    return derive({"tag": _TAG, "vault": vault, "kind": kind.value}, secret)


def check_private_key(source: KeySource, private_key: bytes) -> bytes:
    """Return the private key if it is the one of C{source}.

    :raises VaultDamaged: if it is not: the secret or the entry in the vault's file was changed.
    """
    if public_key_of(private_key) != source.public_key:
        raise VaultDamaged("A key source does not open its entry in the vault's file: one of them was changed.")
    return private_key


@frozen
class DerivedSource:
    """A source by which the vault can be unlocked, as the vault's file names it.

    :ivar vault: the ID of the vault.
    """

    vault: str
    source: KeySource

    def private_key(self, secret: bytes) -> bytes:
        """Return the private key of the source.

        :param secret: the secret that the source keeps, 32 bytes.
        :raises VaultDamaged: if the secret does not belong to the source.
        :raises ValueError: if the secret has another length.
        """
        return check_private_key(self.source, derive_from_secret(self.vault, self.source.kind, secret))
