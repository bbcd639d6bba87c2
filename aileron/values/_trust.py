"""What the operator has read and trusts, and what lies there now."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen


class TrustKind(StrEnum):
    """What can be trusted."""

    ACTION = "action"
    CONNECTOR = "connector"
    CONFIG = "config"


@frozen
class Trusted:
    """The operator's word about one file.

    :ivar name: of the action, of the connector (its FQN), or C{config.yaml}.
    :ivar digest: C{sha256:…} of the bytes that were read.
    :ivar enabled: whether an action may be offered; of other kinds always true.
    :ivar changed_by: the operator session.
    """

    kind: TrustKind
    name: str
    digest: str
    changed_at: datetime
    changed_by: str
    enabled: bool = True


@frozen
class Candidate:
    """One sound file as it lies there, whether anybody trusts it or not.

    :ivar text: all of it; C{digest} is of its bytes.
    """

    kind: TrustKind
    name: str
    digest: str
    path: str
    text: str = field(repr=False)


class TrustState(StrEnum):
    """How what lies there stands to what is trusted."""

    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


@frozen
class TrustItem:
    """One file, or the memory of one, as the operator is asked about it.

    :ivar candidate: what lies there; L{None}: nothing does any more.
    :ivar trusted: what was trusted, if anything was.
    :ivar before: the text that was trusted, where it is another and is still known.
    """

    state: TrustState
    kind: TrustKind
    name: str
    candidate: Candidate | None = None
    trusted: Trusted | None = None
    before: str | None = field(default=None, repr=False)


class Mark(StrEnum):
    """What a mark under a row turns out to be.

    C{EARLIER}: made under a key that is no longer this vault's, or says so; it decides nothing and alarms nobody.
    """

    SOUND = "sound"
    EARLIER = "earlier"
    FALSE = "false"
