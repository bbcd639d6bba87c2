"""A vault's document under a passphrase: made, opened, put under another.  Nothing here touches the disk."""

from __future__ import annotations

from attrs import evolve

from ._cipher import DataKey, Randomness, Sealed, new_data_key, unseal
from ._document import Document, RecordKeys
from ._errors import VaultDamaged, WrongPassphrase, damaged
from ._kdf import SALT_BYTES, KdfParameters, stretch
from ._sealing import (
    SIGNING,
    authenticated,
    is_sound,
    seal_entry,
    seal_part,
    unseal_entry,
    unseal_part,
    wrapping_context,
)

_VAULT_ID_BYTES = 16


def new_document(passphrase: str, randomness: Randomness) -> tuple[Document, DataKey]:
    """An empty vault of a new id, and its key."""
    vault = randomness(_VAULT_ID_BYTES).hex()
    key, kdf, wrapped = _new_key(vault, passphrase, randomness)
    return authenticated(Document(vault, kdf, wrapped), key), key


def opened(document: Document, passphrase: str) -> DataKey:
    """The key of a vault.

    :raises WrongPassphrase: the passphrase does not open it.
    :raises VaultDamaged: the key does not stand behind the rest of the file.
    """
    wrapping_key = stretch(passphrase, document.kdf)
    try:
        secret = unseal(wrapping_key, document.data_key, wrapping_context(document.vault, document.kdf))
    except VaultDamaged:
        raise WrongPassphrase("This passphrase does not open the vault.") from None
    try:
        key = DataKey(secret)
    except ValueError:
        raise damaged("The vault's key has the wrong length.") from None
    if not is_sound(document, key):
        raise damaged("The vault file was altered: its key does not stand behind all that it says.")
    return key


def rekeyed(document: Document, key: DataKey, passphrase: str, randomness: Randomness) -> tuple[Document, DataKey]:
    """The same vault under a new data key and another passphrase: every entry sealed anew, all else kept.

    :raises VaultDamaged: an entry does not open.
    """
    new_key, kdf, wrapped = _new_key(document.vault, passphrase, randomness)
    entries = tuple(
        seal_entry(document, new_key, entry.binding, unseal_entry(document, key, entry)) for entry in document.entries
    )
    record = None if document.record is None else _record_under(document, document.record, key, new_key)
    revision = document.revision + 1
    changed = evolve(document, kdf=kdf, data_key=wrapped, entries=entries, record=record, revision=revision)
    return authenticated(changed, new_key), new_key


def _record_under(document: Document, record: RecordKeys, old: DataKey, new: DataKey) -> RecordKeys:
    """The record's keys stay: what they signed must verify, and what goes on must go on."""

    def moved(name: str, sealed: Sealed) -> Sealed:
        return seal_part(document, new, name, unseal_part(document, old, name, sealed))

    stretches = tuple((name, moved(name, sealed)) for name, sealed in record.stretches)
    return evolve(record, signing=moved(SIGNING, record.signing), stretches=stretches)


def _new_key(vault: str, passphrase: str, randomness: Randomness) -> tuple[DataKey, KdfParameters, Sealed]:
    kdf, key = KdfParameters(randomness(SALT_BYTES)), new_data_key(randomness)
    return key, kdf, key.wrapped(stretch(passphrase, kdf), wrapping_context(vault, kdf), randomness)
