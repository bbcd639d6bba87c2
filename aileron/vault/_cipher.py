"""The data key, from a passphrase to what is sealed: Argon2id, keys derived from it, AES-256-GCM.

The parameters of Argon2id (RFC 9106) lie in a file that other programs may write: below the floor a passphrase could be
guessed, above the ceiling one unlock would take the machine's memory.  What is sealed has its context as associated
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
"""That many unpredictable bytes."""


class DataKey:
    """The key that everything in one vault hangs on; it shows in no repr and can be wiped.

    Python may have copied the bytes elsewhere before, so wiping shortens the key's life and promises no more.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes | bytearray) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"A data key has {KEY_BYTES} bytes.")
        self._secret = bytearray(secret)

    def subkey(self, purpose: str) -> bytes:
        """Derive the 32 bytes for one purpose (HKDF-SHA256, RFC 5869).

        :raises ValueError: the key was wiped.
        """
        if not self._secret:
            raise ValueError("The data key was wiped.")
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(self._secret)

    def wrapped(self, wrapping_key: bytes, context: JSON, randomness: Randomness) -> Sealed:
        """Seal this key under another."""
        return seal(wrapping_key, bytes(self._secret), context, randomness)

    def send(self, descriptor: int) -> None:
        """Write the key to a pipe or socket of ours and close it: L{read_key} of the child gets it."""
        with open(descriptor, "wb", buffering=0) as pipe:
            pipe.write(self._secret)

    def wipe(self) -> None:
        """Overwrite and forget the key.  Twice is safe."""
        self._secret[:] = bytes(len(self._secret))
        del self._secret[:]

    def __repr__(self) -> str:
        return "<DataKey>"

    def __reduce__(self) -> str:
        raise TypeError("A data key is not pickled.")


def new_data_key(randomness: Randomness = secrets.token_bytes) -> DataKey:
    """Make a fresh key."""
    return DataKey(randomness(KEY_BYTES))


def read_key(descriptor: int) -> DataKey:
    """Read the key that the parent sent through an inherited pipe or socket, which is closed.

    :raises ValueError: what came is no data key.
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
    """Ciphertext with its nonce."""

    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)


def seal(key: bytes, plaintext: bytes, context: JSON, randomness: Randomness = secrets.token_bytes) -> Sealed:
    """Encrypt, so that it opens only under the same key and with the same context."""
    nonce = randomness(_NONCE_BYTES)
    return Sealed(nonce, AESGCM(key).encrypt(nonce, plaintext, canonical(context)))


def unseal(key: bytes, sealed: Sealed, context: JSON) -> bytes:
    """Open the plaintext.

    :raises VaultDamaged: another key, another context, or altered bytes.
    """
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, canonical(context))
    except (InvalidTag, ValueError):
        raise VaultDamaged("A part of the vault does not open: it was altered, or belongs elsewhere.") from None


SALT_BYTES = 16


@frozen
class KdfParameters:
    """The parameters by which a vault's passphrase is stretched.

    :raises VaultDamaged: weaker or heavier than this product accepts.
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
    """Make a key of a passphrase. Takes a quarter of a second and 64 MiB, on purpose.

    The passphrase is brought to NFC first: keyboards differ in how they compose an accent.
    """
    kdf = Argon2id(
        salt=parameters.salt,
        length=KEY_BYTES,
        iterations=parameters.iterations,
        lanes=parameters.lanes,
        memory_cost=parameters.memory_kib,
    )
    return kdf.derive(unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass"))
