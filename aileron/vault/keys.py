"""The vault without a daemon: make it, open it with a passphrase, prove to a daemon that one could.

Only short-lived commands in the operator's terminal import this; the daemon never gets a passphrase.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from aileron.errors import Conflict

from ._cipher import DataKey, Randomness, new_data_key, read_key, unseal
from ._disk import Disk
from ._document import Document, belongs, make_check, wrapping_context
from ._errors import NoVault, VaultDamaged, WeakPassphrase, WrongPassphrase
from ._kdf import SALT_BYTES, KdfParameters, stretch
from ._passphrase import check_passphrase, generate_words
from ._proofs import NONCE_BYTES, Exchange, base64url, client_proof, daemon_proof, operator_key, same

__all__ = [
    "DataKey",
    "Exchange",
    "NoVault",
    "VaultDamaged",
    "WeakPassphrase",
    "WrongPassphrase",
    "check_passphrase",
    "client_proof",
    "create",
    "daemon_proof",
    "generate_words",
    "new_nonce",
    "open_vault",
    "operator_key",
    "read_key",
    "same",
]

_VAULT_ID_BYTES = 16


def create(path: Path, passphrase: str, randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Make an empty vault and return its key.

    :raises WeakPassphrase: the passphrase is refused.
    :raises Conflict: there is a file already; it is not touched.
    """
    check_passphrase(passphrase)
    vault, kdf = randomness(_VAULT_ID_BYTES).hex(), KdfParameters(randomness(SALT_BYTES))
    key = new_data_key(randomness)
    wrapped = key.wrapped(stretch(passphrase, kdf), wrapping_context(vault, kdf), randomness)
    try:
        Disk(path).create(Document(vault, kdf, wrapped, make_check(vault, key)))
    except FileExistsError:
        raise Conflict("There is a vault already.") from None
    return key


def open_vault(path: Path, passphrase: str) -> DataKey:
    """The key of the vault at C{path}.

    :raises NoVault: there is none.
    :raises WrongPassphrase: the passphrase does not open it.
    :raises VaultDamaged: the file is no vault of this version, or asks for a key derivation that is refused.
    """
    document = Disk(path).read()
    if document is None:
        raise NoVault("There is no vault yet: run `aileron vault init`.", {"state": "missing"})
    wrapping_key = stretch(passphrase, document.kdf)
    try:
        secret = unseal(wrapping_key, document.data_key, wrapping_context(document.vault, document.kdf))
    except VaultDamaged:
        raise WrongPassphrase("This passphrase does not open the vault.") from None
    return _checked(document, secret)


def _checked(document: Document, secret: bytes) -> DataKey:
    try:
        key = DataKey(secret)
    except ValueError:
        raise VaultDamaged("The vault's key has the wrong length.") from None
    if not belongs(document, key):
        raise VaultDamaged("The vault's key and the rest of the vault do not belong together.")
    return key


def new_nonce(randomness: Randomness = secrets.token_bytes) -> str:
    """A nonce for one login."""
    return base64url(randomness(NONCE_BYTES))
