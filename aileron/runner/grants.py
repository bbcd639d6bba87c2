"""Approves calls that a standing grant allows, and issues, shows and revokes grants for the operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from attrs import define, evolve, field
from twisted.logger import Logger
from zope.interface import implementer

from aileron.base.converter import to_json
from aileron.base.json import JSON, timestamp
from aileron.model.audit import Actor, Event
from aileron.model.authority import Grant, GrantState, NewGrant, StandingGrant
from aileron.model.errors import AileronError, Conflict, InvalidRequest, NotFound, VaultLocked
from aileron.model.interfaces.authority import IGrants
from aileron.model.interfaces.governance import IGrantService
from aileron.model.interfaces.vault import IVault
from aileron.model.reviews import Preview, PreviewStatus
from aileron.model.runs import Approval, Decision, Run, RunState, Transition

from .approvals import ApprovalGate
from .decisions import get_decider, name_decider
from .effect_gate import EffectGate
from .grant_terms import (
    allows,
    bounds_of_plan,
    collect_bounds,
    describe_changes,
    select_exact,
    validate_grant,
)
from .plan import Plan, Planner
from .runs import RunRepository
from .tasks import KeyedLocks, Tasks, shielded

ALLOWED = "Allowed by a standing grant."
"""The message to the caller of a call that needed no approval."""

_NOTHING = (0, "")
_log = Logger()

Keep = Callable[[Sequence[Transition]], Awaitable[tuple[Run, bool]]]


@define(eq=False)
class GrantMatcher:
    """Approves calls that a standing grant of the operator allows.

    :param remember: stores the vault's new revision after a use of a grant was counted and before the run begins.
        Otherwise a restored older vault would allow the use again unnoticed.
    """

    _grants: IGrants
    _runs: RunRepository
    _gate: ApprovalGate
    _planner: Planner
    _effects: EffectGate
    _locks: KeyedLocks
    _remember: Callable[[], Awaitable[None]]
    _actions: KeyedLocks = field(factory=KeyedLocks, init=False)
    _noted: set[tuple[str, str]] = field(factory=set, init=False)

    async def keep(self, run: Run, plan: Plan, asked: Transition, keep: Keep) -> tuple[Run, bool]:
        """Store a gated run as pending, or as approved if a grant allows it.

        A run with a preview is stored as pending. L{previewed} decides it when the preview has arrived.

        :param asked: the transition that requests the approval.
        :param keep: stores the run with the given transitions.
        :return: the stored run, and whether it is new. See L{IRuns.receive}.
        """
        if plan.preview is not None or not self._may_allow(run):
            return await keep([asked])
        # One call at a time: two concurrent calls with one idempotency key must not cost two uses.
        return await self._actions.run(run.action, lambda: self._keep(run, plan, asked, keep))

    async def previewed(self, run_id: str) -> Run | None:
        """Approve a pending run whose preview has arrived, if a grant allows it.

        :return: the approved run, or None if a person must decide.
        :raises StateConflict, ApprovalStale: if the run was decided or its approval replaced meanwhile.
        :raises AileronError: if the run cannot be planned now.
        """
        return await self._locks.run(run_id, lambda: self._previewed(run_id))

    async def note_suspended(self, grant: Grant, why: str) -> None:
        """Record that a grant is suspended, once for each reason while the daemon runs.

        :param why: the reason, in a sentence.
        """
        if (grant.id, why) not in self._noted:
            self._noted.add((grant.id, why))
            event = self._runs.event_of_home("grant.suspended", grant=grant.id, reason=why)
            await self._runs.record(evolve(event, action=grant.action, session_id=grant.session_id))

    async def _keep(self, run: Run, plan: Plan, asked: Transition, keep: Keep) -> tuple[Run, bool]:
        decided = None if await self._is_known(run) else await self._decide(_build_pending_approval(run, asked), plan)
        return await keep([asked] if decided is None else [asked, decided])

    async def _is_known(self, run: Run) -> bool:
        key = run.idempotency_key
        return key is not None and await self._runs.find_by_key(run.session_id, run.action, key) is not None

    async def _previewed(self, run_id: str) -> Run | None:
        approval = await self._runs.approval(run_id)
        run = approval.run
        first = approval.stale is None and run.asked is None  # a person must decide edited or renewed requests
        if run.state is not RunState.PENDING or not first or not self._may_allow(run):
            return None
        plan = self._planner.plan_shown(approval)
        is_shown = plan.preview is not None and plan.preview.shown.status is PreviewStatus.SHOWN
        if not is_shown or plan.lacks is not None or plan.digest(run) != approval.digest:
            return None
        decided = await self._decide(approval, plan)
        return None if decided is None else await self._runs.apply(decided)

    async def _decide(self, approval: Approval, plan: Plan) -> Transition | None:
        """Count one use of the first matching grant, and return the transition that approves the run by this grant.

        Return None, so that a person decides, if no grant matches or an error occurs. The error is logged.
        """
        try:
            for grant in await self._find_matching(approval.run, plan):
                head = await self._runs.audit_head() or _NOTHING
                try:
                    used = self._grants.use(grant.id, *head)
                except (Conflict, NotFound):  # used up or revoked in this moment
                    continue
                await self._remember()
                return self._decision(approval, plan, used)
        except AileronError as error:
            _log.warn("no grant can be used now: {why}", why=error.message)
        return None

    def end_what_is_over(self) -> None:
        """Revoke grants that have expired, so that setting the clock back does not make them valid again.

        A failure is ignored.
        """
        now = self._runs.now()
        with suppress(AileronError):
            for grant in self._grants.all():
                if grant.revoked_at is None and grant.state(now) is GrantState.OVER:
                    self._grants.revoke(grant.id, now)

    def _may_allow(self, run: Run) -> bool:
        if run.parent_id is not None or run.undoes is not None or not self._effects.may_act():
            return False  # a person must decide repetitions of uncertain runs, and undoing runs
        self.end_what_is_over()
        return any(True for _ in self._for_caller(run))

    async def _find_matching(self, run: Run, plan: Plan) -> list[Grant]:
        """Return the grants that allow the run.

        A grant whose action, connector or credential has changed since the issue is suspended. That is recorded.
        """
        now, found = bounds_of_plan(plan), []
        for grant in self._for_caller(run):
            if not allows(grant, plan.arguments):
                continue
            why = describe_changes(grant.bound, now)
            if why is None:
                found.append(grant)
            else:
                await self.note_suspended(grant, why)
        return found

    def _for_caller(self, run: Run) -> Iterator[Grant]:
        """Yield the grants in force that the run's session may use for the run's action."""
        now = self._runs.now()
        for grant in self._grants.all():
            meant = grant.action == run.action and grant.is_meant_for(run.owner, run.session_id)
            if meant and grant.state(now) is GrantState.LIVE:
                yield grant

    def _decision(self, approval: Approval, plan: Plan, grant: Grant) -> Transition:
        decision = Decision(True, approval.digest, name_decider(grant), ALLOWED, grant_id=grant.id)
        decided = self._gate.granted(approval, decision, plan.action.approval)
        event = self._runs.event_of_run(
            "grant.used", approval.run, get_decider(decision), grant=grant.id, left=grant.left
        )
        return evolve(decided, events=(event, *decided.events))


def _build_pending_approval(run: Run, asked: Transition) -> Approval:
    """Build the pending approval for a run that is not stored yet.

    :raises ValueError: if C{asked} requests no approval.
    """
    ask = asked.ask
    if ask is None:
        raise ValueError("a run that nobody is asked about needs no grant")
    return Approval(asked.applied(run), ask.digest, ask.review, ask.requested_at, ask.expires_at)


@implementer(IGrantService)
@define(eq=False)
class GrantService:
    """The service that issues, shows and revokes standing grants.

    :param note: stores the vault's new revision, so that a restored older vault, with revoked grants, is noticed.
    """

    _grants: IGrants
    _vault: IVault
    _runs: RunRepository
    _gate: ApprovalGate
    _planner: Planner
    _matcher: GrantMatcher
    _note: Callable[[], Awaitable[None]]
    _tasks: Tasks

    async def approve(
        self, run_id: str, decision: Decision, wish: NewGrant, preview: Preview | None
    ) -> tuple[Approval, Grant]:
        """Issue a grant, then approve the call. If the approval fails, revoke the grant.

        The grant is recorded in the audit log before it is stored in the vault. The caller must hold the run's lock.

        :param wish: the grant that the operator asked for.
        :param preview: the preview from L{ApprovalGate.seen_before_decision}.
        :raises InvalidRequest: if the wish cannot be granted.
        :raises Forbidden: if the rule does not let the person approve. No grant is issued.
        :raises Conflict: if the run would still need the approvals of others. No grant is issued.
        :raises AileronError: if the run cannot be approved. See L{ApprovalGate.decide}.
        :return: the decided approval, and the grant.
        """
        approval, opened = await self._gate.open(run_id, decision.digest)
        self._gate.refuse_unsigned(approval, decision)
        plan = self._planner.plan_run(approval.run) if opened is None else opened
        # guard of roles: who may not approve has no grant in force, not even until the approval is refused
        #    -> runner.test_approvers.GrantTests.test_never_in_force
        await self._gate.check_may_grant(approval, plan.action, decision)
        grant = self._new(approval.run, plan, self._check(wish, approval.run, plan), decision.decided_by)
        actor = Actor("human", decision.decided_by)
        signed = {} if decision.signed is None else {"signed": to_json(decision.signed)}
        await self._runs.record(self._event("grant.issued", grant, actor, **_describe(grant), **signed))
        self._grants.put(grant)
        decided = False
        try:
            approved = await self._gate.decide(run_id, decision, preview, must_be_last=True)
            decided = True
        finally:
            if not decided:
                await self._take_back(grant, actor)
        return approved, grant

    async def grants(self) -> tuple[StandingGrant, ...]:
        if not self._vault.ever_unlocked():
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": self._vault.state().value})
        self._planner.refresh()
        self._matcher.end_what_is_over()
        return tuple([await self._show(grant) for grant in self._grants.all()])

    async def grant(self, grant_id: str) -> StandingGrant:
        for shown in await self.grants():
            if shown.grant.id == grant_id:
                return shown
        raise NotFound("There is no such grant.", {"grant": grant_id})

    @shielded
    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """Revoke a grant in the vault, then record that in the audit log. Return the grant as it is now.

        In this order the grant ends at once, even if the database cannot be written. If it was revoked before, nothing
        is recorded.

        :raises NotFound: if there is no such grant.
        :raises VaultLocked, BindingFailed: if the vault cannot be used now. The grant stays.
        :raises StoreUnavailable: if the vault could not be written, so the grant stays, or the audit log, so it has
            ended.
        """
        before = (await self.grant(grant_id)).grant
        revoked = self._grants.revoke(grant_id, self._runs.now())
        await self._note()
        if before.revoked_at is None:
            await self._runs.record(self._event("grant.revoked", revoked, actor, left=revoked.left))
        return await self._show(revoked)

    def _check(self, wish: NewGrant, run: Run, plan: Plan) -> NewGrant:
        if wish.session and run.session_id is None:
            problem = "/grant/session", "the call has no session: grant it to all"
            raise InvalidRequest.listing("This cannot be granted.", problem)
        return validate_grant(wish, plan.arguments, [given.name for given in plan.action.inputs], self._runs.now())

    def _new(self, run: Run, plan: Plan, wish: NewGrant, made_by: str) -> Grant:
        return Grant(
            id=self._runs.fresh_id(),
            action=plan.action.name,
            predicates=wish.predicates,
            exact=select_exact(wish.predicates, plan.arguments),
            uses=wish.uses,
            not_after=wish.not_after,
            bound=bounds_of_plan(plan),
            run_id=run.id,
            made_at=self._runs.now(),
            made_by=made_by,
            session_id=run.session_id if wish.session else None,
            owner=run.owner,
        )

    async def _take_back(self, grant: Grant, actor: Actor) -> None:
        """Revoke a grant that was just issued, because its call was not approved after all. A failure is logged."""
        try:
            self._grants.revoke(grant.id, self._runs.now())
            await self._note()
            await self._runs.record(self._event("grant.revoked", grant, actor, left=grant.left))
        except AileronError as error:
            _log.error(
                "grant {grant} is in force, but its call was not approved: {why}", grant=grant.id, why=error.message
            )

    async def _show(self, grant: Grant) -> StandingGrant:
        state = grant.state(self._runs.now())
        why = self._suspension(grant) if state is GrantState.LIVE else None
        if why is not None:
            await self._matcher.note_suspended(grant, why)
        return StandingGrant(grant, state, why)

    def _suspension(self, grant: Grant) -> str | None:
        try:
            outline = self._planner.outline(grant.action, grant.owner)
            return describe_changes(grant.bound, collect_bounds(outline.action, outline.steps, outline.read))
        except AileronError as error:
            return f"It cannot be used now: {error.message}"

    def _event(self, type_: str, grant: Grant, actor: Actor, **payload: JSON) -> Event:
        event = self._runs.event_of_home(type_, actor, grant=grant.id, **payload)
        return evolve(event, action=grant.action, session_id=grant.session_id)


def _describe(grant: Grant) -> Mapping[str, JSON]:
    """Return the payload of the event that records a new grant: everything that the grant allows."""
    return {
        "run": grant.run_id,
        "predicates": [to_json(each) for each in grant.predicates],
        "exact": grant.exact,
        "uses": grant.uses,
        "not_after": timestamp(grant.not_after),
        "session": grant.session_id,
        "bound": dict(grant.bound),
        **({} if grant.owner is None else {"owner": to_json(grant.owner)}),
    }
