"""Key sources unlock the vault without a passphrase (ADR 83).

The data key is encrypted to public keys. Their private keys are outside of the home.
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from zope.interface import implementer

from aileron.base.json import JSON, canonical
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, VaultDamaged
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import KeySource

from ._cipher import KEY_BYTES, DataKey, Randomness, unseal
from ._format import KeySourceEntry, VaultDocument, part_json, read_key_source
from ._proofs import same
from ._vault_file import OpenVault

CREDENTIAL = "aileron-vault"
"""The name of the credential in the unit of systemd."""

_DIRECTORY = "CREDENTIALS_DIRECTORY"
_MAX_SOURCES = 8
_INFO, _PROOF = b"aileron vault key source v1", "aileron.key-source.proof.v1"


@implementer(IKeySource)
@frozen
class SystemdCredential:
    """The credential that systemd decrypts for the daemon's unit (systemd.exec(5), C{LoadCredentialEncrypted=}).

    :ivar environ: the environment, in which systemd names the directory.
    """

    environ: Mapping[str, str]

    def read(self) -> bytes | None:
        directory = self.environ.get(_DIRECTORY)
        if not directory or not os.path.isabs(directory):
            return None
        try:
            descriptor = os.open(
                Path(directory, CREDENTIAL), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Forbidden(f"The credential {CREDENTIAL} cannot be opened: {error.strerror}.") from None
        try:
            _check_credential(os.fstat(descriptor))
            secret = os.read(descriptor, KEY_BYTES + 1)
        finally:
            os.close(descriptor)
        if len(secret) != KEY_BYTES:
            raise InvalidRequest(f"The credential {CREDENTIAL} is none of Aileron's: it must have {KEY_BYTES} bytes.")
        return secret


def _check_credential(found: os.stat_result) -> None:
    """Check that only this user and root can have read or written a credential of systemd.

    systemd gives a user access to a file of root by an access control list, whose mask is in the bits of the group.

    :raises Forbidden: if others can, or the file belongs to another user.
    """
    readable = stat.S_IRGRP if found.st_uid == 0 else 0
    # guard of signing: a key that others can read or write unlocks nothing
    #    -> vault.test_key_sources.SystemdTests.test_open_to_others
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o177 & ~readable:
        raise Forbidden(f"The credential {CREDENTIAL} is refused: others can read or write it.")
    # guard of signing: a key that another user may have chosen unlocks nothing
    #    -> vault.test_key_sources.SystemdTests.test_of_another_user
    if found.st_uid not in (0, os.geteuid()):
        raise Forbidden(f"The credential {CREDENTIAL} is refused: it belongs to another user.")


def public_key_of(secret: bytes) -> str:
    """Return the X25519 public key of a private key of 32 bytes, in hexadecimal."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw().hex()


def wrap(vault: str, key: DataKey, source: KeySource, randomness: Randomness) -> KeySourceEntry:
    """Return a source with the vault's data key encrypted to it.

    :raises ValueError: if its public key is malformed.
    """
    ephemeral = randomness(KEY_BYTES)
    public = public_key_of(ephemeral)
    shared = X25519PrivateKey.from_private_bytes(ephemeral).exchange(
        X25519PublicKey.from_public_bytes(bytes.fromhex(source.public_key))
    )
    wrapping_key = _wrapping_key(shared, public, source.public_key)
    return KeySourceEntry(source, public, key.wrapped(wrapping_key, _context(vault, source), randomness))


def _unwrap(document: VaultDocument, entry: KeySourceEntry, secret: bytes) -> DataKey:
    """Decrypt the data key in C{entry}.

    :param secret: the private key of the entry's source.
    :raises VaultDamaged: if C{secret} belongs to another source, or the entry was altered.
    """
    try:
        ephemeral = X25519PublicKey.from_public_bytes(bytes.fromhex(entry.ephemeral))
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(ephemeral)
        wrapping_key = _wrapping_key(shared, entry.ephemeral, entry.source.public_key)
        return DataKey(unseal(wrapping_key, entry.sealed, _context(document.vault, entry.source)))
    except ValueError:
        raise VaultDamaged("A key source of the vault is malformed.") from None


def _wrapping_key(shared: bytes, ephemeral: str, public_key: str) -> bytes:
    info = _INFO + bytes.fromhex(ephemeral) + bytes.fromhex(public_key)
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(shared)


def _context(vault: str, source: KeySource) -> JSON:
    return {"tag": "aileron.vault.key-source.v1", "vault": vault, "source": part_json(source)}


def open_with_sources(document: VaultDocument, sources: Iterable[IKeySource]) -> DataKey | None:
    """Return the data key by the first source whose private key the vault knows, or None if there is none.

    The MAC of the file is not verified.

    :raises Forbidden: if other users may have read or written the private key of a source.
    :raises InvalidRequest: if the place of a private key has something else, or a security key failed.
    :raises VaultDamaged: if the entry of the source was altered.
    """
    for place in sources if document.key_sources else ():
        secret = place.read()
        public_key = None if secret is None else public_key_of(secret)
        for entry in document.key_sources:
            if secret is not None and entry.source.public_key == public_key:
                return _unwrap(document, entry, secret)
    return None


def rewrapped(document: VaultDocument, key: DataKey, randomness: Randomness) -> tuple[KeySourceEntry, ...]:
    """Return the vault's key sources with C{key}, a new data key, encrypted to each of them.

    :raises ValueError: if the public key of a source is malformed.
    """
    return tuple(wrap(document.vault, key, each.source, randomness) for each in document.key_sources)


def prove(key: DataKey, entry: JSON) -> str:
    """Return the proof that an entry was added with the data key. A login alone cannot make it."""
    return hmac.digest(key.subkey(_PROOF), canonical(entry), sha256).hex()


class FileKeySources:
    """The key sources in the file of an unlocked vault."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file

    def list(self) -> tuple[KeySource, ...]:
        """Return all sources of the vault's key besides the passphrase, oldest first."""
        return tuple(each.source for each in self._file.verified.key_sources)

    def check(self, given: JSON, proof: str) -> KeySource:
        """Check an entry that L{wrap} made, and return its source. Nothing is stored.

        :raises InvalidRequest: if it is malformed.
        :raises Forbidden: if the proof was not made with the vault's key.
        :raises Conflict: if there is such a source already, or there are too many.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file is damaged.
        """
        return self._check(given, proof)[0].source

    def add(self, given: JSON, proof: str) -> KeySource:
        """Store the entry that L{wrap} made, and return its source.

        :raises InvalidRequest: if it is malformed.
        :raises Forbidden: if the proof was not made with the vault's key.
        :raises Conflict: if there is such a source already, or there are too many.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault cannot be written.
        :raises VaultDamaged: if the vault's file is damaged.
        """
        entry, known = self._check(given, proof)
        self._file.change(key_sources=(*known, entry))
        return entry.source

    def _check(self, given: JSON, proof: str) -> tuple[KeySourceEntry, tuple[KeySourceEntry, ...]]:
        entry = read_key_source(given)
        key, document = self._file.opened()
        # guard of signing: a login without the vault's key adds no source
        #    -> vault.test_key_sources.FileTests.test_without_the_key
        if not same(prove(key, part_json(entry)), proof):
            raise Forbidden("This key source was not made with the vault's key, so it was not added.")
        known = document.key_sources
        taken = {(each.source.id, each.source.public_key) for each in known}
        if any(entry.source.id == id_ or entry.source.public_key == public for id_, public in taken):
            raise Conflict("This key source is there already.")
        if len(known) >= _MAX_SOURCES:
            raise Conflict(f"There are {_MAX_SOURCES} key sources already. Remove one first.")
        return entry, known

    def remove(self, source_id: str) -> KeySource:
        """Remove a source, and return it.

        Copies of the file that have it still open with it, until the passphrase is changed.

        :raises NotFound: if there is no such source.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault cannot be written.
        :raises VaultDamaged: if the vault's file is damaged.
        """
        known = self._file.current().key_sources
        found = next((each for each in known if each.source.id == source_id), None)
        if found is None:
            raise NotFound("There is no such key source.")
        self._file.change(key_sources=tuple(each for each in known if each is not found))
        return found.source
