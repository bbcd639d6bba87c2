"""Decides whether a call may be taken and whether effects may begin, apart from the decision on a run."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from aileron.errors import VaultLocked
from aileron.interfaces import IVault
from aileron.runner.runs.plan import Plan
from aileron.values import JSON, Action, Session, VaultState

from .caps import Caps
from .denials import Denials
from .pauses import Pauses


@frozen(eq=False)
class Limits:
    """Admits calls that nothing stops: no pause, no limit, no earlier denial, no loop."""

    effects: EffectGate
    caps: Caps
    denials: Denials

    async def learn(self) -> None:
        """At the start: what an earlier life left.

        :raises StoreUnavailable: it cannot be read.
        """
        await self.effects.pauses.learn()
        await self.denials.learn()

    def admit(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass only a call that may be taken; the operator's own is stopped by a pause alone.

        :raises Paused, LimitExceeded, ApprovalDenied: it may not be now.
        """
        self.effects.pauses.refuse(None if session is None else session.id)
        if session is not None:
            self.denials.admit(session, action, arguments)

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Refuse a call for which a limit is full; as L{Caps.refuse_full}."""
        await self.caps.refuse_full(plan, arguments, session_id)


@define(eq=False)
class EffectGate:
    """Tells whether effects may begin now.

    :ivar pauses: what is paused, though the vault be open.
    :ivar could_act: whether the last look found that they may; C{False} has the next look take up what waits.
    """

    _vault: IVault
    pauses: Pauses
    could_act: bool = field(default=False, init=False)
    _held: bool = field(default=False, init=False)

    def may_act(self) -> bool:
        """Return whether effects may begin now: the vault is unlocked, and nothing is held."""
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def hold(self) -> None:
        """Let none begin any more in this life."""
        self._held = True

    def missed(self) -> None:
        """The vault could not be used: have the next look take up what waits for it."""
        self.could_act = False

    def require(self) -> None:
        """Pass only where effects may begin now.

        :raises VaultLocked: they may not.
        """
        if not self.may_act():
            state = self._vault.state().value
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": state})
