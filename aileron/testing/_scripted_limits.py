"""The pauses, caps and grants of a runner for tests. They are stored but not enforced."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import define, evolve, field

from aileron.model.audit import Actor
from aileron.model.authority import (
    Grant,
    GrantState,
    Halt,
    NewGrant,
    OwnCap,
    Pause,
    Predicate,
    PredicateKind,
    StandingGrant,
)
from aileron.model.errors import Conflict, InvalidRequest, NotFound
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Card
from aileron.model.runs import Approval, Decision, Run, RunState


@define
class ScriptedLimits:
    """Stores pauses, caps and grants. Mix into a runner for tests that stores runs.

    :ivar suspended: by action, the reason why its grants do not apply.
    :ivar shown_cards: by run, the cards that describe what its approval would send.
    """

    suspended: dict[str, str] = field(factory=dict, kw_only=True)
    shown_cards: dict[str, tuple[Card, ...]] = field(factory=dict, kw_only=True)
    _pauses: dict[str | None, Pause] = field(factory=dict, init=False)
    _caps: dict[tuple[str, str, bool, float], OwnCap] = field(factory=dict, init=False)
    _made: dict[str, Grant] = field(factory=dict, init=False)

    @abstractmethod
    async def runs(self, query: RunQuery) -> Page[Run]:
        """Return a page of runs. The runner that this class is mixed into implements this."""

    @abstractmethod
    def finish(self, run_id: str, state: RunState, **changes: Any) -> Run:
        """Set the state of a run, and return the run. The runner that this class is mixed into implements this."""

    @abstractmethod
    def _now(self) -> datetime:
        """Return the clock's time."""

    @abstractmethod
    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        """Return one approval. The runner that this class is mixed into implements this.

        :raises NotFound: if there is no such approval.
        """

    @abstractmethod
    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """Record a decision. The runner that this class is mixed into implements this."""

    async def count(self, query: RunQuery) -> int:
        """Return the number of runs that C{runs} returns for the query."""
        return len((await self.runs(query)).items)

    async def most_used(self, limit: int) -> tuple[str, ...]:
        """Return the actions with the most completed runs."""
        done = (await self.runs(RunQuery((RunState.COMPLETED,)))).items
        uses = Counter(run.action for run in done)
        return tuple(sorted(uses, key=lambda name: (-uses[name], name))[:limit])

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Return the approval of a denied run. The scripted runner lifts no denial.

        :raises Conflict: if the run was not denied.
        :raises NotFound: if there is no such approval.
        """
        approval = await self.approval(run_id)
        if approval.run.state is not RunState.DENIED:
            raise Conflict("It was not denied.", {"state": approval.run.state.value})
        return approval

    def pauses(self) -> tuple[Pause, ...]:
        """Return the pauses in the order in which they were set."""
        return tuple(self._pauses.values())

    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """Store a pause unless there is one, and return it with the executing runs.

        The scripted runner does not enforce it.
        """
        pause = self._pauses.setdefault(session_id, Pause(self._now(), actor.id, reason, session_id))
        return Halt(pause, (await self.runs(RunQuery((RunState.EXECUTING,)))).items)

    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """Remove a pause, make the approved runs pending again, and return these runs; empty if there was no pause."""
        if self._pauses.pop(session_id, None) is None:
            return ()
        approved = (await self.runs(RunQuery((RunState.APPROVED,), session_id))).items
        return tuple(self.finish(run.id, RunState.PENDING) for run in approved)

    def caps(self) -> tuple[OwnCap, ...]:
        """Return the caps in the order of their names."""
        return tuple(self._caps[name] for name in sorted(self._caps))

    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Store caps, and return them with the present time and the actor."""
        fresh = {each.name: evolve(each, set_at=self._now(), set_by=actor.id) for each in caps}
        self._caps |= fresh
        return tuple(fresh.values())

    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        """Remove a cap.

        :raises NotFound: if there is no such cap.
        """
        if self._caps.pop(which.name, None) is None:
            raise NotFound("There is no such limit.")

    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve a run, store a grant, and return both.

        :raises InvalidRequest: if the grant has no uses. No other grant is refused.
        """
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
        """Return all grants."""
        return tuple(map(self._make_standing, self._made.values()))

    async def grant(self, grant_id: str) -> StandingGrant:
        """Return one grant.

        :raises NotFound: if there is no such grant.
        """
        if grant_id not in self._made:
            raise NotFound("There is no such grant.")
        return self._make_standing(self._made[grant_id])

    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """Mark a grant as revoked, preserving an earlier time, and return it.

        :raises NotFound: if there is no such grant.
        """
        grant = (await self.grant(grant_id)).grant
        self._made[grant_id] = evolve(grant, revoked_at=grant.revoked_at or self._now())
        return await self.grant(grant_id)

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        """Return what the test put into C{shown_cards} for the approval's run, or nothing."""
        return self.shown_cards.get(approval.run.id, ())

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        """Return a suggested predicate for a grant: the domain of each argument that contains an at sign."""
        found = ((name, value) for name, value in approval.run.arguments.items() if isinstance(value, str))
        return tuple(
            Predicate(name, PredicateKind.DOMAIN, [text.rpartition("@")[2]]) for name, text in found if "@" in text
        )

    def _make_standing(self, grant: Grant) -> StandingGrant:
        state = grant.state(self._now())
        return StandingGrant(grant, state, self.suspended.get(grant.action) if state is GrantState.LIVE else None)
