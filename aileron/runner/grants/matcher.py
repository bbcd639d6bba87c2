"""Decides the calls that a standing grant allows, and checks before they begin that it allows them still."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.errors import AileronError, ApprovalStale, Conflict, NotFound
from aileron.interfaces import IGrants
from aileron.runner.approval.decisions import NoDecision
from aileron.runner.approval.gate import ApprovalGate, get_decider
from aileron.runner.approval.requests import ApprovalRequests
from aileron.runner.limits.admission import EffectGate
from aileron.runner.runs.plan import Plan, PlannedStep
from aileron.runner.runs.preview import SHOWN
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import EventFactory
from aileron.runner.scheduling import KeyedLocks
from aileron.values import (
    JSON,
    Action,
    Approval,
    Decision,
    Grant,
    GrantState,
    PreviewRule,
    Run,
    RunState,
    Transition,
    digest,
)

from .predicates import allows

ALLOWED = "Allowed by a standing grant."
"""What whoever called is told of a call that nobody was asked about."""

_NOTHING = (0, "")
_log = Logger()

Keep = Callable[[Sequence[Transition]], Awaitable[tuple[Run, bool]]]


@define(eq=False)
class GrantMatcher:
    """Takes decisions in the operator's place, as far as the operator said so beforehand.

    :param turns: of runs.
    :param remember: that the vault has come further: before anything begins that a use allows, else whoever puts back
        the vault's file has that use again.
    """

    _grants: IGrants
    _runs: RunRepository
    _requests: ApprovalRequests
    _gate: ApprovalGate
    _effects: EffectGate
    _locks: KeyedLocks
    _remember: Callable[[], Awaitable[None]]
    _actions: KeyedLocks = field(factory=KeyedLocks, init=False)
    _noted: set[tuple[str, str]] = field(factory=set, init=False)

    async def keep(self, run: Run, plan: Plan, asked: Transition, keep: Keep) -> tuple[Run, bool]:
        """Keep a gated run as it was put up, and as decided at once where a grant allows it.

        What has a preview is decided when that is there: L{previewed}.

        :param keep: keeps the run with what it went through.
        """
        if plan.preview is not None or not self._may_allow(run):
            return await keep([asked])
        # One after the other: else two calls of one idempotency key, at once, would cost two uses.
        return await self._actions.run(run.action, lambda: self._keep(run, plan, asked, keep))

    async def previewed(self, run_id: str) -> Run | None:
        """Decide a run that waits and has just got its preview; L{None}: no grant allows it, and a person must say.

        :raises StateConflict, ApprovalStale: it went elsewhere meanwhile.
        :raises AileronError: it cannot run now.
        """
        return await self._locks.run(run_id, lambda: self._previewed(run_id))

    async def note_suspended(self, grant: Grant, why: str) -> None:
        """Put on record, once in this life, that a grant in force allows nothing."""
        if (grant.id, why) not in self._noted:
            self._noted.add((grant.id, why))
            event = self._runs.events.of_home("grant.suspended", grant=grant.id, reason=why)
            await self._runs.audit.append(evolve(event, action=grant.action, session_id=grant.session_id))

    async def _keep(self, run: Run, plan: Plan, asked: Transition, keep: Keep) -> tuple[Run, bool]:
        decided = None if await self._is_known(run) else await self._decided(_put_up(run, asked), plan)
        return await keep([asked] if decided is None else [asked, decided])

    async def _is_known(self, run: Run) -> bool:
        key = run.idempotency_key
        return key is not None and await self._runs.table.find_by_key(run.session_id, run.action, key) is not None

    async def _previewed(self, run_id: str) -> Run | None:
        approval = await self._runs.approval(run_id)
        run = approval.run
        first = approval.stale is None and run.asked is None  # what is asked anew is a person's to answer
        if run.state is not RunState.PENDING or not first or not self._may_allow(run):
            return None
        plan = self._requests.plan_shown(approval)
        if not _is_shown_whole(plan) or plan.digest(run) != approval.digest:
            return None
        decided = await self._decided(approval, plan)
        return None if decided is None else await self._runs.apply(decided)

    async def _decided(self, approval: Approval, plan: Plan) -> Transition | None:
        """The decision of the first grant that allows it, its use counted; L{None}: a person must say."""
        try:
            for grant in await self._matching(approval.run, plan):
                head = await self._runs.audit.head() or _NOTHING
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
        """Note in the vault which grants are over, so that no clock that is set back brings one again."""
        now = self._runs.events.now()
        with suppress(AileronError):
            for grant in self._grants.all():
                if grant.revoked_at is None and grant.state(now) is GrantState.OVER:
                    self._grants.revoke(grant.id, now)

    def _may_allow(self, run: Run) -> bool:
        if run.parent_id is not None or not self._effects.may_act():
            return False  # what does again what may have happened is a person's to decide
        self.end_what_is_over()
        return any(True for _ in self._for_caller(run))

    async def _matching(self, run: Run, plan: Plan) -> list[Grant]:
        """Those that allow it; of those that would, but for what has changed since, that is put on record."""
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
        """Those in force for this action and session."""
        now = self._runs.events.now()
        for grant in self._grants.all():
            meant = grant.action == run.action and grant.session_id in (None, run.session_id)
            if meant and grant.state(now) is GrantState.LIVE:
                yield grant

    def _decision(self, approval: Approval, plan: Plan, grant: Grant) -> Transition:
        decision = Decision(True, approval.digest, name_decider(grant), ALLOWED, grant_id=grant.id)
        decided = self._gate.granted(approval, decision, plan.action.approval)
        event = self._runs.events.of_run(
            "grant.used", approval.run, get_decider(decision), grant=grant.id, left=grant.left
        )
        return evolve(decided, events=(event, *decided.events))


def _put_up(run: Run, asked: Transition) -> Approval:
    """The approval that C{asked} will make of C{run}, which is not kept yet."""
    ask = asked.ask
    if ask is None:
        raise ValueError("a run that nobody is asked about needs no grant")
    return Approval(asked.applied(run), ask.digest, ask.review, ask.requested_at, ask.expires_at)


def _is_shown_whole(plan: Plan) -> bool:
    """Return whether a plan has a preview that was fetched and shows all that its steps need."""
    return plan.preview is not None and plan.preview.shown.status == SHOWN and plan.lacks is None


_BY = "grant:"


@define(eq=False)
class GrantCheck:
    """Looks at what grants approved, until it begins; what a person approved is none of its business."""

    _grants: IGrants
    _events: EventFactory

    def check(self, approval: Approval, plan: Plan) -> None:
        """Look at all of it.

        :raises NoDecision: no grant in the vault ever allowed this.
        :raises ApprovalStale: it does so no longer.
        """
        grant = self._in_force(approval)
        if grant is None:
            return
        if not allows(grant, plan.arguments) or grant.session_id not in (None, approval.run.session_id):
            raise NoDecision("The standing grant by which it was approved does not allow it.")
        why = describe_changes(grant.bound, bounds_of_plan(plan))
        if why is not None:
            raise ApprovalStale(f"The standing grant that allowed it does so no longer. {why}")

    def in_force(self, approval: Approval | None) -> None:
        """Look only whether it was revoked; cheap, and in any thread.

        :raises ApprovalStale, NoDecision: as of L{check}.
        """
        if approval is not None:
            self._in_force(approval)

    def _in_force(self, approval: Approval) -> Grant | None:
        by = approval.decided_by or ""
        named = by.removeprefix(_BY) if by.startswith(_BY) else None
        if named != approval.grant_id:
            raise NoDecision("The row names another standing grant than the decision.")
        if named is None:
            return None
        grant = self._grants.get(named)
        if grant is None:
            raise NoDecision("The standing grant by which it was approved is not in the vault.")
        state = grant.state(self._events.now())
        if state in (GrantState.REVOKED, GrantState.OVER):
            how = "was revoked" if state is GrantState.REVOKED else "is over"
            raise ApprovalStale(f"The standing grant that allowed it {how}.")
        return grant


def name_decider(grant: Grant) -> str:
    """Name C{grant} as who decided: it stands under the decision's mark."""
    return f"{_BY}{grant.id}"


def bounds_of_plan(plan: Plan) -> dict[str, str]:
    """Collect what a grant stands on that is made of C{plan}, by what each is called."""
    return collect_bounds(plan.action, plan.steps, None if plan.preview is None else plan.preview.read)


def collect_bounds(action: Action, steps: Iterable[PlannedStep], read: PlannedStep | None) -> dict[str, str]:
    """Collect the action's file, the preview, and of each step, and the preview's C{read}, all that it will use."""
    found = {"the action's file": action.digest, "the preview": _shape(action.approval.preview)}
    for planned in steps:
        found.update(_of_step(planned, f"step {planned.step.id}"))
    return found if read is None else {**found, **dict(_of_step(read, "the preview"))}


def _of_step(planned: PlannedStep, where: str) -> Iterator[tuple[str, str]]:
    binding, described = planned.binding, planned.description
    yield f"the connector of {where}", f"{described.fqn} {described.version}"
    yield f"the content of the connector of {where}", described.content_hash
    yield f"the base URL of {where}", planned.base_url
    yield f"the credential of {where}", "none" if binding is None else f"{binding.name} {binding.revision}"


def describe_changes(bound: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Describe in one sentence what of C{bound} is another now; L{None}: nothing is."""
    changed = [name for name in {**bound, **now} if bound.get(name) != now.get(name)]
    if not changed:
        return None
    return f"It was granted for another state of things; changed since: {', '.join(changed)}."


def _shape(rule: PreviewRule | None) -> str:
    if rule is None:
        return "none"
    shape: JSON = {
        "connector": rule.connector,
        "operation": rule.operation,
        "args": rule.args,
        "render": [list(each) for each in rule.render],
        "multiline": list(rule.multiline),
    }
    return digest(shape)
