"""Operations on the vault without a daemon: create, open, change the passphrase, prove possession to a daemon.

Imported only by short-lived commands in the operator's terminal. The daemon never gets a passphrase.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from attrs import evolve

from aileron.model.errors import Conflict, NoVault, StoreUnavailable, VaultDamaged, WrongPassphrase, damaged
from aileron.model.vault import Binding

from ._cipher import SALT_BYTES, DataKey, KdfParameters, Randomness, Sealed, new_data_key, read_key, stretch, unseal
from ._format import VERSION, RecordKeys, Stretch, VaultDocument
from ._passphrase import check_passphrase, generate_words
from ._proofs import NONCE_BYTES, LoginExchange, base64url, client_proof, daemon_proof, operator_key, same
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
from ._vault_file import VaultFile

__all__ = [
    "SALT_BYTES",
    "DataKey",
    "KdfParameters",
    "LoginExchange",
    "Randomness",
    "change_passphrase",
    "check_file",
    "check_passphrase",
    "client_proof",
    "create",
    "daemon_proof",
    "format_versions",
    "generate_words",
    "new_nonce",
    "open_vault",
    "operator_key",
    "read_key",
    "reset",
    "same",
    "stretch",
]


def create(path: Path, passphrase: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Create an empty vault and return its key.

    :raises WeakPassphrase: the passphrase is too weak.
    :raises Conflict: a file exists already. It is unchanged.
    :raises StoreUnavailable: the file could not be written.
    """
    check_passphrase(passphrase)
    document, key = new_document(passphrase, randomness)
    with _writing():
        VaultFile(path).create(document)
    return key


def open_vault(path: Path, passphrase: str) -> DataKey:
    """Open the vault at C{path} and return its key.

    :raises NoVault: there is no vault.
    :raises WrongPassphrase: the passphrase does not open the vault.
    :raises VaultDamaged: the file is not a vault of this version, was altered, or has key derivation parameters that
        are not accepted.
    """
    return open_document(_present(VaultFile(path)), passphrase)


def check_file(path: Path) -> tuple[Binding, ...]:
    """Check whether the file at C{path} has the form of a vault.  Alterations cannot be detected without the key.

    :return: the bindings that an earlier release accepted and this one does not open.
    :raises NoVault: there is no vault.
    :raises VaultDamaged: the file is not a vault of this version.
    """
    return tuple(entry.binding for entry in _present(VaultFile(path)).entries if entry.binding.address_problem)


def format_versions(path: Path) -> tuple[int, int] | None:
    """Return the format version of the vault and that of this release, or None if there is no vault.

    :raises VaultDamaged: the file is not a vault.
    """
    found = VaultFile(path).version()
    return None if found is None else (found, VERSION)


def change_passphrase(path: Path, old: str, new: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Encrypt the vault with a new passphrase and a new data key, which is returned.

    Bindings, trust and used marks stay. An old copy of the file decrypts nothing of the new one.  A daemon that runs
    with the old key refuses the new file, so the caller must restart it.

    :raises WeakPassphrase: the new passphrase is too weak.
    :raises Conflict: the file was written meanwhile. It is unchanged.
    :raises StoreUnavailable: the file could not be written. The old passphrase stays valid.
    :raises NoVault, WrongPassphrase, VaultDamaged: see L{open_vault}.
    """
    check_passphrase(new)
    file = VaultFile(path)
    document = _present(file)
    key = open_document(document, old)
    changed, new_key = rekeyed(document, key, new, randomness)
    key.wipe()
    if file.read() != document:
        raise Conflict("The vault was written meanwhile: stop the daemon first.")
    with _writing():
        file.write(changed)
    return new_key


def reset(
    path: Path, passphrase: str, *, replace: bool = False, randomness: Randomness = secrets.token_bytes
) -> DataKey:
    """Create an empty vault with a new id, without bindings and trust, and return its key.

    :param replace: whether to rename an existing file to C{<name>.before-reset-<n>}.
    :raises WeakPassphrase: the passphrase is too weak.
    :raises Conflict: a file exists and C{replace} is false. It is unchanged.
    :raises StoreUnavailable: the new file could not be written. The old one is restored.
    """
    check_passphrase(passphrase)
    if not os.path.lexists(path):
        return create(path, passphrase, randomness)
    if not replace:
        raise Conflict("There is a vault already.")
    document, key = new_document(passphrase, randomness)
    aside = _free_name(path)
    with _writing():
        path.rename(aside)
        try:
            VaultFile(path).create(document)
        except OSError:
            if not os.path.lexists(path):
                aside.rename(path)
            raise
    return key


def new_nonce(randomness: Randomness = secrets.token_bytes) -> str:
    """Return a nonce for one login."""
    return base64url(randomness(NONCE_BYTES))


def _present(file: VaultFile) -> VaultDocument:
    document = file.read()
    if document is None:
        raise NoVault(
            "There is no vault file: `aileron vault init` makes the first one. If there was one, put secrets.json back"
            " from a copy, or run `aileron vault reset`.",
            {"state": "missing"},
        )
    return document


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise Conflict("There is a vault already.") from None
    except OSError as error:
        raise StoreUnavailable(f"The vault could not be written: {error.strerror}.") from error


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.before-reset-{number}") for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


_VAULT_ID_BYTES = 16


def new_document(passphrase: str, randomness: Randomness) -> tuple[VaultDocument, DataKey]:
    """Return an empty vault with a new id, and its key."""
    vault = randomness(_VAULT_ID_BYTES).hex()
    key, kdf, wrapped = _new_key(vault, passphrase, randomness)
    return authenticated(VaultDocument(vault, kdf, wrapped), key), key


def open_document(document: VaultDocument, passphrase: str) -> DataKey:
    """Return the key of a vault.

    :raises WrongPassphrase: the passphrase does not open the vault.
    :raises VaultDamaged: the MAC of the file is invalid under the key.
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


def rekeyed(
    document: VaultDocument, key: DataKey, passphrase: str, randomness: Randomness
) -> tuple[VaultDocument, DataKey]:
    """Return the vault encrypted with a new data key and another passphrase, and the new key.

    :raises VaultDamaged: an entry does not decrypt.
    """
    new_key, kdf, wrapped = _new_key(document.vault, passphrase, randomness)
    entries = tuple(
        seal_entry(document, new_key, entry.binding, unseal_entry(document, key, entry)) for entry in document.entries
    )
    record = None if document.record is None else _record_under(document, document.record, key, new_key)
    revision = document.revision + 1
    changed = evolve(document, kdf=kdf, data_key=wrapped, entries=entries, record=record, revision=revision)
    return authenticated(changed, new_key), new_key


def _record_under(document: VaultDocument, record: RecordKeys, old: DataKey, new: DataKey) -> RecordKeys:
    """Return the record's keys sealed under the new key, so that old signatures verify and locked periods continue."""

    def moved(name: str, sealed: Sealed) -> Sealed:
        return seal_part(document, new, name, unseal_part(document, old, name, sealed))

    stretches = tuple(Stretch(each.id, moved(each.id, each.sealed)) for each in record.stretches)
    return evolve(record, signing=moved(SIGNING, record.signing), stretches=stretches)


def _new_key(vault: str, passphrase: str, randomness: Randomness) -> tuple[DataKey, KdfParameters, Sealed]:
    kdf, key = KdfParameters(randomness(SALT_BYTES)), new_data_key(randomness)
    return key, kdf, key.wrapped(stretch(passphrase, kdf), wrapping_context(vault, kdf), randomness)
