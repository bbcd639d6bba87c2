"""The seals of a vault: the whole file, each entry, and the data key itself, each under its key."""

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
"""The part that is the record's private key."""

_PARTS, _ENTRIES = "aileron sealed parts v1", "aileron vault entries v1"


def wrapping_context(vault: str, kdf: KdfParameters) -> JSON:
    """Write what the wrapped data key is bound to."""
    return {"tag": "aileron.vault.data-key.v1", "vault": vault, "kdf": part_json(kdf)}


def authenticated(document: VaultDocument, key: DataKey) -> VaultDocument:
    """Put the vault under the MAC of its key: HMAC-SHA256 over the RFC 8785 form of everything else.

    :raises InvalidRequest: it holds a text or a number that has no such form.
    """
    try:
        return evolve(document, mac=_mac(document, key))
    except ValueError as error:
        raise InvalidRequest("The vault cannot keep this: a text or a number in it has no canonical form.") from error


def is_sound(document: VaultDocument, key: DataKey) -> bool:
    """Tell whether all of the vault was written by who held C{key}."""
    return hmac.compare_digest(_mac(document, key), document.mac)


def _mac(document: VaultDocument, key: DataKey) -> bytes:
    return hmac.digest(key.subkey("aileron vault file v1"), canonical(body_json(document)), sha256)


def seal_entry(document: VaultDocument, key: DataKey, binding: Binding, secret: bytes) -> VaultEntry:
    """Keep a secret so that it opens only as this binding, with its scope, of this vault."""
    return VaultEntry(binding, seal(key.subkey(_ENTRIES), secret, _entry_context(document.vault, binding)))


def with_secret(document: VaultDocument, key: DataKey, binding: Binding, secret: bytes) -> VaultDocument:
    """Return the vault with that secret for a binding, in the place of what is kept under its name."""
    return document.without(binding.name).with_entry(seal_entry(document, key, binding, secret))


def unseal_entry(document: VaultDocument, key: DataKey, entry: VaultEntry) -> bytes:
    """Open the secret of an entry.

    :raises VaultDamaged: the entry or anything it is bound to was altered.
    """
    return unseal(key.subkey(_ENTRIES), entry.sealed, _entry_context(document.vault, entry.binding))


def seal_part(document: VaultDocument, key: DataKey, name: str, secret: bytes) -> Sealed:
    """Keep a secret of the vault's own so that it opens only as this part of this vault."""
    return seal(key.subkey(_PARTS), secret, _part_context(document.vault, name))


def unseal_part(document: VaultDocument, key: DataKey, name: str, sealed: Sealed) -> bytes:
    """Open the secret that L{seal_part} kept.

    :raises VaultDamaged: it was altered, or is another part.
    """
    return unseal(key.subkey(_PARTS), sealed, _part_context(document.vault, name))


def _part_context(vault: str, name: str) -> JSON:
    return {"tag": "aileron.vault.part.v1", "vault": vault, "part": name}


def _entry_context(vault: str, binding: Binding) -> JSON:
    return {"tag": "aileron.vault.entry.v1", "vault": vault, "entry": part_json(binding)}
