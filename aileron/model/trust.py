"""The files that the operator trusts, and the files on disk now."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen


class TrustKind(StrEnum):
    """The kinds of things that can be trusted."""

    ACTION = "action"
    CONNECTOR = "connector"
    CONFIG = "config"


@frozen
class Trusted:
    """The operator's trust in one file.

    :ivar name: the name of the action, of the connector (its FQN), or of a file such as C{config.yaml}.
    :ivar digest: C{sha256:…} of the bytes that the operator reviewed.
    :ivar enabled: True if an action may be offered. It is always true for other kinds.
    :ivar changed_by: the operator session that made the last change.
    """

    kind: TrustKind
    name: str
    digest: str
    changed_at: datetime
    changed_by: str
    enabled: bool = True


@frozen
class Candidate:
    """One valid file on disk, trusted or not.

    :ivar text: the whole text. C{digest} is the digest of its bytes.
    :ivar needs: the connectors that an action requires.
    :ivar lacks: the reasons why an action cannot run. Each completes a sentence that begins with "it".
    :ivar unasked: True if it is an action with a write that runs without an approval.
    """

    kind: TrustKind
    name: str
    digest: str
    path: str
    text: str = field(repr=False)
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    unasked: bool = False

    @property
    def key(self) -> tuple[TrustKind, str]:
        """The kind and name of the file, by which the operator's trust in it is found."""
        return self.kind, self.name


class TrustState(StrEnum):
    """The state of the file on disk compared with the trusted file."""

    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


@frozen
class TrustItem:
    """One file on disk, or a trusted file that no longer exists, as shown to the operator.

    :ivar candidate: the file on disk, or None if it no longer exists.
    :ivar trusted: the operator's trust, or None.
    :ivar before: the text that was trusted, if it differs and is still known.
    """

    state: TrustState
    kind: TrustKind
    name: str
    candidate: Candidate | None = None
    trusted: Trusted | None = None
    before: str | None = field(default=None, repr=False)


class Mark(StrEnum):
    """The result of verifying the mark (the vault's signature) of a stored decision.

    C{EARLIER}: the mark names a key that is not this vault's. The decision does not count, and no alarm is raised.
    """

    SOUND = "sound"
    EARLIER = "earlier"
    FALSE = "false"
