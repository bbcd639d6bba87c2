"""Makes standing grants for the operator, shows them and takes them back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from attrs import define, evolve
from twisted.logger import Logger
from zope.interface import implementer

from aileron.errors import AileronError, InvalidRequest, NotFound, VaultLocked
from aileron.interfaces import IGrants, IGrantService, IVault
from aileron.runner.approval.gate import ApprovalGate
from aileron.runner.approval.requests import ApprovalRequests
from aileron.runner.runs.plan import Plan
from aileron.runner.runs.preview import Preview
from aileron.runner.runs.repository import RunRepository
from aileron.runner.scheduling import Tasks
from aileron.values import (
    JSON,
    Actor,
    Approval,
    Decision,
    Event,
    Grant,
    GrantState,
    NewGrant,
    Predicate,
    PredicateKind,
    Run,
    StandingGrant,
    timestamp,
)

from .matcher import GrantMatcher, bounds_of_plan, collect_bounds, describe_changes
from .predicates import array, parse_domain
from .validation import select_exact, validate_grant

_log = Logger()


@implementer(IGrantService)
@define(eq=False)
class GrantService:
    """Puts a grant on record, keeps it in the vault, then approves its call: none is in force unread.

    :param note: remembers that the vault has come further, else whoever puts back its file has again what was revoked.
    """

    _grants: IGrants
    _vault: IVault
    _runs: RunRepository
    _gate: ApprovalGate
    _matcher: GrantMatcher
    _requests: ApprovalRequests
    _note: Callable[[], Awaitable[None]]
    _tasks: Tasks

    async def approve(
        self, run_id: str, decision: Decision, wish: NewGrant, preview: Preview | None
    ) -> tuple[Approval, Grant]:
        """Issue a grant, then approve the call; where that fails, take the grant back.

        See L{IDecisions.approve_and_grant} for its contract.

        :param preview: as for L{ApprovalGate.decide}.
        """
        approval = await self._gate.open(run_id, decision.digest)
        self._gate.refuse_unsigned(approval, decision)
        plan = self._requests.plan(approval.run)
        grant = self._new(approval.run, plan, self._checked(wish, approval.run, plan), decision.decided_by)
        actor = Actor("human", decision.decided_by)
        await self._runs.audit.append(self._event("grant.issued", grant, actor, **_describe(grant)))
        self._grants.put(grant)
        decided = False
        try:
            approved = await self._gate.decide(run_id, decision, preview)
            decided = True
        finally:
            if not decided:
                await self._take_back(grant, actor)
        return approved, grant

    async def grants(self) -> tuple[StandingGrant, ...]:
        """List the grants in the vault, each with whether it allows anything now."""
        if not self._vault.ever_unlocked():
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": self._vault.state().value})
        self._requests.planner.offerings.refresh()
        self._matcher.end_what_is_over()
        return tuple([await self._shown(grant) for grant in self._grants.all()])

    async def grant(self, grant_id: str) -> StandingGrant:
        """Return one of L{grants}."""
        for shown in await self.grants():
            if shown.grant.id == grant_id:
                return shown
        raise NotFound("There is no such grant.", {"grant": grant_id})

    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """Revoke a grant, in the vault first and then on record.

        In this order it ends at once, even if the database cannot be written.
        """
        return await self._tasks.shielded(self._revoke(grant_id, actor))

    async def _revoke(self, grant_id: str, actor: Actor) -> StandingGrant:
        before = (await self.grant(grant_id)).grant
        revoked = self._grants.revoke(grant_id, self._runs.events.now())
        await self._note()
        if before.revoked_at is None:
            await self._runs.audit.append(self._event("grant.revoked", revoked, actor, left=revoked.left))
        return await self._shown(revoked)

    def _checked(self, wish: NewGrant, run: Run, plan: Plan) -> NewGrant:
        if wish.session and run.session_id is None:
            problem = "/grant/session", "the call has no session: grant it to all"
            raise InvalidRequest.listing("This cannot be granted.", problem)
        return validate_grant(
            wish, plan.arguments, [given.name for given in plan.action.inputs], self._runs.events.now()
        )

    def _new(self, run: Run, plan: Plan, wish: NewGrant, made_by: str) -> Grant:
        return Grant(
            id=self._runs.events.fresh_id(),
            action=plan.action.name,
            predicates=wish.predicates,
            exact=select_exact(wish.predicates, plan.arguments),
            uses=wish.uses,
            not_after=wish.not_after,
            bound=bounds_of_plan(plan),
            run_id=run.id,
            made_at=self._runs.events.now(),
            made_by=made_by,
            session_id=run.session_id if wish.session else None,
        )

    async def _take_back(self, grant: Grant, actor: Actor) -> None:
        """The call was not approved after all, so nothing is granted."""
        try:
            self._grants.revoke(grant.id, self._runs.events.now())
            await self._note()
            await self._runs.audit.append(self._event("grant.revoked", grant, actor, left=grant.left))
        except AileronError as error:
            _log.error(
                "the grant {grant} stands, and its call was not approved: {why}", grant=grant.id, why=error.message
            )

    async def _shown(self, grant: Grant) -> StandingGrant:
        state = grant.state(self._runs.events.now())
        why = self._suspension(grant) if state is GrantState.LIVE else None
        if why is not None:
            await self._matcher.note_suspended(grant, why)
        return StandingGrant(grant, state, why)

    def _suspension(self, grant: Grant) -> str | None:
        try:
            action = self._requests.planner.offerings.find(grant.action).action
            return describe_changes(grant.bound, collect_bounds(action, *self._requests.planner.unfilled(action)))
        except AileronError as error:
            return f"It cannot be used now: {error.message}"

    def _event(self, type_: str, grant: Grant, actor: Actor, **payload: JSON) -> Event:
        event = self._runs.events.of_home(type_, actor, grant=grant.id, **payload)
        return evolve(event, action=grant.action, session_id=grant.session_id)


def _describe(grant: Grant) -> Mapping[str, JSON]:
    """What the record says of a new grant: all that it allows."""
    return {
        "run": grant.run_id,
        "predicates": [each.as_json() for each in grant.predicates],
        "exact": grant.exact,
        "uses": grant.uses,
        "not_after": timestamp(grant.not_after),
        "session": grant.session_id,
        "bound": dict(grant.bound),
    }


def suggest_predicates(approval: Approval) -> tuple[Predicate, ...]:
    """Suggest what could be granted of the arguments of C{approval}: the same recipients' domains."""
    found = ((name, _domains(value)) for name, value in approval.run.arguments.items())
    return tuple(Predicate(name, PredicateKind.DOMAIN, domains) for name, domains in found if domains)


def _domains(value: JSON) -> list[JSON]:
    """The domains of a mail address, or of an array of them; empty where it is anything else."""
    addresses = [value] if isinstance(value, str) else array(value)
    found = [parse_domain(each) if isinstance(each, str) else None for each in addresses]
    return [*sorted({domain for domain in found if domain is not None})] if all(found) else []
