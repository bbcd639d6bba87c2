"""Security keys as key sources: the private key is derived from what a FIDO2 authenticator computes (ADR 90)."""

from __future__ import annotations

from attrs import frozen

from aileron.model.vault import KeySource, SecurityKey

from ._derived_sources import check_private_key, derive
from ._format import part_json

_TAG = "aileron.vault.security-key.v1"


def derive_private_key(vault: str, security_key: SecurityKey, secret: bytes) -> bytes:
    """Return the X25519 private key of a security key for one vault as L{derive} does, 32 bytes.

    :param vault: the id of the vault. The same credential has another private key for another vault.
    :param secret: the output of the security key, 32 bytes.
    :raises ValueError: if the output has another length.
    """
    return derive({"tag": _TAG, "vault": vault, "security_key": part_json(security_key)}, secret)


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
        return check_private_key(self.source, derive_private_key(self.vault, self.security_key, secret))
