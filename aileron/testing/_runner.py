"""A runner whose outcomes a test determines, for tests of the API and of other parts that need no real effects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import define, evolve, field
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.json import JSON, utc
from aileron.base.json import digest as digest_of
from aileron.base.load_error import LoadError
from aileron.base.waiting import Waiting
from aileron.model.actions import Action, ApprovalRule, ConnectorPin, Offer, Offering, Step
from aileron.model.audit import Actor
from aileron.model.connectors import Finding
from aileron.model.errors import ApprovalStale, CapabilityDenied, Conflict, InvalidRequest, NotFound
from aileron.model.faults import Fault
from aileron.model.interfaces.governance import IGrantService, ILimitService, IReconciliation, ITrustService
from aileron.model.interfaces.runner import IDecisions, ISubmission
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Review, ReviewedArgument
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Call, Decision, DryRun, Run, RunState, StepRow

from ._scripted_trust import ScriptedTrust

_WITHDRAWABLE = frozenset((RunState.PENDING, *NOT_BEGUN))

_STRANGE = "<script>\u202e"


def scripted_offer(name: str = "ship-update", *, gated: bool = True, enabled: bool = True) -> Offer:
    """Return an offer of an action with one step and one argument, C{text}."""
    action = Action(
        name=name,
        version="1.0.0",
        source=f"local://me/{name}@1.0.0",
        intent="Tell the team",
        description=f"Does {name}.",
        tool_name=name.replace("-", "_"),
        connectors=(ConnectorPin("local://test/scripted", "1.0.0", ("post",)),),
        inputs=(),
        steps=(Step("post", "local://test/scripted", "post", {"text": "${args.text}"}),),
        approval=ApprovalRule(gated=gated),
        timeout_seconds=60.0,
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False},
        digest=digest_of(name),
        path=f"{name}.md",
    )
    return Offer(action, enabled, read_only=False, idempotent=False)


@implementer(ISubmission, IDecisions, ITrustService, IGrantService, ILimitService, IReconciliation)
@define
class ScriptedRunner(ScriptedTrust):
    """A runner that stores runs in memory.

    Gated runs wait for L{decide}, ungated ones end in C{usual} or by L{finish}.

    :ivar usual: the state that an ungated run reaches within L{submit}. Its output is its arguments.
    :ivar refusal: an exception that the next L{submit} raises, once.
    :ivar calls: all submitted calls, in order.
    :ivar findings: the results of searches for effects.
    :ivar reconcilable: whether effects can be searched for.
    :ivar earlier: the precedents by run. Runs without an entry have none.
    """

    clock: IReactorTime = field(factory=Clock)
    usual: RunState = RunState.COMPLETED
    refusal: Exception | None = None
    calls: list[Call] = field(factory=list)
    findings: list[Finding] = field(factory=list)
    reconcilable: bool = True
    earlier: dict[str, Precedents] = field(factory=dict)
    _offering: Offering = field(factory=lambda: Offering(1, {}), init=False)
    _runs: dict[str, Run] = field(factory=dict, init=False)
    _approvals: dict[str, Approval] = field(factory=dict, init=False)
    _settled: dict[str, Waiting] = field(factory=lambda: defaultdict(Waiting), init=False)
    _told: Waiting = field(factory=Waiting, init=False)

    @classmethod
    def of(cls, *offers: Offer, clock: IReactorTime | None = None) -> ScriptedRunner:
        """Return a runner that offers C{offers}."""
        runner = cls(clock or Clock())
        runner.offer(*offers)
        return runner

    # what a test says -------------------------------------------------------------------------------------------------

    def offer(self, *offers: Offer, load_errors: Iterable[LoadError] = ()) -> None:
        """Replace the offers, which are the actions that agents can call, and notify those who wait for a change."""
        named = {offer.action.name: offer for offer in offers}
        self._offering = Offering(self._offering.generation + 1, named, tuple(load_errors))
        self._told.fire()

    def finish(self, run_id: str, state: RunState = RunState.COMPLETED, **changes: Any) -> Run:
        """Set the state and other fields of a run, and notify its waiters if the state is final. Return the run.

        :raises NotFound: if there is no such run.
        """
        run = self._present(run_id)
        changed = evolve(run, state=state, changed_at=self._now(), audit_id=f"audit-{run_id}", **changes)
        self._runs[run_id] = changed
        if run_id in self._approvals:
            self._approvals[run_id] = evolve(self._approvals[run_id], run=changed)
        if state.settled:
            self._settled[run_id].fire()
        return changed

    def restage(self, run_id: str, review: str) -> Approval:
        """Change the digest of a pending run's approval, as if its action file had changed, and return the approval.

        :param review: the text that the approval then shows.
        """
        approval = evolve(self._approvals[run_id], digest=digest_of(review), stale="the action file changed")
        self._approvals[run_id] = approval
        return approval

    # its interfaces ---------------------------------------------------------------------------------------------------

    def offering(self) -> Offering:
        """Return the offers that the test set."""
        return self._offering

    async def offering_after(self, generation: int, seconds: float) -> Offering:
        """Return the offering once its generation differs, or after C{seconds}."""
        if self._offering.generation == generation:
            await self._wait(self._told, seconds)
        return self._offering

    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        """Enable or disable an offer, and return it.

        :raises NotFound: if there is no such action.
        """
        changed = evolve(self._offer(name), enabled=enabled)
        self.offer(*{**self._offering.offers, name: changed}.values(), load_errors=self._offering.load_errors)
        return changed

    async def submit(self, call: Call) -> Run:
        """Store a call as a run, and return the run. The only argument of every action is C{text}.

        Raise C{refusal} if it is set.

        :raises Conflict: if the action is switched off.
        :raises InvalidRequest: if the call has another argument.
        :raises NotFound: if there is no such action.
        """
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal
        offer = self._offer(call.action)
        if not offer.enabled:
            raise Conflict("This action is switched off.", {"enabled": False})
        known = self._find_known(call)
        if known is not None:
            return known
        problems = [(f"/args/{name}", "is unknown") for name in call.arguments if name != "text"]
        if problems:
            raise InvalidRequest.listing("These arguments do not fit.", *problems)
        self.calls.append(call)
        return self._start(call, offer)

    def dry_run(self, name: str, arguments: Any) -> DryRun:
        """Return a call as it would be stored, without storing it.

        :raises NotFound: if there is no such action.
        """
        offer = self._offer(name)
        gated = evolve(offer, action=evolve(offer.action, approval=ApprovalRule(gated=True)))
        run = self._start(Call(name, arguments, Actor("human", "operator")), gated)
        return DryRun(self._approvals.pop(self._runs.pop(run.id).id), offer, ())

    async def undo(self, run_id: str, actor: Actor) -> Run:
        """Submit the inverse of the run's action with the run's arguments, or return the run that did this before.

        :raises Conflict: if the run is not completed.
        :raises CapabilityDenied: if the action has no inverse.
        :raises NotFound: if there is no such run.
        :raises InvalidRequest: if the inverse does not accept the arguments.
        """
        undone = self._present(run_id)
        inverse = self._offer(undone.action).action.inverse
        if undone.state is not RunState.COMPLETED:
            raise Conflict("It is not completed.", {"state": undone.state.value})
        if inverse is None:
            raise CapabilityDenied("The action does not say how it is undone.")
        known = next((run for run in self._runs.values() if run.undoes == run_id), None)
        return known or await self.submit(Call(inverse.action, undone.arguments, actor, undoes=run_id))

    async def wait(self, run_id: str, seconds: float) -> Run:
        """Wait until the test settles a run, at most C{seconds} by its clock, and return the run as it is then.

        :raises NotFound: if there is no such run.
        """
        if not self._present(run_id).state.settled:
            await self._wait(self._settled[run_id], seconds)
        return self._present(run_id)

    async def run(self, run_id: str) -> Run:
        """Return a run.

        :raises NotFound: if there is no such run.
        """
        return self._present(run_id)

    async def runs(self, query: RunQuery) -> Page[Run]:
        """Return runs, newest first."""
        found = tuple(self._find_matching(reversed(self._runs.values()), query))
        return Page(found[: query.limit], "more" if len(found) > query.limit else None)

    async def history(self, run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """Return a step and an attempt of a completed run, or the attempt of an unknown run, else nothing.

        :raises NotFound: if there is no such run.
        """
        run = self._present(run_id)
        if run.state is RunState.UNKNOWN:
            times = run.received_at, run.changed_at
            return (), (AttemptRow(run_id, "post", 1, "unknown", *times, run.fault, True, _STRANGE, "text/html"),)
        if run.state is not RunState.COMPLETED:
            return (), ()
        attempt = AttemptRow(run_id, "post", 1, "succeeded", run.received_at, run.changed_at, sent=True)
        return (StepRow(run_id, "post", 0, "succeeded", run.result),), (attempt,)

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        """Return the approval of a run.

        :raises NotFound: if the run has no approval.
        """
        if run_id not in self._approvals:
            raise NotFound("There is no such approval.")
        return self._approvals[run_id]

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        """Return approvals, oldest first, on one page."""
        gated = [run for run in self._runs.values() if run.id in self._approvals]
        return Page(tuple(self._approvals[run.id] for run in self._find_matching(gated, query))[: query.limit])

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """Return what the test put into C{earlier} for the run of each approval, or an empty entry."""
        return tuple(self.earlier.get(each.run.id, Precedents(0, True, {})) for each in approvals)

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """Record a decision. An approved run stays C{approved} until L{finish}.

        :raises Conflict: if the run is not pending.
        :raises ApprovalStale: if the decision names another digest.
        :raises NotFound: if the run has no approval.
        """
        approval = await self.approval(run_id)
        if approval.run.state is not RunState.PENDING:
            raise Conflict("It is decided already.", {"state": approval.run.state.value})
        if decision.digest != approval.digest:
            raise ApprovalStale("It was changed meanwhile: look again.", {"digest": approval.digest})
        self._approvals[run_id] = evolve(
            approval,
            approved=decision.approved,
            decided_at=self._now(),
            decided_by=decision.decided_by,
            reason=decision.reason,
            not_before=decision.not_before,
        )
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        self.finish(run_id, end, reason=decision.reason, start_after=decision.not_before)
        return self._approvals[run_id]

    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """Replace the arguments of a pending run. The digest becomes that of the arguments.

        :raises Conflict: if the run is not pending.
        :raises ApprovalStale: if C{digest} is neither None nor that of the approval.
        :raises NotFound: if the run has no approval.
        """
        approval = await self.approval(run_id)
        if approval.run.state is not RunState.PENDING:
            raise Conflict("It is decided already.", {"state": approval.run.state.value})
        if digest not in (None, approval.digest):
            raise ApprovalStale("It was changed meanwhile: look again.", {"digest": approval.digest})
        run = evolve(approval.run, arguments=arguments, asked=approval.run.asked_for)
        self._runs[run_id] = run
        self._approvals[run_id] = evolve(approval, run=run, digest=digest_of(arguments), review=_review(arguments))
        return self._approvals[run_id]

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """Cancel a run that has not started.

        :raises Conflict: if the run has started or ended.
        :raises NotFound: if there is no such run.
        """
        run = self._present(run_id)
        if run.state not in _WITHDRAWABLE:
            raise Conflict("It is too late.", {"state": run.state.value})
        return self.finish(run_id, RunState.CANCELLED, reason=reason)

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Complete a run of unknown outcome if C{happened}, or else fail it.

        :raises Conflict: if the run's outcome is not unknown.
        :raises NotFound: if there is no such run.
        """
        run = self._present(run_id)
        if run.state is not RunState.UNKNOWN:
            raise Conflict("Its outcome is not unknown.", {"state": run.state.value})
        return self.finish(run_id, RunState.COMPLETED if happened else RunState.FAILED, reason=note)

    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Return the next of C{findings} and the run, settled accordingly.

        If no finding is left, return a finding without an answer and the unchanged run.

        :raises Conflict: if the run's outcome is not unknown.
        :raises NotFound: if there is no such run.
        """
        run = self._present(run_id)
        if run.state is not RunState.UNKNOWN:
            raise Conflict("Its outcome is not unknown.", {"state": run.state.value})
        found = self.findings.pop(0) if self.findings else Finding(None)
        if found.happened is None:
            return run, found
        result = {"output": found.output, "steps": {}} if found.happened else None
        return self.finish(run_id, RunState.COMPLETED if found.happened else RunState.FAILED, result=result), found

    async def is_reconcilable(self, run_id: str) -> bool:
        """Return True if the run's outcome is unknown and C{reconcilable} is set.

        :raises NotFound: if there is no such run.
        """
        return self.reconcilable and self._present(run_id).state is RunState.UNKNOWN

    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """Store a pending run that repeats a run of unknown outcome.

        :raises Conflict: if the run's outcome is not unknown, or an earlier repetition has not ended.
        :raises NotFound: if there is no such run.
        """
        parent = self._present(run_id)
        open_ = [run for run in self._runs.values() if run.parent_id == run_id and not run.state.settled]
        if parent.state is not RunState.UNKNOWN or open_:
            raise Conflict("It is not to be done again now.", {"state": parent.state.value})
        offer = self._offer(parent.action)
        gated = evolve(offer, action=evolve(offer.action, approval=ApprovalRule(gated=True)))
        child = self._start(Call(parent.action, parent.arguments, actor), gated)
        self._runs[child.id] = child = evolve(child, parent_id=run_id, session_id=parent.session_id)
        fault = parent.fault or Fault("outcome_unknown", "The outcome is unknown.")
        self._runs[run_id] = evolve(parent, fault=fault.with_details(run_again=child.id), reason=note)
        return child

    async def progress(self, run: Run) -> str:
        """Return how many of several needed approvals there are, or an empty text."""
        return self._approvals[run.id].progress if run.id in self._approvals else ""

    async def pending(self, session_id: str | None) -> int:
        """Return the number of pending runs of one session, or of all."""
        return len(list(self._find_matching(self._runs.values(), RunQuery((RunState.PENDING,), session_id))))

    async def hold(self) -> None:
        """Wait until the test has settled every run that was active when this was called."""
        moving = (RunState.RECEIVED, RunState.APPROVED, RunState.EXECUTING)
        for run_id in [run.id for run in self._runs.values() if run.state in moving]:
            await self.wait(run_id, 3600)

    def _now(self) -> datetime:
        return utc(self.clock.seconds())

    def _offer(self, name: str) -> Offer:
        if name not in self._offering.offers:
            raise NotFound("There is no action of this name.")
        return self._offering.offers[name]

    def _present(self, run_id: str) -> Run:
        if run_id not in self._runs:
            raise NotFound(f"There is no run {run_id}.")
        return self._runs[run_id]

    def _find_known(self, call: Call) -> Run | None:
        session_id = None if call.session is None else call.session.id
        for run in self._runs.values() if call.idempotency_key is not None else ():
            if (run.session_id, run.action, run.idempotency_key) == (session_id, call.action, call.idempotency_key):
                if run.arguments != call.arguments:
                    raise Conflict("This idempotency key was used with other arguments.")
                return run
        return None

    def _start(self, call: Call, offer: Offer) -> Run:
        gated = offer.action.approval.gated or call.undoes is not None
        now = self._now()
        run = Run(
            id=f"run-{len(self._runs) + 1}",
            action=call.action,
            action_version=offer.action.version,
            manifest_digest=offer.action.digest,
            arguments=call.arguments,
            state=RunState.PENDING if gated else RunState.EXECUTING,
            gated=gated,
            effect_key=f"effect-{len(self._runs) + 1}",
            received_at=now,
            changed_at=now,
            session_id=None if call.session is None else call.session.id,
            idempotency_key=call.idempotency_key,
            undoes=call.undoes,
            owner=call.run_owner,
        )
        self._runs[run.id] = run
        if gated:
            self._approvals[run.id] = Approval(run, digest_of(run.id), _review(call.arguments), now)
        elif self.usual is not RunState.EXECUTING:
            return self.finish(run.id, self.usual, result={"output": dict(call.arguments), "steps": {}})
        return run

    def _find_matching(self, runs: Iterable[Run], query: RunQuery) -> Iterable[Run]:
        for run in runs:
            if (
                run.state in (query.states or (run.state,))
                and run.session_id == (query.session_id or run.session_id)
                and run.action == (query.action or run.action)
                and run.gated == (run.gated if query.gated is None else query.gated)
                and run.undoes == (query.undoes or run.undoes)
            ):
                yield run

    async def _wait(self, waiting: Waiting, seconds: float) -> None:
        await waiting.wait(over=False).addTimeout(seconds, self.clock, lambda _result, _seconds: None)


def _review(arguments: Mapping[str, JSON]) -> Review:
    return Review(arguments=tuple(ReviewedArgument(name, name, value) for name, value in arguments.items()))
