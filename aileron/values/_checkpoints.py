"""Checkpoints: how far the record had come, signed; and what a look at the whole of it found."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeAlias

from attrs import field, frozen

from ._converter import differ, to_json
from ._json import JSON, digest

NO_CHECKPOINT = "sha256:" + "0" * 64
"""What the first checkpoint names as the one before it."""

_TAG = "aileron.checkpoint.v1"

Row: TypeAlias = tuple[Any, ...]
"""One record as columns, in the order of L{ROW}; salt and payload are L{None} where the contents were deleted."""

ROW = (
    "sequence",
    "id",
    "type",
    "at",
    "actor_type",
    "actor_id",
    "run_id",
    "session_id",
    "action",
    "connector",
    "failure_class",
    "payload_digest",
    "previous_hash",
    "hash",
    "salt",
    "payload",
)


@frozen
class Checkpoint:
    """A statement that the record had come to C{sequence} with the hash C{head}; every record up to there hangs on it.

    :ivar vault: the id of the vault that holds the private key.
    :ivar at: as L{aileron.values.timestamp} writes it.
    :ivar previous: L{digest} of the checkpoint before it, or L{NO_CHECKPOINT}.
    :ivar key: the Ed25519 public key, in hexadecimal.
    :ivar signature: over L{statement} in the form of RFC 8785, in hexadecimal; empty until it is signed.
    """

    vault: str
    sequence: int
    head: str
    at: str
    previous: str
    key: str
    signature: str = ""

    def statement(self) -> dict[str, JSON]:
        """Write what is signed."""
        return {name: value for name, value in to_json(self).items() if name != "signature"} | {"tag": _TAG}

    @property
    def digest(self) -> str:
        """The digest of the statement, as the next one names it."""
        return digest(self.statement())


@frozen
class Break:
    """The first thing in a record that does not hold.

    :ivar kind: C{altered removed reordered inserted rewritten truncated checkpoint unreadable}.
    :ivar sequence: of the first record it is about.
    :ivar why: a sentence for a person.
    """

    kind: str
    sequence: int
    why: str


@frozen
class Verdict:
    """The result of a look at a record.

    :ivar first: the sequence of the first record that was looked at.
    :ivar last: of the last one that holds.
    :ivar head: its hash.
    :ivar pruned: how many have no contents any more, by retention.
    :ivar checkpoints: how many are there.
    :ivar signed: up to which sequence the checkpoints, or those of the anchor, answer for the chain.
    :ivar covered: the same, where the vault or the daemon answers for more.
    :ivar keys: that signed checkpoints, in hexadecimal, in the order of their first use.
    :ivar compared: whether these were held against keys that the caller brought.
    :ivar anchored: how many checkpoints the caller's anchor held.
    :ivar broken: what does not hold, or L{None}: all does.
    """

    first: int
    last: int
    head: str
    pruned: int
    checkpoints: int
    signed: int
    covered: int
    keys: tuple[str, ...]
    compared: bool
    anchored: int
    broken: Break | None

    @property
    def unsigned(self) -> int:
        """The number of the newest records that are not signed yet."""
        return self.last - max(self.signed, self.first - 1)

    @property
    def sound(self) -> bool:
        """True if all holds."""
        return self.broken is None


differ(Verdict, computed={"sound": attrgetter("sound")})


@frozen
class LockedPeriod:
    """A part of the record that is written while the vault is locked, so that nothing can be signed.

    :ivar key: the first of its keys, each of which is made from the one before and takes its place.
    """

    id: str
    key: bytes = field(repr=False)


@frozen
class Maced:
    """A record's hash, and the MAC over it, if it has one."""

    sequence: int
    hash: str
    period: str | None
    mac: bytes | None
