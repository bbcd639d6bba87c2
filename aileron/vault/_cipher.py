"""Derives the vault's data key from a passphrase, and encrypts data with it: Argon2id, HKDF and AES-256-GCM.

The Argon2id parameters (RFC 9106) are in a file that other programs may write. Below the minimum a passphrase could be
guessed, and above the maximum an unlock would use up the machine's memory. Encrypted data has its context as associated
data.
"""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Callable

from attrs import field, frozen
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from aileron.base.json import JSON, canonical
from aileron.model.errors import VaultDamaged

KEY_BYTES = 32
_NONCE_BYTES = 12

Randomness = Callable[[int], bytes]
"""A function that returns the requested number of unpredictable bytes."""


class DataKey:
    """The data key of a vault, from which all its other keys are derived. It is hidden in reprs and can be wiped.

    Python may have copied the bytes elsewhere, so wiping only shortens the key's life.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes | bytearray) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"A data key has {KEY_BYTES} bytes.")
        self._secret = bytearray(secret)

    def subkey(self, purpose: str) -> bytes:
        """Return the 32-byte key for one purpose (HKDF-SHA256, RFC 5869).

        :raises ValueError: if the key was wiped.
        """
        if not self._secret:
            raise ValueError("The data key was wiped.")
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(self._secret)

    def wrapped(self, wrapping_key: bytes, context: JSON, randomness: Randomness) -> Sealed:
        """Return this key encrypted under another key.

        :param context: the data to which the result is bound, as in L{seal}.
        """
        return seal(wrapping_key, bytes(self._secret), context, randomness)

    def send(self, descriptor: int) -> None:
        """Write the key to a private pipe or socket, and close the descriptor.

        The child receives it with L{read_key}.
        """
        with open(descriptor, "wb", buffering=0) as pipe:
            pipe.write(self._secret)

    def wipe(self) -> None:
        """Overwrite and delete the key.  Idempotent."""
        self._secret[:] = bytes(len(self._secret))
        del self._secret[:]

    def __repr__(self) -> str:
        return "<DataKey>"

    def __reduce__(self) -> str:
        raise TypeError("A data key is not pickled.")


def new_data_key(randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Return a new random key."""
    return DataKey(randomness(KEY_BYTES))


def read_key(descriptor: int) -> DataKey:
    """Return the key that the parent sent through an inherited pipe or socket, and close the descriptor.

    :raises ValueError: if the bytes received are not a data key.
    """
    received = bytearray(KEY_BYTES + 1)
    filled = 0
    try:
        while filled < len(received) and (count := os.readv(descriptor, [memoryview(received)[filled:]])):
            filled += count
        return DataKey(received[:filled])
    finally:
        os.close(descriptor)
        received[:] = bytes(len(received))


@frozen
class Sealed:
    """A ciphertext, and the nonce with which it was encrypted."""

    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)


def seal(key: bytes, plaintext: bytes, context: JSON, randomness: Randomness = secrets.token_bytes) -> Sealed:
    """Encrypt C{plaintext}.  Decryption needs the same key and the same C{context}."""
    nonce = randomness(_NONCE_BYTES)
    return Sealed(nonce, AESGCM(key).encrypt(nonce, plaintext, canonical(context)))


def unseal(key: bytes, sealed: Sealed, context: JSON) -> bytes:
    """Return the decrypted plaintext.

    :raises VaultDamaged: if the key or the context differs, or the bytes were altered.
    """
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, canonical(context))
    except (InvalidTag, ValueError):
        raise VaultDamaged("A part of the vault does not open: it was altered, or belongs elsewhere.") from None


SALT_BYTES = 16


@frozen
class KdfParameters:
    """The parameters for deriving a key from a vault's passphrase.

    :raises VaultDamaged: if a parameter is outside of the accepted range.
    """

    salt: bytes = field(repr=False)
    iterations: int = 3
    memory_kib: int = 64 * 1024
    lanes: int = 4

    def __attrs_post_init__(self) -> None:
        _check_within("salt", len(self.salt), SALT_BYTES, 64)
        _check_within("iterations", self.iterations, 3, 16)
        _check_within("memory_kib", self.memory_kib, 64 * 1024, 1024 * 1024)
        _check_within("lanes", self.lanes, 1, 16)


def _check_within(name: str, value: int, floor: int, ceiling: int) -> None:
    if not floor <= value <= ceiling:
        raise VaultDamaged(f"The vault's key derivation is refused: {name} must be {floor} to {ceiling}.")


def stretch(passphrase: str, parameters: KdfParameters) -> bytes:
    """Derive a key from a passphrase.  Deliberately takes a quarter of a second and 64 MiB.

    The passphrase is normalized to NFC first, because keyboards compose accents differently.
    """
    kdf = Argon2id(
        salt=parameters.salt,
        length=KEY_BYTES,
        iterations=parameters.iterations,
        lanes=parameters.lanes,
        memory_cost=parameters.memory_kib,
    )
    return kdf.derive(unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass"))
