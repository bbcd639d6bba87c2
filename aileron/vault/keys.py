"""Operations on the vault without a daemon: create, open, change the passphrase, prove to a daemon to have the key.

Imported only by short-lived commands in the operator's terminal. The daemon never gets a passphrase.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path

from attrs import evolve

from aileron.base.json import JSON
from aileron.base.signatures import write_base64url
from aileron.model.errors import Conflict, NoVault, StoreUnavailable, VaultDamaged, WrongPassphrase, damaged
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import Binding, KeySource, KeySourceKind, SecurityKey

from ._cipher import (
    KEY_BYTES,
    SALT_BYTES,
    DataKey,
    KdfParameters,
    Randomness,
    Sealed,
    new_data_key,
    read_key,
    stretch,
    unseal,
)
from ._derived_sources import DerivedSource, derive_from_secret
from ._format import VERSION, RecordKeys, Stretch, VaultDocument, part_json
from ._key_sources import CREDENTIAL, SystemdCredential, open_with_sources, prove, public_key_of, rewrapped, wrap
from ._passphrase import check_passphrase, generate_words
from ._proofs import NONCE_BYTES, LoginExchange, client_proof, daemon_proof, operator_key, same
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
from ._security_keys import EnrolledSecurityKey, derive_private_key
from ._vault_file import VaultFile

__all__ = [
    "CREDENTIAL",
    "SALT_BYTES",
    "DataKey",
    "DerivedSource",
    "EnrolledSecurityKey",
    "KdfParameters",
    "LoginExchange",
    "Randomness",
    "SystemdCredential",
    "change_passphrase",
    "check_file",
    "check_passphrase",
    "client_proof",
    "create",
    "daemon_proof",
    "find_derived_sources",
    "find_security_keys",
    "format_versions",
    "generate_words",
    "make_derived_source",
    "make_key_source",
    "make_security_key_source",
    "new_nonce",
    "open_by_source",
    "open_vault",
    "operator_key",
    "read_key",
    "reset",
    "same",
    "stretch",
    "vault_id",
]


def create(path: Path, passphrase: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Create an empty vault and return its key.

    :raises WeakPassphrase: if the passphrase is too weak.
    :raises Conflict: if a file exists already. It is unchanged.
    :raises StoreUnavailable: if the file could not be written.
    """
    check_passphrase(passphrase)
    document, key = new_document(passphrase, randomness)
    with _writing():
        VaultFile(path).create(document)
    return key


def open_vault(path: Path, passphrase: str) -> DataKey:
    """Open the vault at C{path} and return its key.

    :raises NoVault: if there is no vault.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises VaultDamaged: if the file is not a vault of this version, was altered, or has key derivation parameters that
        are not accepted.
    """
    return open_document(_present(VaultFile(path)), passphrase)


def open_by_source(path: Path, sources: Iterable[IKeySource]) -> DataKey | None:
    """Open the vault at C{path} by a key source, and return its key, or None if no source that it knows is available.

    :raises Forbidden: if other users may have read or written the private key of a source.
    :raises InvalidRequest: if the place of a private key has something else, or a security key failed.
    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file was altered, or is not a vault of this version.
    """
    document = _present(VaultFile(path))
    key = open_with_sources(document, sources)
    if key is not None and not is_sound(document, key):
        key.wipe()
        raise damaged("The vault file was altered: its key does not stand behind all that it says.")
    return key


def make_key_source(
    path: Path, key: DataKey, kind: KeySourceKind, name: str, at: datetime, randomness: Randomness = secrets.token_bytes
) -> tuple[bytes, JSON, str]:
    """Make a key source for a vault.

    :return: the private key, the entry for the vault's file, and the proof that goes with the entry.
    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    secret = randomness(KEY_BYTES)
    source = KeySource(randomness(_SOURCE_ID_BYTES).hex(), kind, name, public_key_of(secret), at)
    return secret, *_seal_to(_present(VaultFile(path)), key, source, randomness)


def make_security_key_source(
    path: Path,
    key: DataKey,
    name: str,
    at: datetime,
    security_key: SecurityKey,
    secret: bytes,
    randomness: Randomness = secrets.token_bytes,
) -> tuple[JSON, str]:
    """Make a key source whose private key is derived from what a security key computes (ADR 90).

    :param secret: the output of the security key for C{security_key}, 32 bytes. It is not stored.
    :return: the entry for the vault's file, and the proof that goes with the entry.
    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    document = _present(VaultFile(path))
    public_key = public_key_of(derive_private_key(document.vault, security_key, secret))
    id_ = randomness(_SOURCE_ID_BYTES).hex()
    source = KeySource(id_, KeySourceKind.SECURITY_KEY, name, public_key, at, security_key)
    return _seal_to(document, key, source, randomness)


def make_derived_source(
    path: Path,
    key: DataKey,
    name: str,
    at: datetime,
    secret: bytes,
    settings: Mapping[str, str],
    kind: KeySourceKind = KeySourceKind.EXTERNAL,
    randomness: Randomness = secrets.token_bytes,
) -> tuple[JSON, str]:
    """Make a key source whose private key is derived from a secret that the source keeps (ADR 111).

    :param secret: the secret, 32 bytes. It is not stored.
    :param settings: what is needed to ask the source for the secret. They are stored and not secret.
    :param kind: the kind of the source, by default that of other packages.
    :return: the entry for the vault's file, and the proof that goes with the entry.
    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    :raises ValueError: if the secret has another length, or there are too many settings or too long ones.
    """
    document = _present(VaultFile(path))
    public_key = public_key_of(derive_from_secret(document.vault, kind, secret))
    source = KeySource(randomness(_SOURCE_ID_BYTES).hex(), kind, name, public_key, at, settings=settings)
    return _seal_to(document, key, source, randomness)


def find_derived_sources(path: Path, kind: KeySourceKind = KeySourceKind.EXTERNAL) -> tuple[DerivedSource, ...]:
    """Return the sources of a kind that the file at C{path} names, oldest first. Its MAC is not verified.

    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    document = _present(VaultFile(path))
    sources = (entry.source for entry in document.key_sources)
    return tuple(DerivedSource(document.vault, source) for source in sources if source.kind is kind)


def vault_id(path: Path) -> str:
    """Return the ID of the vault at C{path}, to which a source can bind its secret. Its MAC is not verified.

    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    return _present(VaultFile(path)).vault


def _seal_to(document: VaultDocument, key: DataKey, source: KeySource, randomness: Randomness) -> tuple[JSON, str]:
    entry: JSON = part_json(wrap(document.vault, key, source, randomness))
    return entry, prove(key, entry)


def find_security_keys(path: Path) -> tuple[EnrolledSecurityKey, ...]:
    """Return the security keys that the file at C{path} names, oldest first. Its MAC is not verified.

    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    document = _present(VaultFile(path))
    found = ((entry.source, entry.source.security_key) for entry in document.key_sources)
    return tuple(EnrolledSecurityKey(document.vault, source, key) for source, key in found if key is not None)


def check_file(path: Path) -> tuple[Binding, ...]:
    """Check whether the file at C{path} has the form of a vault.  Alterations cannot be detected without the key.

    :return: the bindings that an earlier release accepted and this one does not open.
    :raises NoVault: if there is no vault.
    :raises VaultDamaged: if the file is not a vault of this version.
    """
    return tuple(entry.binding for entry in _present(VaultFile(path)).entries if entry.binding.address_problem)


def format_versions(path: Path) -> tuple[int, int] | None:
    """Return the format version of the vault's file, and the version that this release writes, or None without a vault.

    :raises VaultDamaged: if the file is not a vault.
    """
    found = VaultFile(path).version()
    return None if found is None else (found, min(found, VERSION))


def change_passphrase(path: Path, old: str, new: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Encrypt the vault with a new passphrase and a new data key, which is returned.

    Bindings, trust and used marks stay. An old copy of the file decrypts nothing of the new one.  A daemon that runs
    with the old key refuses the new file, so the caller must restart it.

    :raises WeakPassphrase: if the new passphrase is too weak.
    :raises Conflict: if the file was written meanwhile. It is unchanged.
    :raises StoreUnavailable: if the file could not be written. The old passphrase stays valid.
    :raises NoVault: if there is no vault.
    :raises WrongPassphrase: if the old passphrase does not open it.
    :raises VaultDamaged: if the file is not a vault of this version, or was altered.
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
    :raises WeakPassphrase: if the passphrase is too weak.
    :raises Conflict: if a file exists and C{replace} is false. It is unchanged.
    :raises StoreUnavailable: if the new file could not be written. The old one is restored.
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
    """Return a new random nonce for one login."""
    return write_base64url(randomness(NONCE_BYTES))


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


_VAULT_ID_BYTES, _SOURCE_ID_BYTES = 16, 8


def new_document(passphrase: str, randomness: Randomness) -> tuple[VaultDocument, DataKey]:
    """Return an empty vault with a new id, and its key."""
    vault = randomness(_VAULT_ID_BYTES).hex()
    key, kdf, wrapped = _new_key(vault, passphrase, randomness)
    return authenticated(VaultDocument(vault, kdf, wrapped), key), key


def open_document(document: VaultDocument, passphrase: str) -> DataKey:
    """Return the key of a vault.

    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises VaultDamaged: if the MAC of the file is invalid under the key, or the key has the wrong length.
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

    :raises VaultDamaged: if an entry does not decrypt.
    """
    new_key, kdf, wrapped = _new_key(document.vault, passphrase, randomness)
    entries = tuple(
        seal_entry(document, new_key, entry.binding, unseal_entry(document, key, entry)) for entry in document.entries
    )
    record = None if document.record is None else _record_under(document, document.record, key, new_key)
    revision = document.revision + 1
    changed = evolve(document, kdf=kdf, data_key=wrapped, entries=entries, record=record, revision=revision)
    changed = evolve(changed, key_sources=rewrapped(document, new_key, randomness))
    return authenticated(changed, new_key), new_key


def _record_under(document: VaultDocument, record: RecordKeys, old: DataKey, new: DataKey) -> RecordKeys:
    """Return the keys of the audit log encrypted under a new data key.

    The keys stay, so old signatures still verify, and a period in which the vault is locked continues.
    """

    def moved(name: str, sealed: Sealed) -> Sealed:
        return seal_part(document, new, name, unseal_part(document, old, name, sealed))

    stretches = tuple(Stretch(each.id, moved(each.id, each.sealed)) for each in record.stretches)
    return evolve(record, signing=moved(SIGNING, record.signing), stretches=stretches)


def _new_key(vault: str, passphrase: str, randomness: Randomness) -> tuple[DataKey, KdfParameters, Sealed]:
    kdf, key = KdfParameters(randomness(SALT_BYTES)), new_data_key(randomness)
    return key, kdf, key.wrapped(stretch(passphrase, kdf), wrapping_context(vault, kdf), randomness)
