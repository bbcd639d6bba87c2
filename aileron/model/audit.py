"""Audit events, the records that store them, and checkpoints, which are signatures over all records so far."""

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
    """The agent, person or service that caused an audit event.

    :ivar type: C{agent}, C{human} or C{service}.
    :ivar id: for an agent the session's id, for a person the operator session's public id, and for a service its name:
        C{aileron} for the daemon, C{grant:…} for a grant that approved a run, or C{local} or C{launch} for a caller
        without a session. The public id of a login with an account begins with the account's name and a dot.
    """

    type: str
    id: str

    @property
    def person(self) -> str | None:
        """The name of the account that acted, or None if the operator, an agent or a service did."""
        name, dot, _ = self.id.partition(".")
        return name if self.type == "human" and dot else None


DAEMON = Actor("service", "aileron")


@frozen
class Event:
    """One event before it is recorded.

    :ivar id: a new ULID, which becomes the C{audit_id}.
    :ivar type: a dotted name, such as C{approval.requested}.
    :ivar payload: the contents, without secrets. They are stored salted and apart from the chain.
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
    """The label of one type of event, and the kind of events that it belongs to.

    :ivar kind: runs, approvals, sessions, setup or logins; empty if unknown.
    :ivar colour: the colour of the event's label on pages.
    """

    words: str
    kind: str = ""
    colour: str = "quiet"


@frozen
class ChainLink:
    """The link of an event in the hash chain: all its fields, but of its payload only a salted digest."""

    sequence: int
    event: Event
    payload_digest: str


@frozen
class Record:
    """A recorded event with its links in the hash chain.

    :ivar event: the event, without its payload if retention deleted that.
    :ivar hash: C{seal(previous_hash, link)}.
    :ivar salt: the salt of the payload, or None if the payload was deleted.
    :ivar altered: True if the stored payload is not the one that was recorded.
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
        """True if the contents of the record were deleted because they were older than configured."""
        return self.salt is None


NO_CHECKPOINT = "sha256:" + "0" * 64
"""The previous digest that the first checkpoint names."""

_TAG = "aileron.checkpoint.v1"

Row: TypeAlias = tuple[Any, ...]
"""One record as columns, in the order of L{ROW}. Salt and payload are None if the contents were deleted."""

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
    """A signed statement that the audit log had reached record C{sequence} with the hash C{head}.

    It covers every earlier record.

    :ivar vault: the id of the vault that contains the private key.
    :ivar at: the time, as written by L{aileron.base.json.timestamp}.
    :ivar previous: the L{digest} of the previous checkpoint, or L{NO_CHECKPOINT}.
    :ivar key: the Ed25519 public key, in hexadecimal.
    :ivar signature: the signature of L{statement} in RFC 8785 form, in hexadecimal, or empty before it is signed.
    """

    vault: str
    sequence: int
    head: str
    at: str
    previous: str
    key: str
    signature: str = ""

    def statement(self) -> dict[str, JSON]:
        """Return the checkpoint as the JSON that its signature is computed over."""
        return {name: value for name, value in to_json(self).items() if name != "signature"} | {"tag": _TAG}

    @property
    def digest(self) -> str:
        """The SHA-256 of the checkpoint's statement. The next checkpoint contains it."""
        return digest(self.statement())


@frozen
class Break:
    """The first invalid part of an audit log.

    :ivar kind: C{altered removed reordered inserted rewritten truncated checkpoint unreadable decision}.
    :ivar sequence: the sequence of the first record concerned.
    :ivar why: the reason, as a sentence for people.
    """

    kind: str
    sequence: int
    why: str


@frozen
class Verdict:
    """The result of verifying an audit log.

    :ivar first: the sequence of the first record that was verified.
    :ivar last: the sequence of the last valid record.
    :ivar head: the hash of the last valid record.
    :ivar pruned: the number of records whose contents retention deleted.
    :ivar checkpoints: the number of checkpoints.
    :ivar signed: the sequence up to which signed checkpoints prove the chain: those of the record or of the anchor.
    :ivar covered: the sequence up to which the chain is proved, also by the vault or the daemon.
    :ivar keys: the keys that signed checkpoints, in hexadecimal, in the order of first use.
    :ivar compared: True if C{keys} were compared with keys that the caller passed.
    :ivar anchored: the number of checkpoints in the caller's anchor.
    :ivar broken: the first invalid part, or None if the record is valid.
    :ivar proved: the number of decisions that the signature of an enrolled key proves.
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
    proved: int = 0

    @property
    def unsigned(self) -> int:
        """The number of the newest records that are not signed yet."""
        return self.last - max(self.signed, self.first - 1)

    @property
    def sound(self) -> bool:
        """True if all records of the audit log are valid."""
        return self.broken is None


differ(Verdict, computed={"sound": attrgetter("sound")})


@frozen
class LockedPeriod:
    """A part of the audit log that was written while the vault was locked, so that it could not be signed.

    :ivar key: the first key for the MACs of the records. Each later key is derived from the previous key and replaces
        it.
    """

    id: str
    key: bytes = field(repr=False)


@frozen
class Maced:
    """The hash of a record, and its MAC, or None if the record was written while the vault was unlocked."""

    sequence: int
    hash: str
    period: str | None
    mac: bytes | None
