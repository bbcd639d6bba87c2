"""Authenticates the contents of a vault by a MAC, and encrypts its entries and the data key."""

from __future__ import annotations

import hmac
from hashlib import sha256

from attrs import evolve

from aileron.base.json import JSON, canonical
from aileron.model.errors import InvalidRequest
from aileron.model.vault import Binding

from ._cipher import DataKey, KdfParameters, Sealed, seal, unseal
from ._format import VaultDocument, VaultEntry, body_json, part_json

SIGNING = "record signing"
"""The name of the part that holds the record's private key."""

_PARTS, _ENTRIES = "aileron sealed parts v1", "aileron vault entries v1"


def wrapping_context(vault: str, kdf: KdfParameters) -> JSON:
    """Return the data to which the encrypted data key is bound: the vault's id and the key derivation parameters."""
    return {"tag": "aileron.vault.data-key.v1", "vault": vault, "kdf": part_json(kdf)}


def authenticated(document: VaultDocument, key: DataKey) -> VaultDocument:
    """Return the vault with its MAC: HMAC-SHA256 over the RFC 8785 form of everything else.

    :raises InvalidRequest: if the vault holds a text or a number without such a form.
    """
    try:
        return evolve(document, mac=_mac(document, key))
    except ValueError as error:
        raise InvalidRequest("The vault cannot keep this: a text or a number in it has no canonical form.") from error


def is_sound(document: VaultDocument, key: DataKey) -> bool:
    """Return True if the MAC of the vault is valid under C{key}."""
    return hmac.compare_digest(_mac(document, key), document.mac)


def _mac(document: VaultDocument, key: DataKey) -> bytes:
    return hmac.digest(key.subkey("aileron vault file v1"), canonical(body_json(document)), sha256)


def seal_entry(document: VaultDocument, key: DataKey, binding: Binding, secret: bytes) -> VaultEntry:
    """Return an entry with the secret encrypted for this binding, its scope and this vault."""
    return VaultEntry(binding, seal(key.subkey(_ENTRIES), secret, _entry_context(document.vault, binding)))


def with_secret(document: VaultDocument, key: DataKey, binding: Binding, secret: bytes) -> VaultDocument:
    """Return the vault with C{secret} stored for a binding, replacing an entry with the binding's name."""
    return document.without(binding.name).with_entry(seal_entry(document, key, binding, secret))


def unseal_entry(document: VaultDocument, key: DataKey, entry: VaultEntry) -> bytes:
    """Return the secret of an entry.

    :raises VaultDamaged: if the entry or its context was altered.
    """
    return unseal(key.subkey(_ENTRIES), entry.sealed, _entry_context(document.vault, entry.binding))


def seal_part(document: VaultDocument, key: DataKey, name: str, secret: bytes) -> Sealed:
    """Encrypt a secret of the vault itself, bound to this vault and to the name C{name} of a part of it."""
    return seal(key.subkey(_PARTS), secret, _part_context(document.vault, name))


def unseal_part(document: VaultDocument, key: DataKey, name: str, sealed: Sealed) -> bytes:
    """Return the secret that L{seal_part} encrypted.

    :raises VaultDamaged: if the secret was altered, or belongs to another part.
    """
    return unseal(key.subkey(_PARTS), sealed, _part_context(document.vault, name))


def _part_context(vault: str, name: str) -> JSON:
    return {"tag": "aileron.vault.part.v1", "vault": vault, "part": name}


def _entry_context(vault: str, binding: Binding) -> JSON:
    return {"tag": "aileron.vault.entry.v1", "vault": vault, "entry": part_json(binding)}
