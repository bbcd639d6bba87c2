"""From a passphrase to a key: Argon2id (RFC 9106), within a floor and a ceiling.

The parameters lie in a file that other programs may write: below the floor a passphrase could be guessed, above the
ceiling one unlock would take the machine's memory.
"""

from __future__ import annotations

import unicodedata

from attrs import field, frozen
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from ._cipher import KEY_BYTES
from ._errors import VaultDamaged

SALT_BYTES = 16


@frozen
class KdfParameters:
    """How a vault's passphrase is stretched.

    :raises VaultDamaged: weaker or heavier than this product accepts.
    """

    salt: bytes = field(repr=False)
    iterations: int = 3
    memory_kib: int = 64 * 1024
    lanes: int = 4

    def __attrs_post_init__(self) -> None:
        _within("salt", len(self.salt), SALT_BYTES, 64)
        _within("iterations", self.iterations, 3, 16)
        _within("memory_kib", self.memory_kib, 64 * 1024, 1024 * 1024)
        _within("lanes", self.lanes, 1, 16)


def _within(name: str, value: int, floor: int, ceiling: int) -> None:
    if not floor <= value <= ceiling:
        raise VaultDamaged(f"The vault's key derivation is refused: {name} must be {floor} to {ceiling}.")


def stretch(passphrase: str, parameters: KdfParameters) -> bytes:
    """The key that a passphrase makes.  Takes a quarter of a second and 64 MiB, on purpose.

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
