"""What stands between a call and its beginning, but for the decision on it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.runner.runs.plan import Plan
from aileron.values import JSON, Action, Session

from .caps import Caps
from .denials import Denials
from .pauses import Pauses


@frozen(eq=False)
class Limits:
    """All brakes of a runner."""

    pauses: Pauses
    caps: Caps
    denials: Denials

    async def learn(self) -> None:
        """At the start: what an earlier life left.

        :raises StoreUnavailable: it cannot be read.
        """
        await self.pauses.learn()
        await self.denials.learn()

    def admit(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass only a call that may be taken; the operator's own is stopped by a pause alone.

        :raises Paused, LimitExceeded, ApprovalDenied: it may not be now.
        """
        self.pauses.refuse(None if session is None else session.id)
        if session is not None:
            self.denials.admit(session, action, arguments)

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """See L{Caps.refuse_full}."""
        await self.caps.refuse_full(plan, arguments, session_id)
