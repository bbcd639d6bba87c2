"""The events that go on record, and a record as it was kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from ._json import JSON


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
