"""Security keys as key sources: the private key is derived from what a FIDO2 authenticator computes (ADR 90)."""

from __future__ import annotations

from attrs import frozen
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aileron.base.json import canonical
from aileron.model.errors import VaultDamaged
from aileron.model.vault import KeySource, SecurityKey

from ._cipher import KEY_BYTES
from ._format import part_json
from ._key_sources import public_key_of

_TAG = "aileron.vault.security-key.v1"


def derive_private_key(vault: str, security_key: SecurityKey, secret: bytes) -> bytes:
    """Return the X25519 private key of a security key for one vault (HKDF-SHA256, RFC 5869), 32 bytes.

    :param vault: the id of the vault. The same credential has another private key for another vault.
    :param secret: the output of the security key, 32 bytes.
    :raises ValueError: if the output has another length.
    """
    if len(secret) != KEY_BYTES:
        raise ValueError(f"the output of a security key has {KEY_BYTES} bytes")
    info = canonical({"tag": _TAG, "vault": vault, "security_key": part_json(security_key)})
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


@frozen
class EnrolledSecurityKey:
    """A security key by which the vault can be unlocked, as the vault's file names it.

    :ivar vault: the id of the vault.
    """

    vault: str
    source: KeySource
    security_key: SecurityKey

    def private_key(self, secret: bytes) -> bytes:
        """Return the private key of the source.

        :param secret: the output of the security key, 32 bytes.
        :raises VaultDamaged: if the output does not belong to the source: its entry in the vault's file was altered.
        :raises ValueError: if the output has another length.
        """
        private_key = derive_private_key(self.vault, self.security_key, secret)
        if public_key_of(private_key) != self.source.public_key:
            raise VaultDamaged("The security key does not open its entry in the vault's file: the entry was altered.")
        return private_key
