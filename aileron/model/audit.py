"""The events that go on record, a record as it was kept, and checkpoints: how far it had come, signed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeAlias

from attrs import field, frozen

from aileron.base.converter import differ, to_json
from aileron.base.json import JSON, digest


@frozen
class Actor:
    """The one who did it.

    :ivar type: C{agent}, C{human} or C{service}.
    :ivar id: the session's id, the operator session's public id, or C{aileron}.
    """

    type: str
    id: str


DAEMON = Actor("service", "aileron")


@frozen
class Event:
    """One thing that happened, before it is kept.

    :ivar id: a fresh ULID; it is the C{audit_id}.
    :ivar type: dotted, such as C{approval.requested}.
    :ivar payload: no secret; kept apart from the chain, salted.
    """

    id: str
    type: str
    at: datetime
    actor: Actor
    payload: Mapping[str, JSON] = field(factory=dict)
    run_id: str | None = None
    session_id: str | None = None
    action: str | None = None
    connector: str | None = None
    failure_class: str | None = None


@frozen
class EventName:
    """The words for one type of event, and the kind that it belongs to.

    :ivar kind: runs, approvals, sessions, setup or logins; empty if unknown.
    :ivar colour: of its chip.
    """

    words: str
    kind: str = ""
    colour: str = "quiet"


@frozen
class ChainLink:
    """The link of an event in the chain: all but the payload, of which only a salted digest."""

    sequence: int
    event: Event
    payload_digest: str


@frozen
class Record:
    """An event as it was kept.

    :ivar event: without its payload, where that was deleted by retention.
    :ivar hash: C{seal(previous_hash, link)}.
    :ivar salt: of the payload; L{None}: it was deleted.
    :ivar altered: whether somebody put another payload in the place of the one that was kept.
    """

    sequence: int
    event: Event
    previous_hash: str
    hash: str
    payload_digest: str
    salt: str | None
    altered: bool = False

    @property
    def pruned(self) -> bool:
        """True if the contents were deleted by retention."""
        return self.salt is None


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
    :ivar at: as L{aileron.base.json.timestamp} writes it.
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
