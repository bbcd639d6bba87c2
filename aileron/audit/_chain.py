"""Computes the hash chain, in which each hash covers one event and the hash before it, and verifies its checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring

from attrs import define, field
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from aileron.base.json import canonical, timestamp
from aileron.model.audit import ROW, Break, ChainLink, Checkpoint, Row

GENESIS = "sha256:" + "0" * 64
"""The previous hash of the first record."""

_FORM = "aileron.audit.v1"
KEYS = tuple(sorted((*ROW[: ROW.index("previous_hash") + 1], "form")))
"""The keys of a sealed record, in the order of RFC 8785."""

# A record is one flat object with known keys, whose only number is an integer. Written in this way it is valid RFC
# 8785, in a third of an encoder's time. Every event pays for this. A test compares the two.
_WRITTEN = "{" + ",".join(f'"{key}":%s' for key in KEYS) + "}"
_quoted: Callable[[str], str] = encode_basestring  # raises TypeError for anything but a text


def seal(previous_hash: str, link: ChainLink) -> str:
    """Return a record's hash.

    The hash is SHA-256 over the RFC 8785 form of the record, with the salted digest instead of the payload.

    :param previous_hash: the hash of the record before it, or L{GENESIS}.
    :raises ValueError: if a text of the record is not valid Unicode (a lone surrogate).
    """
    event = link.event
    what = (event.id, event.type, timestamp(event.at), event.actor.type, event.actor.id)
    about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
    return seal_row(previous_hash, (link.sequence, *what, *about, link.payload_digest))


def seal_row(previous_hash: str, row: Row) -> str:
    """Return the hash of a stored record, as L{seal} computes it. Columns of unexpected types are accepted.

    :raises ValueError: if a text of the record is not valid Unicode.
    """
    try:
        written = _write(previous_hash, row)
    except TypeError:  # a column of a foreign file has another type
        named = {**dict(zip(ROW, row, strict=False)), "form": _FORM, "previous_hash": previous_hash}
        written = _WRITTEN % tuple(
            _quoted(value) if isinstance(value, str) else "null" if value is None else str(value)
            for value in map(named.get, KEYS)
        )
    return "sha256:" + hashlib.sha256(written.encode("utf-8")).hexdigest()


def _write(previous_hash: str, row: Row) -> str:
    """Return the text of L{_WRITTEN} for values of the expected types, in half of the time.

    :raises TypeError: if a value has another type.
    """
    sequence, id_, type_, at, actor_type, actor_id, run_id, session_id, action, connector, failure, digest = row[:12]
    if type(sequence) is not int:
        raise TypeError("no integer")
    return (
        f'{{"action":{"null" if action is None else _quoted(action)},"actor_id":{_quoted(actor_id)}'
        f',"actor_type":{_quoted(actor_type)},"at":{_quoted(at)}'
        f',"connector":{"null" if connector is None else _quoted(connector)}'
        f',"failure_class":{"null" if failure is None else _quoted(failure)},"form":"{_FORM}"'
        f',"id":{_quoted(id_)},"payload_digest":{_quoted(digest)},"previous_hash":{_quoted(previous_hash)}'
        f',"run_id":{"null" if run_id is None else _quoted(run_id)},"sequence":{sequence}'
        f',"session_id":{"null" if session_id is None else _quoted(session_id)},"type":{_quoted(type_)}}}'
    )


def payload_digest(salt: str, payload: str) -> str:
    """Return the SHA-256 digest of C{salt}, a line feed and C{payload}.

    :param salt: random text without a line feed. With it, the digest does not confirm a guessed payload.
    :param payload: the stored text: L{aileron.base.json.compact} of the event's payload.
    """
    return "sha256:" + hashlib.sha256(f"{salt}\n{payload}".encode()).hexdigest()


_FINGERPRINT_DIGITS = 32


def fingerprint(key: str) -> str:
    """Return the short form of a public key that people can compare: C{ed25519:} and 128 bits of the key's SHA-256.

    :param key: the key in hexadecimal.
    :raises ValueError: if the key is not hexadecimal.
    """
    return "ed25519:" + hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_FINGERPRINT_DIGITS]


def is_signed(checkpoint: Checkpoint) -> bool:
    """Return True if the checkpoint's signature is valid for the key that the checkpoint names. Never raises."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checkpoint.key))
        key.verify(bytes.fromhex(checkpoint.signature), canonical(checkpoint.statement()))
    except (InvalidSignature, ValueError):
        return False
    return True


@define(eq=False)
class Endorsement:
    """A verifier of consecutive checkpoints, each of which must follow the one before.

    :param keys: the accepted public keys or their L{fingerprint}s. If empty, every key is accepted.
    :param previous: the digest that the first checkpoint must name as its predecessor, or None if any is accepted.
    """

    keys: frozenset[str]
    previous: str | None
    _number: int = field(default=0, init=False)
    _sequence: int = field(default=0, init=False)

    def follow(self, each: Checkpoint) -> Break | None:
        """Verify the next checkpoint and return its fault, or None if the checkpoint is valid."""
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


PRUNED = "audit.pruned"
"""The type of the event that records up to which record contents were deleted."""


@define(eq=False)
class ChainVerifier:
    """An incremental verifier of the chain.

    :ivar last: the sequence of the last valid record.
    :ivar head: the hash of that record.
    :ivar gaps: the ranges of consecutive records whose contents are missing, each as first and last sequence.
    :ivar excused: the last sequence whose contents may be missing, because the log records that they were deleted.
    """

    last: int = 0
    head: str = GENESIS
    excused: int = 0
    gaps: list[tuple[int, int]] = field(factory=list)

    @property
    def pruned(self) -> int:
        """The number of audit records so far whose contents were deleted, so that only their hashes are left."""
        return sum(end - first + 1 for first, end in self.gaps)

    @property
    def unexcused(self) -> int | None:
        """The first record whose contents are missing without a recorded deletion, or None if there is none."""
        return next((max(first, self.excused + 1) for first, end in self.gaps if end > self.excused), None)

    def follow(self, rows: Sequence[Row]) -> int:
        """Verify C{rows}, the records that follow the last verified one.

        :return: the number of valid rows. If smaller than C{len(rows)}, the next row is invalid.
        """
        for held, row in enumerate(rows):
            if not self._holds(row):
                return held
            self.last, self.head = row[0], row[13]
            if row[14] is None and row[15] is None:
                self._widen(self.last)
            if row[2] == PRUNED:
                self._excuse(row[15], self.last)
        return len(rows)

    def _holds(self, row: Row) -> bool:
        digest, before, own, salt, payload = row[11:]
        # guard of promise 6: a record has the next sequence -> ChainTests.test_begun_later
        if row[0] != self.last + 1:
            return False
        # guard of promise 6: a hash covers the previous hash -> ChainTests.test_link_altered
        if before != self.head:
            return False
        try:
            is_bare = payload is None and salt is None
            # guard of promise 6: a payload matches its digest -> ChainTests.test_altered
            # guard against attack: contents match their digest
            #    -> test_agent.RecordTests.test_while_none_runs
            if not is_bare and payload_digest(salt, payload) != digest:
                return False
            # guard of promise 6: a record's hash covers the record -> ChainTests.test_altered, instead return True
            return bool(seal_row(self.head, row) == own)
        except ValueError:  # invalid Unicode
            return False

    def _widen(self, sequence: int) -> None:
        if self.gaps and self.gaps[-1][1] == sequence - 1:
            self.gaps[-1] = (self.gaps[-1][0], sequence)
        else:
            self.gaps.append((sequence, sequence))

    def _excuse(self, payload: str | None, sequence: int) -> None:
        """Accept that contents are missing before record C{sequence}, if C{payload} records their deletion.

        A claim about later records is ignored.
        """
        try:
            told = {} if payload is None else json.loads(payload)
        except (ValueError, RecursionError):  # ignore invalid contents of a foreign file
            return
        up_to = told.get("up_to") if isinstance(told, dict) else None
        if type(up_to) is int and up_to < sequence:
            self.excused = max(self.excused, up_to)
