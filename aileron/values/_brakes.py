"""What the operator, or an agent for itself, has put between approved runs and their effects."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from ._actions import Cap
from ._runs import Run


@frozen
class Pause:
    """Nothing begins until the operator lifts it.

    :ivar by: the operator session, or the agent's.
    :ivar session_id: whose runs alone; L{None}: everybody's.
    """

    since: datetime
    by: str
    reason: str | None = None
    session_id: str | None = None


@frozen
class Halt:
    """A pause at the moment when it took hold.

    :ivar under_way: what had begun by then, and goes on.
    """

    pause: Pause
    under_way: tuple[Run, ...] = ()


@frozen
class OwnCap:
    """A cap of the operator's own.

    :ivar action: L{None}: all actions together.
    """

    cap: Cap
    set_at: datetime
    set_by: str
    action: str | None = None

    @property
    def name(self) -> tuple[str, str, bool, float]:
        """What there is one cap for."""
        return self.action or "", self.cap.argument or "", self.cap.per_session, self.cap.seconds
