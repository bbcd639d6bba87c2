"""The vault without a daemon: make it, open it, change its passphrase, prove to a daemon that one could.

Only short-lived commands in the operator's terminal import this; the daemon never gets a passphrase.
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
    """Make an empty vault and return its key.

    :raises WeakPassphrase: the passphrase is refused.
    :raises Conflict: there is a file already; it is not touched.
    :raises StoreUnavailable: it could not be written.
    """
    check_passphrase(passphrase)
    document, key = new_document(passphrase, randomness)
    with _writing():
        VaultFile(path).create(document)
    return key


def open_vault(path: Path, passphrase: str) -> DataKey:
    """Open the vault at C{path}, and return its key.

    :raises NoVault: there is none.
    :raises WrongPassphrase: the passphrase does not open it.
    :raises VaultDamaged: the file is no vault of this version, was altered, or asks for a key derivation that is
        refused.
    """
    return open_document(_present(VaultFile(path)), passphrase)


def check_file(path: Path) -> tuple[Binding, ...]:
    """Look whether the file at C{path} has the form of a vault; whether it was altered only its key can tell.

    :return: the bindings in it that an earlier release took and this one does not open.
    :raises NoVault: there is none.
    :raises VaultDamaged: it is no vault of this version.
    """
    return tuple(entry.binding for entry in _present(VaultFile(path)).entries if entry.binding.address_problem)


def format_versions(path: Path) -> tuple[int, int] | None:
    """Return the version of the vault's format, and the one that this release writes; L{None}: there is no vault.

    :raises VaultDamaged: it is no vault.
    """
    found = VaultFile(path).version()
    return None if found is None else (found, VERSION)


def change_passphrase(path: Path, old: str, new: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Put the vault under another passphrase and a new data key, which is returned.

    Bindings, trust and what was used stay; a copy of the file under the old passphrase opens nothing of the new one.
    A daemon that runs with the old key refuses the file from here on: the caller restarts it.

    :raises WeakPassphrase: the new one is refused.
    :raises Conflict: the file was written meanwhile; nothing was changed.
    :raises StoreUnavailable: it could not be written; the old passphrase stands.
    :raises NoVault, WrongPassphrase, VaultDamaged: as of L{open_vault}.
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
    """Begin anew with an empty vault of another id, in which nothing is bound and nothing trusted; its key.

    :param replace: whether to put a file that is there aside, as C{<name>.before-reset-<n>}.
    :raises WeakPassphrase: the passphrase is refused.
    :raises Conflict: there is a file, and it may not be replaced; it is not touched.
    :raises StoreUnavailable: the new one could not be written; what was there is there again.
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
    """Make a nonce for one login."""
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
    """Make an empty vault of a new id, and its key."""
    vault = randomness(_VAULT_ID_BYTES).hex()
    key, kdf, wrapped = _new_key(vault, passphrase, randomness)
    return authenticated(VaultDocument(vault, kdf, wrapped), key), key


def open_document(document: VaultDocument, passphrase: str) -> DataKey:
    """Return the key of a vault.

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


def rekeyed(
    document: VaultDocument, key: DataKey, passphrase: str, randomness: Randomness
) -> tuple[VaultDocument, DataKey]:
    """Put the vault under a new data key and another passphrase: every entry sealed anew, all else kept.

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


def _record_under(document: VaultDocument, record: RecordKeys, old: DataKey, new: DataKey) -> RecordKeys:
    """Keep the record's keys: what they signed must verify, and what goes on must go on."""

    def moved(name: str, sealed: Sealed) -> Sealed:
        return seal_part(document, new, name, unseal_part(document, old, name, sealed))

    stretches = tuple(Stretch(each.id, moved(each.id, each.sealed)) for each in record.stretches)
    return evolve(record, signing=moved(SIGNING, record.signing), stretches=stretches)


def _new_key(vault: str, passphrase: str, randomness: Randomness) -> tuple[DataKey, KdfParameters, Sealed]:
    kdf, key = KdfParameters(randomness(SALT_BYTES)), new_data_key(randomness)
    return key, kdf, key.wrapped(stretch(passphrase, kdf), wrapping_context(vault, kdf), randomness)
