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
    """The operator's word about one file.

    :ivar name: of the action, of the connector (its FQN), or of a file such as C{config.yaml}.
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
    """One sound file as it is on disk, trusted or not.

    :ivar text: all of it; C{digest} is of its bytes.
    :ivar needs: of an action, the connectors that it requires.
    :ivar lacks: why an action cannot run, each as the end of a sentence that begins with "it".
    :ivar unasked: whether it is an action that changes something and runs without an approval.
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
        """The kind and name under which it is trusted."""
        return self.kind, self.name


class TrustState(StrEnum):
    """The state of the file on disk against what is trusted."""

    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


@frozen
class TrustItem:
    """One file, or the memory of one, as the operator is asked about it.

    :ivar candidate: the file on disk; L{None}: it no longer exists.
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
    """The judgement of a mark under a row.

    C{EARLIER}: made under a key that is no longer this vault's, or says so; it decides nothing and alarms nobody.
    """

    SOUND = "sound"
    EARLIER = "earlier"
    FALSE = "false"
