"""The brakes between a call and its effect beside a decision: pauses, the operator's own caps, and limits."""

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
        """The key of which there is one cap."""
        return self.action or "", self.cap.argument or "", self.cap.per_session, self.cap.seconds


@frozen
class PendingLimits:
    """The limits on approvals that wait at once."""

    per_session: int = 20
    per_home: int = 200
    per_action: int = 50


@frozen
class LoopLimits:
    """The limits that stop an agent that goes on and on.

    :ivar denials: of one session within ten minutes.
    :ivar denials_of_action: of one action within ten minutes, whatever the session.
    :ivar same_calls: of one session within a minute, with the same arguments.
    :ivar same_calls_of_all: the same, whatever the session.
    :ivar writes_an_hour: of one session and action that nobody approves, unless another hourly limit is said.
    """

    denials: int = 5
    denials_of_action: int = 10
    same_calls: int = 30
    same_calls_of_all: int = 90
    writes_an_hour: int | None = 60
