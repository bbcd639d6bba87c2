"""Standing grants of the scripted runner: kept as they were asked for, allowing nothing."""

from __future__ import annotations

from datetime import datetime

from attrs import define, evolve, field

from aileron.errors import InvalidRequest, NotFound
from aileron.values import (
    Actor,
    Approval,
    Decision,
    Grant,
    GrantState,
    NewGrant,
    Predicate,
    PredicateKind,
    StandingGrant,
)


@define(slots=False)
class ScriptedGrants:
    """Mix into a runner that decides.

    :ivar suspended: why the grants of an action allow nothing, by the action.
    """

    suspended: dict[str, str] = field(factory=dict, kw_only=True)
    _made: dict[str, Grant] = field(factory=dict, kw_only=True)

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """Decide an approval; the runner that this is mixed into does so."""
        raise NotImplementedError

    def _now(self) -> datetime:
        raise NotImplementedError

    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve and grant; what it refuses are uses of none."""
        if wish.uses < 1:
            raise InvalidRequest.listing("This cannot be granted.", ("/uses", "must be 1 to 1000"))
        approval = await self.decide(run_id, decision)
        run, now = approval.run, self._now()
        named = {predicate.argument for predicate in wish.predicates}
        exact = {name: value for name, value in run.arguments.items() if name not in named}
        session_id = run.session_id if wish.session else None
        bound = {"the action's file": run.manifest_digest}
        grant = Grant(f"grant-{len(self._made) + 1}", run.action, wish.predicates, exact, wish.uses, wish.not_after,
                      bound, run.id, now, decision.decided_by, session_id)  # fmt: skip
        self._made[grant.id] = grant
        return approval, grant

    async def grants(self) -> tuple[StandingGrant, ...]:
        """List the grants in memory."""
        return tuple(map(self._standing, self._made.values()))

    async def grant(self, grant_id: str) -> StandingGrant:
        """Return one grant from memory."""
        if grant_id not in self._made:
            raise NotFound("There is no such grant.")
        return self._standing(self._made[grant_id])

    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """Mark a grant as revoked; the first time stays."""
        grant = (await self.grant(grant_id)).grant
        self._made[grant_id] = evolve(grant, revoked_at=grant.revoked_at or self._now())
        return await self.grant(grant_id)

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        """Whatever has an at sign is an address."""
        found = ((name, value) for name, value in approval.run.arguments.items() if isinstance(value, str))
        return tuple(
            Predicate(name, PredicateKind.DOMAIN, [text.rpartition("@")[2]]) for name, text in found if "@" in text
        )

    def _standing(self, grant: Grant) -> StandingGrant:
        state = grant.state(self._now())
        return StandingGrant(grant, state, self.suspended.get(grant.action) if state is GrantState.LIVE else None)
