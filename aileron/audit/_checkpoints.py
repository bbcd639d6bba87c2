"""Judges a checkpoint: its signature, its place after the one before, and whose key it was."""

from __future__ import annotations

import hashlib

from attrs import define, field
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aileron.values import Break, Checkpoint, canonical

_FINGERPRINT_DIGITS = 32


def fingerprint(key: str) -> str:
    """Return what a person notes of a public key: C{ed25519:} and 128 bits of its SHA-256.

    :param key: in hexadecimal.
    :raises ValueError: it is not.
    """
    return "ed25519:" + hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_FINGERPRINT_DIGITS]


def is_signed(checkpoint: Checkpoint) -> bool:
    """Tell whether the holder of the key that it names made this statement; never raises."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checkpoint.key))
        key.verify(bytes.fromhex(checkpoint.signature), canonical(checkpoint.statement()))
    except (InvalidSignature, ValueError):
        return False
    return True


@define(eq=False)
class Endorsement:
    """Goes along checkpoints, each of which must follow the one before.

    :param keys: public keys, or L{fingerprint}s of them, one of which must have signed each; none: any may.
    :param previous: what the first names as the one before it; L{None}: whatever it says.
    """

    keys: frozenset[str]
    previous: str | None
    _number: int = field(default=0, init=False)
    _sequence: int = field(default=0, init=False)

    def follow(self, each: Checkpoint) -> Break | None:
        """Judge the next one: what is wrong with it, or L{None}: it holds."""
        self._number += 1
        why = self._fault(each)
        if why is not None:
            return Break("checkpoint", each.sequence, f"The checkpoint no. {self._number}, of {each.at}, {why}.")
        self.previous, self._sequence = each.digest, each.sequence
        return None

    def _fault(self, each: Checkpoint) -> str | None:
        if not is_signed(each):
            return "was altered: its signature does not hold"
        if self.keys and not self.keys & {each.key, fingerprint(each.key)}:
            return f"was signed by {fingerprint(each.key)}, which is none of the keys that were given"
        if self.previous is not None and each.previous != self.previous:
            return "does not follow the one before it: a checkpoint was removed, inserted or moved"
        return None if each.sequence >= self._sequence else "goes back behind the one before it"
