"""The chain: each hash covers one event and the hash before it; it is checked row after row, with its checkpoints."""

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
"""What is sealed, in the order of RFC 8785."""

# One object, flat, its keys known, its only number an integer: so written it is RFC 8785, in a third of an encoder's
# time.  Every event pays for this; a test compares the two.
_WRITTEN = "{" + ",".join(f'"{key}":%s' for key in KEYS) + "}"
_quoted: Callable[[str], str] = encode_basestring  # of anything but a text it is a TypeError


def seal(previous_hash: str, link: ChainLink) -> str:
    """Compute a record's hash: SHA-256 over RFC 8785 of everything but the payload, of which only its salted digest.

    :param previous_hash: of the record before it, or L{GENESIS}.
    :raises ValueError: a text in it is no Unicode (a lone surrogate).
    """
    event = link.event
    what = (event.id, event.type, timestamp(event.at), event.actor.type, event.actor.id)
    about = (event.run_id, event.session_id, event.action, event.connector, event.failure_class)
    return seal_row(previous_hash, (link.sequence, *what, *about, link.payload_digest))


def seal_row(previous_hash: str, row: Row) -> str:
    """Compute the same of a record as it is kept, whatever its columns hold.

    :raises ValueError: a text in it is no Unicode.
    """
    try:
        written = _write(previous_hash, row)
    except TypeError:  # of a strange file: one of its columns holds another type
        named = {**dict(zip(ROW, row, strict=False)), "form": _FORM, "previous_hash": previous_hash}
        written = _WRITTEN % tuple(
            _quoted(value) if isinstance(value, str) else "null" if value is None else str(value)
            for value in map(named.get, KEYS)
        )
    return "sha256:" + hashlib.sha256(written.encode("utf-8")).hexdigest()


def _write(previous_hash: str, row: Row) -> str:
    """Write the same as L{_WRITTEN} for values of the usual types, in half of the time.

    :raises TypeError: a value is of another type.
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
    """Compute SHA-256 over C{salt}, a line feed and C{payload}.

    :param salt: without a line feed; keeps a payload that can be guessed from being confirmed by its digest.
    :param payload: the text that is kept: L{aileron.base.json.compact} of the event's payload.
    """
    return "sha256:" + hashlib.sha256(f"{salt}\n{payload}".encode()).hexdigest()


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


PRUNED = "audit.pruned"
"""The type of event that says up to which record the contents were deleted."""


@define(eq=False)
class ChainVerifier:
    """Knows how far a chain was found to hold, and goes on from there.

    :ivar last: the sequence of the last record that holds.
    :ivar head: its hash.
    :ivar gaps: the runs of records without contents, each as first and last sequence.
    :ivar excused: up to which sequence the record says that contents were deleted.
    """

    last: int = 0
    head: str = GENESIS
    excused: int = 0
    gaps: list[tuple[int, int]] = field(factory=list)

    @property
    def pruned(self) -> int:
        """The number of records that have no contents."""
        return sum(end - first + 1 for first, end in self.gaps)

    @property
    def unexcused(self) -> int | None:
        """The first record without contents of which the record does not say that they were deleted."""
        return next((max(first, self.excused + 1) for first, end in self.gaps if end > self.excused), None)

    def follow(self, rows: Sequence[Row]) -> int:
        """Check C{rows}, each of which must follow the one before.

        :return: how many hold; where that is not all, the next one does not.
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
        # guard of promise 6: a record's place is its number -> ChainTests.test_begun_later
        if row[0] != self.last + 1:
            return False
        # guard of promise 6: a hash is over the one before -> ChainTests.test_link_altered
        if before != self.head:
            return False
        try:
            is_bare = payload is None and salt is None
            # guard of promise 6: a payload is what was recorded -> ChainTests.test_altered
            # guard against attack: contents are held against their digest
            #    -> test_agent.RecordTests.test_while_none_runs
            if not is_bare and payload_digest(salt, payload) != digest:
                return False
            # guard of promise 6: a record's hash is its own -> ChainTests.test_altered, instead return True
            return bool(seal_row(self.head, row) == own)
        except ValueError:  # no Unicode
            return False

    def _widen(self, sequence: int) -> None:
        if self.gaps and self.gaps[-1][1] == sequence - 1:
            self.gaps[-1] = (self.gaps[-1][0], sequence)
        else:
            self.gaps.append((sequence, sequence))

    def _excuse(self, payload: str | None, sequence: int) -> None:
        """Take in what a record says of those before it; of those that come after it none can."""
        try:
            told = {} if payload is None else json.loads(payload)
        except (ValueError, RecursionError):  # of a strange file: such contents excuse nothing
            return
        up_to = told.get("up_to") if isinstance(told, dict) else None
        if type(up_to) is int and up_to < sequence:
            self.excused = max(self.excused, up_to)
