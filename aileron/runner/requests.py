"""Puts runs up for decision, as long as they may wait, and asks anew where what would run is not what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve, frozen

from aileron.actions import check_arguments
from aileron.base.converter import to_json
from aileron.base.json import JSON, digest, timestamp
from aileron.model.actions import ApprovalRule
from aileron.model.audit import Actor, Event
from aileron.model.errors import AileronError, ApprovalStale, StateConflict, StoreUnavailable
from aileron.model.reviews import Preview, PreviewStatus, Review, ReviewedAction
from aileron.model.runs import Approval, Ask, Change, Run, RunState, Transition
from aileron.model.vault import BindingFlag
from aileron.review import differences

from .decisions import Decisions, NoDecision
from .outcomes import Echoes
from .plan import Plan, Planner
from .runs import RunRepository, Verify, transition
from .scheduling import Timers

_NOTHING = Echoes()


@define(eq=False)
class ApprovalRequests:
    """Works out what the operator is asked by what is there now, and asks again when that is something else."""

    _runs: RunRepository
    planner: Planner
    _decisions: Decisions
    expiry: Expiry

    def opening(self, run: Run, plan: Plan, actor: Actor) -> Transition:
        """C{run} put up for decision for the first time."""
        now = self._runs.events.now()
        ask = Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval))
        event = self._runs.events.of_run("approval.requested", run, actor, digest=ask.digest)
        return transition(run, RunState.PENDING, now, event, ask=ask)

    def plan(self, run: Run, preview: Preview | None = None) -> Plan:
        """Plan what C{run} would do by what is there now.

        :param preview: as it was fetched; L{None}: it is not there yet.
        :raises AileronError: what it needs is gone, switched off, or takes its arguments no longer.
        """
        action = self.planner.offerings.find(run.action).action
        return self.planner.plan(action, check_arguments(action, run.arguments), run.effect_key, preview)

    def plan_shown(self, approval: Approval) -> Plan:
        """Plan as L{plan} with the preview in the row: the digest shows whether that was tampered with."""
        return self.plan(approval.run, approval.review.shown_preview)

    async def previewed(self, approval: Approval, preview: Preview, found: Echoes = _NOTHING) -> Approval:
        """C{approval} with its preview as it is now: asked anew where that is not what stands there.

        What has no preview yet is not stale by getting one.

        :raises StateConflict, ApprovalStale: something else has taken its place.
        :raises AileronError: it cannot run now.
        """
        run = approval.run
        self.planner.offerings.refresh()
        plan = self.plan(run, preview)
        digest_now = plan.digest(run)
        if digest_now == approval.digest:
            return approval
        status, of_it = preview.status.value, preview.digest()
        event = self._runs.events.of_run("approval.previewed", run, status=status, preview=of_it, digest=digest_now)
        events = [*found.events, event]
        ask = Ask(digest_now, plan.review(), approval.requested_at, approval.expires_at)
        if self.plan(run).digest(run) == approval.digest:
            ask = evolve(ask, stale=approval.stale, changes=approval.changes)
        else:
            ask = mark_changed(approval, plan, ask)
            events.append(self._runs.events.of_run("approval.stale", run, reason=ask.stale, digest=ask.digest))
        await self._put(approval, ask, *events, flags=found.flags)
        return await self._runs.approval(run.id)

    async def fresh(self, approval: Approval) -> Approval:
        """C{approval} as it must be looked at now: asked anew where what would run is no longer what is shown.

        While it waits, what is shown is what would run, worked out now; the row's own text is not believed.
        """
        if approval.run.state is not RunState.PENDING:
            return approval
        plan, ask = self._look(approval)
        if ask is None:
            return approval if plan is None else evolve(approval, review=plan.review())
        with suppress(StateConflict, ApprovalStale):  # decided or asked anew meanwhile: the look below shows it
            event = self._runs.events.of_run("approval.stale", approval.run, reason=ask.stale, digest=ask.digest)
            await self._put(approval, ask, event)
        return await self._runs.approval(approval.run.id)

    def compute(self, approval: Approval) -> Approval:
        """Return C{approval} as L{fresh} would leave it, without storing anything."""
        if approval.run.state is not RunState.PENDING:
            return approval
        plan, ask = self._look(approval)
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
        """Return what L{fresh} does; if that cannot be written, the row marked stale: looking needs no disk."""
        try:
            return await self.fresh(approval)
        except StoreUnavailable:
            return evolve(approval, stale="It has changed, and cannot be updated while the database refuses writes.")

    async def ask_anew(self, run: Run, found: ApprovalStale, preview: Preview | None = None) -> None:
        """Put an approved run up for decision once more; that it was no decision at all is put on record as such.

        :param preview: as it was fetched just now, if it was.
        :raises StateConflict: it is approved no longer.
        :raises VaultLocked, BindingFailed, StoreUnavailable: the decision would go on to count.
        """
        approval = await self._runs.table.approval(run.id)
        ask = self._ask_anew(run, approval, found.message, preview)
        events = self._runs.events
        event = events.of_run("approval.stale", run, reason=found.message, digest=ask.digest, was_approved=True)
        if isinstance(found, NoDecision):
            event = events.of_run("tamper.detected", run, row="approvals", found=found.message, digest=ask.digest)
        # Before the question that takes its place, so that no crash keeps it.
        await self._decisions.outdate(run, events.now())
        await self._runs.apply(transition(run, RunState.PENDING, events.now(), event, ask=ask))
        self.expiry.watch(run.id, ask.expires_at)

    def _look(self, approval: Approval) -> tuple[Plan | None, Ask | None]:
        """Find what would run now, if anything, and what to ask instead of what stands there, if it is another."""
        run = approval.run
        try:
            plan = self.plan_shown(approval)
            asked = plan.digest(run)
            if asked == approval.digest:
                return plan, None
            plan = self.plan(run)
        except AileronError as error:
            return None, self._cannot_run(approval, error)
        ask = Ask(plan.digest(run), plan.review(), self._runs.events.now(), approval.expires_at)
        return plan, mark_changed(approval, plan, ask)

    def _cannot_run(self, approval: Approval, error: AileronError) -> Ask | None:
        stale = f"It cannot run now: {error.message}"
        if (approval.stale or "").endswith(stale):
            return None
        asked = self._nothing(approval.run, stale)
        return Ask(asked, approval.review, self._runs.events.now(), approval.expires_at, stale)

    def _ask_anew(self, run: Run, approval: Approval | None, stale: str, preview: Preview | None) -> Ask:
        """Make what to ask of an approved run whose decision counts no more."""
        now = self._runs.events.now()
        try:
            plan = self.plan(run, preview)
        except AileronError as error:
            cannot = f"It cannot run now: {error.message}"
            stale = stale if stale == cannot else f"{stale} {cannot}"
            review = _bare_review(run) if approval is None else approval.review
            return Ask(self._nothing(run, stale), review, now, None, stale)
        changes = () if approval is None else compare_reviews(approval.review, plan.review())
        return Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval), stale, changes)

    def _nothing(self, run: Run, stale: str) -> str:
        """Make a digest that is of nothing that could run."""
        return digest({"run": run.id, "stale": stale, "at": timestamp(self._runs.events.now())})

    def _expires(self, rule: ApprovalRule) -> datetime | None:
        """When a wait for a decision that begins now ends, if it does."""
        seconds = rule.expires_after_seconds
        return None if seconds is None else self._runs.events.now() + timedelta(seconds=seconds)

    async def _put(self, approval: Approval, ask: Ask, *events: Event, flags: tuple[BindingFlag, ...] = ()) -> None:
        run, now, unless_changed = approval.run, self._runs.events.now(), require_digest(approval.digest)
        change = transition(run, RunState.PENDING, now, *events, ask=ask, verify=unless_changed, flags=flags)
        await self._runs.apply(change)


def describe_approval(approval: Approval) -> Mapping[str, JSON]:
    """Describe, for a program, the question that stands there instead of the one that it named."""
    changes: JSON = [to_json(change) for change in approval.changes]
    return {"digest": approval.digest, "stale": approval.stale, "changes": changes}


def require_digest(shown: str) -> Verify:
    """Make a check for inside the transaction: what waits there is still what that digest binds."""

    def verify(run: Run, approval: Approval | None) -> None:
        # guard of promise 3: a decision names what is shown
        # guard of promise 3: what is decided is what the row shows at that moment
        #    -> StillTests.test_changed_while_deciding
        if approval is None or approval.digest != shown:
            raise ApprovalStale("It was just updated. Review it again.")

    return verify


def _bare_review(run: Run) -> Review:
    """Review what can be shown of a run whose approval is gone and that cannot be worked out."""
    return Review(action=ReviewedAction(run.action, run.action_version), manifest_digest=run.manifest_digest)


def mark_changed(approval: Approval, plan: Plan, ask: Ask) -> Ask:
    """Have C{ask} say in which way it is not what C{approval} showed."""
    return evolve(
        ask, stale=describe_difference(approval, plan), changes=compare_reviews(approval.review, plan.review())
    )


def compare_reviews(before: Review, after: Review) -> tuple[Change, ...]:
    """Compare two reviews; a preview that was or is not there yet is otherwise in nothing."""
    earlier, later = to_json(before), to_json(after)
    if PreviewStatus.FETCHING in (before.shown_preview.status, after.shown_preview.status):
        earlier, later = ({**each, "preview": None} for each in (earlier, later))
    return differences(earlier, later)


def describe_difference(approval: Approval, plan: Plan) -> str:
    """Describe in one sentence what is no longer as it was shown."""
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
    if before == after:
        return "It could not run for a while, and can again."
    return "The connector, its binding or the request that would leave was changed since."


_OTHER_PREVIEW = {
    (PreviewStatus.SHOWN, PreviewStatus.UNAVAILABLE): "The preview cannot be fetched any more.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.SHOWN): "The preview could be fetched this time.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.UNAVAILABLE): "The preview fails in another way than before.",
}


@frozen(eq=False)
class Expiry:
    """Watches pending runs that may expire."""

    _timers: Timers
    _runs: RunRepository

    def watch(self, run_id: str, expires_at: datetime | None) -> None:
        """Expire the run at C{expires_at}, if it has not been decided by then; L{None}: it never expires."""
        if expires_at is None:
            self._timers.forget(run_id)
        else:
            self._timers.watch(run_id, expires_at, self._expire)

    def forget(self, run_id: str) -> None:
        """Forget it, which is decided, or taken back. Twice is safe."""
        self._timers.forget(run_id)

    async def _expire(self, run_id: str) -> None:
        """End a wait that the manifest limits, unless it has ended by itself."""
        run = await self._runs.run(run_id)
        # guard of promise 2: an alarm ends what has expired -> NoDecisionTests.test_expires
        if run.state is RunState.PENDING:
            event = self._runs.events.of_run("approval.expired", run)
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._runs.apply(transition(run, RunState.EXPIRED, event.at, event))

    def stop(self) -> None:
        """Forget all alarms, of whatever kind."""
        self._timers.stop()
