"""Lets the operator govern what may run, and settle what nobody knows the end of; no write ends with its caller."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define
from zope.interface import implementer

from aileron.interfaces import IGovernance
from aileron.runner.grants.service import GrantService
from aileron.runner.limits.admission import Limits
from aileron.runner.reconciliation.reconciler import Reconciler
from aileron.runner.reconciliation.rerun import Rerun
from aileron.runner.scheduling import Tasks
from aileron.values import (
    Actor,
    Approval,
    Finding,
    Halt,
    Offer,
    OwnCap,
    Pause,
    Run,
    StandingGrant,
    TrustItem,
    TrustKind,
)

from ._pausing import PauseService
from ._termination import RunTermination
from ._trust import TrustService


@implementer(IGovernance)
@define(eq=False)
class GovernanceService:
    """Shields what the operator does from a caller that leaves between a commit and what follows from it."""

    _trust: TrustService
    _grants: GrantService
    _pausing: PauseService
    _limits: Limits
    _termination: RunTermination
    _reconciler: Reconciler
    _rerun: Rerun
    _tasks: Tasks

    # what may be run -------------------------------------------------------------------------

    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        """See L{IGovernance.set_enabled}."""
        return await self._tasks.shielded(self._trust.set_enabled(name, enabled, actor))

    async def trust_items(self) -> tuple[TrustItem, ...]:
        """See L{IGovernance.trust_items}."""
        return await self._trust.items()

    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """See L{IGovernance.trust}."""
        return await self._tasks.shielded(self._trust.trust(items, actor))

    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        """See L{IGovernance.distrust}."""
        await self._tasks.shielded(self._trust.distrust(kind, name, actor))

    async def grants(self) -> tuple[StandingGrant, ...]:
        """See L{IGovernance.grants}."""
        return await self._grants.all()

    async def grant(self, grant_id: str) -> StandingGrant:
        """See L{IGovernance.grant}."""
        return await self._grants.one(grant_id)

    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """See L{IGovernance.revoke_grant}."""
        return await self._tasks.shielded(self._grants.revoke(grant_id, actor))

    # what keeps runs from beginning ----------------------------------------------------------

    async def hold(self) -> None:
        """See L{IGovernance.hold}."""
        self._pausing.hold()
        self._reconciler.stop()
        await self._tasks.at_rest()

    def pauses(self) -> tuple[Pause, ...]:
        """See L{IGovernance.pauses}."""
        return self._limits.pauses.all()

    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """See L{IGovernance.pause}."""
        return await self._tasks.shielded(self._pausing.pause(session_id, reason, actor))

    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """See L{IGovernance.resume}."""
        return await self._tasks.shielded(self._pausing.resume(session_id, actor))

    def caps(self) -> tuple[OwnCap, ...]:
        """See L{IGovernance.caps}."""
        return self._limits.caps.own()

    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """See L{IGovernance.set_caps}."""
        return await self._tasks.shielded(self._limits.caps.put(caps, actor))

    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        """See L{IGovernance.remove_cap}."""
        await self._tasks.shielded(self._limits.caps.remove(which, actor))

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """See L{IGovernance.forgive}."""
        return await self._tasks.shielded(self._limits.denials.forgive(run_id, actor))

    # what is in doubt ------------------------------------------------------------------------

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """See L{IGovernance.settle}."""
        return await self._tasks.shielded(self._termination.settle(run_id, happened, note, actor))

    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """See L{IGovernance.find_out}."""
        return await self._tasks.shielded(self._reconciler.find_out(run_id, actor))

    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """See L{IGovernance.run_again}."""
        return await self._tasks.shielded(self._rerun.run_again(run_id, note, actor))
