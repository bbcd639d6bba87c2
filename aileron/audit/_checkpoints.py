"""What a checkpoint is worth: its signature, its place after the one before, and whose key it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aileron.values import Break, Checkpoint, canonical

_FINGERPRINT_DIGITS = 32


def fingerprint(key: str) -> str:
    """What a person notes of a public key: C{ed25519:} and 128 bits of its SHA-256.

    :param key: in hexadecimal.
    :raises ValueError: it is not.
    """
    return "ed25519:" + hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_FINGERPRINT_DIGITS]


def is_signed(checkpoint: Checkpoint) -> bool:
    """Whether the holder of the key that it names made this statement; never raises."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checkpoint.key))
        key.verify(bytes.fromhex(checkpoint.signature), canonical(checkpoint.statement()))
    except (InvalidSignature, ValueError):
        return False
    return True


def first_unsound(checkpoints: Sequence[Checkpoint], keys: Iterable[str], previous: str | None) -> Break | None:
    """What is wrong with the first checkpoint that does not hold, or L{None}: all do, and each follows the one before.

    :param keys: public keys, or L{fingerprint}s of them, one of which must have signed each; none: any may.
    :param previous: what the first names as the one before it; L{None}: whatever it says.
    """
    known = frozenset(key.strip().lower() for key in keys)
    last_sequence = 0
    for number, each in enumerate(checkpoints, 1):
        why = _fault(each, known, previous, last_sequence)
        if why is not None:
            return Break("checkpoint", each.sequence, f"The checkpoint no. {number}, of {each.at}, {why}.")
        previous, last_sequence = each.digest, each.sequence
    return None


def _fault(each: Checkpoint, known: frozenset[str], previous: str | None, last_sequence: int) -> str | None:
    if not is_signed(each):
        return "was altered: its signature does not hold"
    if known and not known & {each.key, fingerprint(each.key)}:
        return f"was signed by {fingerprint(each.key)}, which is none of the keys that were given"
    if previous is not None and each.previous != previous:
        return "does not follow the one before it: a checkpoint was removed, inserted or moved"
    return None if each.sequence >= last_sequence else "goes back behind the one before it"
