"""Requests approvals for the plan of a run, requests them again when the plan changes, and fetches previews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.base.converter import to_json
from aileron.base.json import JSON, digest, heavy, timestamp
from aileron.base.waiting import afterwards
from aileron.model.actions import ApprovalRule
from aileron.model.audit import Actor, Event
from aileron.model.deciders import check_may_edit
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    StateConflict,
    StoreUnavailable,
)
from aileron.model.reviews import NOT_YET, Card, Preview, PreviewStatus, Review, ReviewedAction
from aileron.model.runs import Approval, Ask, Change, Run, RunState, Transition
from aileron.model.vault import BindingFlag
from aileron.review import differences

from .decisions import Decisions, NoDecision
from .effect_gate import EffectGate
from .outcomes import Echoes
from .plan import Plan, Planner
from .previews import PREVIEW_SECONDS, PreviewReader, lacks_preview
from .runs import RunRepository, Verify, transition
from .tasks import ResultWaiters, Tasks, Timers
from .votes import Votes

_log = Logger()
_MOST_PLANS, _LARGE = 200, ""
_NO_ECHOES = Echoes()
_OTHER_PREVIEW = {
    (PreviewStatus.SHOWN, PreviewStatus.UNAVAILABLE): "The preview cannot be fetched any more.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.SHOWN): "The preview could be fetched this time.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.UNAVAILABLE): "The preview fails in another way than before.",
}
_MOST_FETCHED = 32
"""The most missing previews whose fetches begin together."""

_MOST_TRIES = 3  # the approval may be requested again while its preview is fetched


@define(eq=False)
class ApprovalRequests:
    """Requests approvals for the current plan of a run, and requests them again when the plan changes."""

    _runs: RunRepository
    _planner: Planner
    _decisions: Decisions
    _votes: Votes
    _timers: Timers
    _plans: dict[str, tuple[Run, object, Plan]] = field(
        factory=dict, init=False
    )  # by run id: the run and the generation from which the plan was made, and the plan

    def opening(self, run: Run, plan: Plan, actor: Actor) -> Transition:
        """Return the transition that requests the first approval of C{run}."""
        now = self._runs.now()
        ask = Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval))
        event = self._runs.event_of_run("approval.requested", run, actor, digest=ask.digest)
        return transition(run, RunState.PENDING, now, event, ask=ask)

    def watch(self, run_id: str, expires_at: datetime | None) -> None:
        """Schedule the expiry of a pending run. If C{expires_at} is None, the run never expires."""
        if expires_at is None:
            self._timers.forget(run_id)
        else:
            self._timers.watch(run_id, expires_at, self._expire)

    def forget(self, run_id: str) -> None:
        """Cancel the expiry of a run that was decided or withdrawn. Idempotent."""
        self._timers.forget(run_id)

    def stop(self) -> None:
        """Cancel the timers that would request approvals again or let them expire. Idempotent."""
        self._timers.stop()

    async def _expire(self, run_id: str) -> None:
        """Expire the run and record that, unless it is no longer pending.

        :raises NotFound: if there is no such run.
        :raises StoreUnavailable: if it cannot be stored.
        """
        run = await self._runs.run(run_id)
        # guard of promise 2: a timer expires approvals -> NoDecisionTests.test_expires
        if run.state is RunState.PENDING:
            event = self._runs.event_of_run("approval.expired", run)
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._runs.apply(transition(run, RunState.EXPIRED, event.at, event))

    async def previewed(self, approval: Approval, preview: Preview, found: Echoes = _NO_ECHOES) -> Approval:
        """Store a fetched preview and return the approval, requested again if the preview changes the digest.

        An approval that had no preview yet does not become stale by its first preview.

        :raises StateConflict, ApprovalStale: if the approval was decided or replaced meanwhile.
        :raises AileronError: if the run cannot be planned now.
        """
        run = approval.run
        self._planner.refresh()
        plan = self._planner.plan_run(run, preview)
        digest_now = plan.digest(run)
        if digest_now == approval.digest:
            return approval
        status, of_it = preview.status.value, preview.digest()
        event = self._runs.event_of_run("approval.previewed", run, status=status, preview=of_it, digest=digest_now)
        events = [*found.events, event]
        ask = Ask(digest_now, plan.review(), approval.requested_at, approval.expires_at)
        if plan.with_preview(run.effect_key, NOT_YET).digest(run) == approval.digest:
            ask = evolve(ask, stale=approval.stale, changes=approval.changes)
        else:
            ask = mark_changed(approval, plan, ask)
            events.append(self._runs.event_of_run("approval.stale", run, reason=ask.stale, digest=ask.digest))
        await self._put(approval, ask, *events, flags=found.flags)
        return await self._runs.approval(run.id)

    async def refresh(self, run_id: str) -> tuple[Approval, Plan | None]:
        """Read the files again and return the stored approval, requested again if the plan has changed (see L{fresh}).

        :return: the approval, and the plan that its digest covers, or None if it is not pending or cannot run.
        :raises NotFound: if there is no such approval.
        """
        self._planner.refresh()
        return await self._refresh(await self._runs.approval(run_id))

    async def fresh(self, approval: Approval) -> Approval:
        """Return an up-to-date approval.

        If the run as planned now differs from what the approval shows, request it again.

        The review of a pending approval always comes from the new plan, never from the stored row.
        """
        return (await self._refresh(approval))[0]

    async def _refresh(self, approval: Approval) -> tuple[Approval, Plan | None]:
        if approval.run.state is not RunState.PENDING:
            return approval, None
        plan, ask = self._compare_plan(approval)
        if ask is None:
            return (approval if plan is None else evolve(approval, review=plan.review())), plan
        with suppress(StateConflict, ApprovalStale):  # decided or requested again meanwhile, which the row then shows
            event = self._runs.event_of_run("approval.stale", approval.run, reason=ask.stale, digest=ask.digest)
            await self._put(approval, ask, event)
        stored = await self._runs.approval(approval.run.id)
        return stored, plan if plan is not None and plan.digest(stored.run) == stored.digest else None

    def read_files(self) -> None:
        """Read the files of actions and connectors again, for the next approvals shown."""
        self._planner.refresh()

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        """Return the cards of the run's steps. See L{Plan.cards}.

        If the run cannot be planned, or the approval's digest is not that of the current plan, return no cards.
        """
        with suppress(AileronError):
            recalled = self._recall_plan(approval)
            if recalled is not None:  # its digest has just been compared
                return tuple(recalled.cards())
            plan = self._planner.plan_shown(approval)
            if plan.digest(approval.run) == approval.digest:
                return tuple(plan.cards())
        return ()

    def _recall_plan(self, approval: Approval) -> Plan | None:
        """Return the remembered plan of an approval, or None if there is none or the run or a file has changed."""
        known = self._plans.get(approval.run.id) or self._plans.get(_LARGE)
        run, generation, plan = known or (None, None, None)
        if plan is None or (run, generation) != (approval.run, self._planner.generation()):
            return None
        return plan if plan.digest(approval.run) == approval.digest else None

    def _remember_plan(self, run: Run, plan: Plan) -> None:
        """Remember the plan of a shown run for L{cards}. Of runs with large arguments, only the last plan is kept."""
        key = _LARGE if heavy(run.arguments) else run.id
        self._plans.pop(key, None)
        self._plans[key] = run, self._planner.generation(), plan
        if len(self._plans) > _MOST_PLANS:
            del self._plans[next(iter(self._plans))]

    def compute(self, approval: Approval) -> Approval:
        """Return an up-to-date approval for display, but store nothing.

        If the plan made now differs from the one that a pending approval shows, the returned approval is a new request.
        """
        if approval.run.state is not RunState.PENDING:
            return approval
        plan, ask = self._compare_plan(approval)
        if ask is None:
            return approval if plan is None else evolve(approval, review=plan.review())
        return evolve(
            approval,
            digest=ask.digest,
            review=ask.review,
            requested_at=ask.requested_at,
            expires_at=ask.expires_at,
            stale=ask.stale,
            changes=ask.changes,
        )

    async def show(self, approval: Approval) -> Approval:
        """Return an up-to-date approval, as L{fresh} does.

        If it cannot be stored, return the stored one marked as stale.
        """
        try:
            return await self.fresh(approval)
        except StoreUnavailable:
            return evolve(approval, stale="It has changed, and cannot be updated while the database refuses writes.")

    def edit_run(self, run: Run, arguments: Mapping[str, JSON]) -> Run:
        """Return C{run} with other arguments, after checking them. Nothing is stored.

        :raises AileronError: if the run cannot be planned with these arguments.
        """
        plan = self._planner.plan_run(evolve(run, arguments=arguments))
        return evolve(run, arguments=plan.arguments)

    async def put_edited(self, approval: Approval, edited: Run, preview: Preview | None, actor: Actor) -> None:
        """Replace an approval by a request for the edited run, if the approval is still the stored one.

        :raises Conflict, ApprovalStale: if another approval is stored.
        :raises Forbidden: if the action's rule does not let this account edit.
        :raises AileronError: if the edited run cannot be planned now.
        """
        self._planner.refresh()
        plan = self._planner.plan_run(edited, preview)
        # guard of roles: nobody approves alone what the requester may not approve, by editing it first
        #    -> runner.test_approvers.EditTests.test_not_requester
        check_may_edit(actor, edited.owner, await self._votes.find_rule(plan.action))
        await self._withdraw_votes(approval)
        ask = Ask(plan.digest(edited), plan.review(), approval.requested_at, approval.expires_at)
        await self._runs.apply_or_refuse(self._change(approval, edited, ask, actor))

    def _change(self, approval: Approval, edited: Run, ask: Ask, actor: Actor) -> Transition:
        run, now = approval.run, self._runs.now()
        changes: JSON = [to_json(change) for change in differences(run.arguments, edited.arguments)]
        event = self._runs.event_of_run(
            "approval.modified", run, actor, digest=ask.digest, before=approval.digest, changes=changes
        )
        unless_changed = require_digest(approval.digest)
        arguments = edited.arguments
        return transition(run, RunState.PENDING, now, event, ask=ask, edited=arguments, verify=unless_changed)

    async def ask_anew(self, run: Run, found: ApprovalStale, preview: Preview | None = None) -> None:
        """Request another approval of an approved run. If C{found} is a L{NoDecision}, record tampering.

        :param found: the reason why the approval no longer applies.
        :param preview: the preview that was just fetched, or None.
        :raises StateConflict: if the run is no longer approved.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the old decision cannot be withdrawn.
        """
        approval = await self._runs.find_approval(run.id)
        ask = self._ask_anew(run, approval, found.message, preview)
        event = self._runs.event_of_run(
            "approval.stale", run, reason=found.message, digest=ask.digest, was_approved=True
        )
        if isinstance(found, NoDecision):
            event = self._runs.event_of_run(
                "tamper.detected", run, row="approvals", found=found.message, digest=ask.digest
            )
        # Withdraw the old decision before the new request is stored: a crash in between must not revive the decision.
        await self._decisions.outdate(run, self._runs.now())
        await self._runs.apply(transition(run, RunState.PENDING, self._runs.now(), event, ask=ask))
        self.watch(run.id, ask.expires_at)

    def _compare_plan(self, approval: Approval) -> tuple[Plan | None, Ask | None]:
        """Plan the run and compare the plan with the stored approval.

        :return: the plan, or None if the run cannot be planned, and the request that must replace the stored one, or
            None if the stored one is still right.
        """
        run = approval.run
        try:
            plan = self._planner.plan_shown(approval)
            self._remember_plan(run, plan)
            if plan.digest(run) == approval.digest:
                return plan, None
            plan = plan.with_preview(run.effect_key, NOT_YET)
        except AileronError as error:
            return None, self._cannot_run(approval, error)
        ask = Ask(plan.digest(run), plan.review(), self._runs.now(), approval.expires_at)
        return plan, mark_changed(approval, plan, ask)

    def _cannot_run(self, approval: Approval, error: AileronError) -> Ask | None:
        stale = f"It cannot run now: {error.message}"
        if (approval.stale or "").endswith(stale):
            return None
        asked = self._make_unplannable_digest(approval.run, stale)
        return Ask(asked, approval.review, self._runs.now(), approval.expires_at, stale)

    def _ask_anew(self, run: Run, approval: Approval | None, stale: str, preview: Preview | None) -> Ask:
        """Build the next approval request of an approved run. If the run cannot be planned, the request says why."""
        now = self._runs.now()
        try:
            plan = self._planner.plan_run(run, preview)
        except AileronError as error:
            cannot = f"It cannot run now: {error.message}"
            stale = stale if stale == cannot else f"{stale} {cannot}"
            review = _bare_review(run) if approval is None else approval.review
            return Ask(self._make_unplannable_digest(run, stale), review, now, None, stale)
        changes = () if approval is None else compare_reviews(approval.review, plan.review())
        return Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval), stale, changes)

    def _make_unplannable_digest(self, run: Run, stale: str) -> str:
        """Return a digest that no plan has, for a request of a run that cannot be planned."""
        return digest({"run": run.id, "stale": stale, "at": timestamp(self._runs.now())})

    def _expires(self, rule: ApprovalRule) -> datetime | None:
        """Return when an approval requested now expires, or None if it never does."""
        seconds = rule.expires_after_seconds
        return None if seconds is None else self._runs.now() + timedelta(seconds=seconds)

    async def _put(self, approval: Approval, ask: Ask, *events: Event, flags: tuple[BindingFlag, ...] = ()) -> None:
        await self._withdraw_votes(approval)
        run, now, unless_changed = approval.run, self._runs.now(), require_digest(approval.digest)
        change = transition(run, RunState.PENDING, now, *events, ask=ask, verify=unless_changed, flags=flags)
        await self._runs.apply(change)

    async def _withdraw_votes(self, approval: Approval) -> None:
        """Withdraw the approvals of single people before something else is shown, so that they never count again.

        The same could be shown once more, after another edit.
        """
        # guard of roles: an approval does not return with what it was for -> runner.test_votes.EditTests.test_back,
        #    instead if False
        if approval.votes:
            await self._decisions.give_up(approval.run)


def describe_approval(approval: Approval) -> Mapping[str, JSON]:
    """Return the details of an error for a client that named another digest than the approval's present one."""
    changes: JSON = [to_json(change) for change in approval.changes]
    return {"digest": approval.digest, "stale": approval.stale, "changes": changes}


def require_digest(shown: str) -> Verify:
    """Return a check for the transaction: it raises L{ApprovalStale} if the row has another digest than C{shown}."""

    def verify(run: Run, approval: Approval | None) -> None:
        # guard of promise 3: a decision names the digest that is shown
        # guard of promise 3: a decision is for the row at that moment
        #    -> StillTests.test_changed_while_deciding
        if approval is None or approval.digest != shown:
            raise ApprovalStale("It was just updated. Review it again.")

    return verify


def _bare_review(run: Run) -> Review:
    """Return a review without contents, for a run whose approval row is missing and that cannot be planned."""
    return Review(action=ReviewedAction(run.action, run.action_version), manifest_digest=run.manifest_digest)


def mark_changed(approval: Approval, plan: Plan, ask: Ask) -> Ask:
    """Return C{ask} with the differences between the review in C{approval} and C{plan}, and a sentence about them."""
    return evolve(
        ask, stale=describe_difference(approval, plan), changes=compare_reviews(approval.review, plan.review())
    )


def compare_reviews(before: Review, after: Review) -> tuple[Change, ...]:
    """Return the differences between two reviews, without their titles. A preview not yet fetched is not compared."""
    earlier, later = (to_json(evolve(each, title="")) for each in (before, after))
    if PreviewStatus.FETCHING in (before.shown_preview.status, after.shown_preview.status):
        earlier, later = ({**each, "preview": None} for each in (earlier, later))
    return differences(earlier, later)


def describe_difference(approval: Approval, plan: Plan) -> str:
    """Return a sentence on the first difference between what C{approval} showed and C{plan}."""
    before, after = approval.review, plan.review()
    if before.unread is not None:
        return "What was shown before cannot be read any more."
    if before.manifest_digest != after.manifest_digest:
        return f"The action {plan.action.name} was changed since."
    if before.arguments != after.arguments:
        return "The arguments are read differently now."
    seen, present = before.shown_preview, after.shown_preview
    if present.status is not PreviewStatus.FETCHING and seen.digest() != present.digest():
        return _OTHER_PREVIEW.get((seen.status, present.status), "What the preview shows was changed since.")
    if evolve(before, title=after.title) == after:
        return "It could not run for a while, and can again."
    return "The connector, its binding or the request that would leave was changed since."


@define(eq=False)
class Previews:
    """Fetches the missing previews of pending approvals and stores them.

    :param reader: fetches a preview from its service.
    """

    _runs: RunRepository
    _requests: ApprovalRequests
    _reader: PreviewReader
    _effects: EffectGate
    _tasks: Tasks
    _waiters: ResultWaiters[str, None]

    def begin_fetch(self, run_id: str, then: Callable[[str], Awaitable[None]] | None = None) -> bool:
        """Start to fetch a missing preview. Return False if a fetch is running already or no effect may begin now.

        :param then: called with the run's id once the preview is stored.
        """
        return self._effects.may_act() and self._tasks.start(
            _preview_task(run_id), self._fetch_and_notify(run_id, then)
        )

    async def fetch_for_display(self, approval: Approval) -> Approval:
        """Return the approval for display. If its preview is missing, first try to fetch it and wait a few seconds.

        If the wait ends without a preview, the approval is returned without it. If an earlier fetch failed and began
        within the last seconds, no new one is started.

        :raises NotFound: if there is no such approval.
        """
        run_id, task = approval.run.id, _preview_task(approval.run.id)
        if not lacks_preview(approval):
            return approval
        unanswered = approval.review.shown_preview.status is PreviewStatus.FETCHING
        if self._reader.was_tried(run_id) and not unanswered and not self._tasks.running(task):
            return approval  # the fetch failed just now
        waiter = self._waiters.enlist(run_id)  # before the fetch starts: it may end at once
        if self._tasks.running(task) or self.begin_fetch(run_id):
            await self._waiters.first(run_id, waiter, PREVIEW_SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._requests.show(await self._runs.approval(run_id))

    async def wait_under_way(self, approval: Approval) -> Approval:
        """Wait a few seconds for a running fetch of the preview, and return the stored approval.

        If no fetch is running, return C{approval} at once. No fetch is started, and nothing is stored.

        :raises NotFound: if there is no such approval.
        """
        run_id = approval.run.id
        if not lacks_preview(approval) or not self._tasks.running(_preview_task(run_id)):
            return approval
        waiter = self._waiters.enlist(run_id)
        await self._waiters.first(run_id, waiter, PREVIEW_SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._runs.approval(run_id)

    async def fetch_all_missing(self) -> None:
        """Fetch every missing preview, a few at once, until the vault is locked or effects are held."""
        async for run_ids in self._runs.list_unshown():
            for begin in range(0, len(run_ids), _MOST_FETCHED):
                if not self._effects.may_act():
                    return
                await self._fetch_some(run_ids[begin : begin + _MOST_FETCHED])

    async def _fetch_some(self, run_ids: Sequence[str]) -> None:
        waiters = {
            run_id: self._waiters.enlist(run_id) for run_id in run_ids
        }  # before a fetch starts: it may end at once
        for run_id in run_ids:
            self.begin_fetch(run_id)
        await self._waiters.all(waiters, PREVIEW_SECONDS * len(waiters))

    async def _fetch_and_notify(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        await afterwards(self._show(run_id, then), lambda: self._waiters.fire_all(run_id, None))

    async def _show(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        try:
            for _ in range(_MOST_TRIES):
                if await self._fetch_and_store(run_id):
                    return None if then is None else await then(run_id)
        except StateConflict as conflict:
            _log.info("run {run} became {state} before its preview", run=run_id, state=conflict.present.state.value)
        except AileronError as error:  # the next look at the approval shows the reason
            _log.info("the preview of run {run} is not shown: {why}", run=run_id, why=error.message)

    async def _fetch_and_store(self, run_id: str) -> bool:
        """Fetch and store a run's preview if it is missing.

        :return: False if the approval was requested again meanwhile, so that the caller must try again.
        :raises AileronError: if the preview cannot be fetched or stored now.
        """
        approval = await self._runs.approval(run_id)
        if not lacks_preview(approval):
            return True
        fetched = await self._reader.fetch_missing(approval.run)
        if fetched is None:
            return True
        try:
            await self._requests.previewed(approval, *fetched)
        except ApprovalStale:
            return False
        return True


def _preview_task(run_id: str) -> str:
    return f"the preview of {run_id}"
