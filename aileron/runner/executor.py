"""Executes runs. Only this module calls connectors, and never before the C{executing} row is committed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.base.json import JSON
from aileron.base.waiting import afterwards, notes_of
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.connectors import READ, Finding, Outcome, Request, Sought
from aileron.model.errors import (
    AileronError,
    CapabilityDenied,
    Forbidden,
    NotFound,
    ResourceLimitExceeded,
    StateConflict,
    StoreUnavailable,
    VaultLocked,
)
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IStreamingConnector
from aileron.model.interfaces.vault import IBindings, ICredential
from aileron.model.people import Owner
from aileron.model.runs import Approval, AttemptRow, Progress, Run, RunState, StepRow, Transition
from aileron.model.streams import StreamedAnswer
from aileron.model.traces import TraceSource
from aileron.model.vault import BindingFlag

from .caps import Caps
from .effect_gate import EffectGate
from .outcomes import (
    LATE_SECONDS,
    LateAnswer,
    LateAnswers,
    Meaning,
    RetryPolicy,
    UncertainEffect,
    cancel_answer,
    classify,
    describe_attempt,
    find_echoes,
    in_time,
    with_retries,
)
from .plan import Plan, PlannedStep, PlanOutline
from .runs import RunRepository, Verify, require_unchanged, transition

_Answer = TypeVar("_Answer")
_SendRead = Callable[[Request, ICredential | None], Coroutine[Any, Any, _Answer]]

_log = Logger()
_STOPPED = Outcome(
    fault=Fault("outcome_unknown", "The daemon stopped before an answer came.", "runtime"), sent=True, classified=False
)
_PAUSED = Outcome(
    fault=Fault("paused", "Everything was paused until the time was up; this request was not sent.", "runtime"),
    sent=False,
)
_BROKEN = Outcome(
    fault=Fault("connector_runtime_error", "The connector failed in a way it does not declare.", "sandbox"),
    sent=True,
    classified=False,
)


_MOST_WAIT_SECONDS = 60.0
"""The longest time from the plan of a run to the transaction that starts it."""

_TAKEN_OVER = (RunState.UNKNOWN, RunState.COMPLETED, RunState.FAILED)
"""The states that another daemon may have given to a run whose daemon was silent for too long."""


@define(eq=False)
class _Execution:
    """The progress of one executing run: its outputs, and the attempts and events that are not stored yet."""

    run: Run
    plan: Plan
    deadline: float
    current: AttemptRow
    in_doubt: bool = field(default=False, init=False)  # an attempt may have had its effect, and no later one succeeded
    doubted: bool = field(default=False, init=False)  # the value of in_doubt before the last attempt
    late: Deferred[Outcome] | None = field(default=None, init=False)  # the response of the last attempt, if overdue
    outputs: dict[str, JSON] = field(factory=dict, init=False)
    steps: tuple[StepRow, ...] = field(default=(), init=False)  # completed and not yet stored
    attempts: tuple[AttemptRow, ...] = field(default=(), init=False)  # ended and not yet stored
    events: tuple[Event, ...] = field(default=(), init=False)  # not yet stored
    flags: tuple[BindingFlag, ...] = field(default=(), init=False)  # not yet stored
    ending: Transition | None = field(default=None, init=False)  # the end of the run, once it is known
    built: Request | None = field(default=None, init=False)  # the present request, if it was built from earlier outputs
    told: tuple[Mapping[str, JSON], ...] = field(default=(), init=False)  # all ended attempts, for the last event


@define(eq=False)
class Executor:
    """Executes plans step by step. Every attempt is stored before its first byte is sent.

    :param probe: called with the name of each point at which tests simulate a crash. In production it does nothing.
    :ivar traces: the trace context of requests.
    """

    _runs: RunRepository
    _bindings: IBindings
    _clock: IReactorTime
    _retry: RetryPolicy
    _effects: EffectGate
    _caps: Caps
    _late_answers: LateAnswers
    _probe: Callable[[str], None]
    traces: TraceSource = field(factory=TraceSource, init=False)

    def opening(self, run: Run, plan: Plan, *, actor: Actor = DAEMON, verify: Verify | None = None) -> Transition:
        """Return the transition by which a run starts executing, with the first attempt's row.

        Commit it before calling L{carry_out}.

        :param run: the run in its approved state.
        :param actor: the actor who starts the run.
        :param verify: a further check inside the transaction, or None.
        :raises LimitExceeded: if an argument has more values than can be counted.
        """
        pinned: JSON = [planned.pinned() for planned in plan.steps]
        event = self._runs.event_of_run(
            "execution.started",
            run,
            actor,
            connector=plan.steps[0].description.name,
            arguments=run.arguments,
            steps=pinned,
        )
        charges = self._caps.charges(plan, run.arguments, run.session_id)
        first = AttemptRow(run.id, plan.steps[0].step.id, 1, "started", event.at)
        verify = self._effects.guard_opening(self._require_recent(event.at, verify))
        return transition(run, RunState.EXECUTING, event.at, event, attempts=(first,), verify=verify, charges=charges)

    def _require_recent(self, planned_at: datetime, verify: Verify | None) -> Verify:
        """Return a check for the transaction that starts a run: the run was planned shortly before, by the same clock.

        Expiries, start times and limits were compared with the time of the plan. If the clock was set since, that time
        was wrong.

        :param verify: a further check to call, or None.
        """

        def check(run: Run, approval: Approval | None) -> None:
            # guard of several daemons: what was planned by a wrong clock is not begun by a right one
            #    -> runner.test_several.ClockTests.test_set
            if abs((self._runs.now() - planned_at).total_seconds()) > _MOST_WAIT_SECONDS:
                raise StoreUnavailable("The clock was set, or the database took too long. Nothing was sent. Try again.")
            if verify is not None:
                verify(run, approval)

        return check

    async def carry_out(self, run: Run, plan: Plan, opening: Transition) -> Run:
        """Execute a run whose C{opening} is committed, and return the ended run.

        If this is cancelled, the present attempt is stopped and the run is stored as uncertain.
        """
        self._probe("executing")
        deadline = self._clock.seconds() + plan.action.timeout_seconds
        execution = _Execution(run, plan, deadline, opening.attempts[0])
        return await afterwards(self._go_to_its_end(execution), lambda: _hang_up(execution))

    async def _go_to_its_end(self, execution: _Execution) -> Run:
        try:
            return await self._go_through(execution)
        except StateConflict as conflict:
            return await self._contested(execution, conflict.present, conflict.present.state.value)
        except NotFound:
            return await self._contested(execution, execution.run, "gone")

    async def _go_through(self, execution: _Execution) -> Run:
        plan = execution.plan
        for position, planned in enumerate(plan.steps):
            outcome = await self._step(execution, position, planned)
            # guard of promise 5: a failed step ends the run -> OnceTests.test_steps
            if outcome.fault is not None:
                return await self._stop(execution, position, outcome.fault)
        return await self._complete(execution)

    async def abandon(self, run: Run, plan: Plan, opening: Transition, fault: Fault, *found: Event) -> Run:
        """End a run whose C{opening} is committed as failed with C{fault}. Nothing is sent.

        :param opening: the transition from L{opening}.
        :param found: further events to record.
        """
        now = self._runs.now()
        ended = [evolve(begun, state="failed", ended_at=now, fault=fault, sent=False) for begun in opening.attempts]
        connector = plan.steps[0].description.name
        event = self._runs.event_of_run("execution.failed", run, fault=fault, connector=connector)
        ending = transition(run, RunState.FAILED, now, *found, event, attempts=tuple(ended), fault=fault)
        return await self._runs.insist(run.id, lambda: self._runs.apply(ending))

    async def _step(self, execution: _Execution, position: int, planned: PlannedStep) -> Outcome:
        """Attempt one step, with retries, until it succeeds, cannot be retried or the time is up.

        If the run is paused, wait. The time passes meanwhile.

        :return: the outcome of the last attempt.
        """
        number, outcome = 0, _PAUSED
        while True:
            number += 1
            if position or number > 1:
                await self._effects.learn_rates()
                if not await self._not_paused(execution):
                    return with_retries(outcome, max(0, number - 2))
                await self._note_attempt(execution, planned, number)
                if not await self._not_paused(execution):  # a pause may have begun during the write
                    self._keep(execution, position, planned, _PAUSED)
                    return with_retries(outcome, max(0, number - 2))
            outcome = await self._attempt(execution, planned)
            self._probe("answered")
            self._keep(execution, position, planned, outcome)
            delay = self._retry.delay(outcome, planned.idempotent, number, self._remaining_seconds(execution))
            if delay is None or not await self._pause(delay):
                return with_retries(outcome, number - 1)

    async def _not_paused(self, execution: _Execution) -> bool:
        return await self._effects.wait_unpaused(execution.run.session_id, self._remaining_seconds(execution))

    async def _attempt(self, execution: _Execution, planned: PlannedStep) -> Outcome:
        execution.built = None
        try:
            await self._effects.in_turn(planned, execution.run, self._remaining_seconds(execution))
            request = execution.plan.request_for(planned, execution.run.effect_key, execution.outputs)
            execution.built = None if planned.request is not None else request
            return self._effects.note_rate(
                planned, await self._send(execution, planned, self._add_trace(execution.run, planned, request))
            )
        except CancelledError as stopped:
            # guard of promise 5: a cancelled effect is uncertain -> DoubtTests.test_stopped,
            #    instead return Outcome(fault=_STOPPED.fault, sent=False)
            return evolve(_STOPPED, notes=notes_of(stopped))
        except AileronError as error:  # by contract raised before anything is sent
            return Outcome(fault=error.fault(), sent=False)
        except Exception:  # noqa: BLE001 - connectors are foreign code and may raise anything
            _log.failure("the connector {fqn} broke its contract", fqn=planned.description.name, run=execution.run.id)
            # guard of promise 5: a broken contract makes the effect uncertain -> DoubtTests.test_broken_connector,
            #    instead return Outcome(fault=_BROKEN.fault, sent=False)
            return _BROKEN

    async def _send(self, execution: _Execution, planned: PlannedStep, request: Request) -> Outcome:
        credential = self._credential(planned, execution.run.owner)
        seconds = min(self._remaining_seconds(execution), planned.operation.timeout_seconds)
        if seconds <= 0.0:
            raise ResourceLimitExceeded("The action ran out of time before this request; it was not sent.")
        if planned.effect == READ:
            return await planned.connector.read(request, credential, seconds)
        answer = Deferred.fromCoroutine(planned.connector.invoke(request, credential, seconds, LATE_SECONDS))
        outcome = await in_time(answer, seconds, self._clock)
        if outcome is not None:
            return outcome
        execution.late = answer
        slow = ResourceLimitExceeded(f"{planned.description.name} did not answer within {seconds:g} seconds.")
        return Outcome(fault=slow.fault(), classified=False)

    def _add_trace(self, run: Run, planned: PlannedStep, request: Request) -> Request:
        """Return the request with the header C{traceparent} if its connector is declared to get one.

        The header is in no digest, and alike in each attempt of the step.
        """
        # guard of monitoring: only declared services get the trace header
        #    -> runner.test_traces.TraceTests.test_undeclared
        if not planned.description.traced:
            return request
        parent = self.traces.find(run.id, planned.step.id)
        if parent is None or any(name.lower() == "traceparent" for name, _ in request.headers):
            return request
        return evolve(request, headers=(*request.headers, ("traceparent", parent)))

    def _credential(self, planned: PlannedStep, owner: Owner | None) -> ICredential | None:
        """Return the unopened credential of a step, or None if it has none.

        :param owner: the owner of the run or the session for which it is sent, or None for the operator.
        :raises Forbidden: if the credential belongs to another account.
        """
        if planned.binding is None:
            return None
        # guard of roles: a person's credential is used for that person's agents alone
        #    -> runner.test_personal.ExecutorTests.test_another
        if not planned.binding.serves(owner):
            raise Forbidden(f"The credential {planned.binding.name} belongs to another person. Nothing was sent.")
        description = planned.description
        scope = description.scope(planned.base_url, description.sealed_variables(planned.binding.scope))
        if scope is None:
            return None
        return self._bindings.credential(planned.binding, scope)

    async def make_ready(self, outline: PlanOutline, owner: Owner | None) -> None:
        """Renew the expiring credentials of a run's steps and preview.

        :param owner: the run's owner, or None for the operator.
        :raises Forbidden: if a credential belongs to another account.
        :raises CredentialNeedsYou: if a person must renew one.
        :raises AileronError: if a credential cannot be opened or renewed now.
        """
        for planned in (*outline.steps, *((outline.read,) if outline.read else ())):
            credential = self._credential(planned, owner)
            if credential is not None:
                await credential.make_ready()

    async def look(self, planned: PlannedStep, sought: Sought, owner: Owner | None, seconds: float) -> Finding:
        """Ask the service, with reads only, whether the effect of a step happened, and return the finding.

        Cancelling closes the connection. If the connector fails unexpectedly, log that, and return an undecided
        finding.

        :raises CapabilityDenied: if the connector cannot look up this operation.
        :raises BindingFailed, VaultLocked: if the credential cannot be opened now.
        """
        try:
            return await planned.connector.reconcile(sought, self._credential(planned, owner), seconds)
        except (CancelledError, AileronError):
            raise
        except Exception:  # noqa: BLE001 - connectors are foreign code and may raise anything
            _log.failure("the connector {fqn} broke its contract", fqn=planned.description.name)
            return Finding(None, fault=_BROKEN.fault)

    async def preview(self, planned: PlannedStep, owner: Owner | None, seconds: float) -> Outcome:
        """Send the read of a preview once, and return its outcome within C{seconds}.

        Cancelling closes the connection. Every other failure, also a timeout, is returned as an outcome.

        :raises CapabilityDenied: if the connector does not declare the operation as an idempotent read.
        :raises VaultLocked: if the credential cannot be opened now.
        """
        connector = planned.connector
        outcome = await self._read(planned, owner, seconds, lambda request, key: connector.read(request, key, seconds))
        return self._effects.note_rate(planned, outcome, of_preview=True)

    async def open_read(
        self, planned: PlannedStep, owner: Owner | None, seconds: float, scope: str
    ) -> Outcome | StreamedAnswer:
        """Send a read of an agent's tool, and return its outcome, or its opened answer if it is long.

        Cancelling closes the connection. Every other failure, also a timeout, is returned as an outcome.

        :param seconds: the time within which the answer must begin.
        :param scope: see L{IStreamingConnector.open_read}.
        :raises CapabilityDenied: if the connector does not declare the operation as an idempotent read.
        :raises VaultLocked: if the credential cannot be opened now.
        """
        connector: Any = IStreamingConnector(planned.connector, None)
        if connector is None:
            return await self.preview(planned, owner, seconds)
        opened = await self._read(
            planned, owner, seconds, lambda request, key: connector.open_read(request, key, seconds, scope)
        )
        outcome = opened.outcome if isinstance(opened, StreamedAnswer) else opened
        self._effects.note_rate(planned, outcome, of_preview=True)
        return opened

    async def _read(
        self, planned: PlannedStep, owner: Owner | None, seconds: float, send: _SendRead[_Answer]
    ) -> _Answer | Outcome:
        """Send an idempotent read once, and return its answer within C{seconds}, or the outcome of its failure.

        :raises CapabilityDenied, VaultLocked: as L{preview} does.
        """
        if planned.request is None or planned.effect != READ or not planned.idempotent:
            raise CapabilityDenied("Only an idempotent read shows a preview.")
        try:
            read = send(planned.request, self._credential(planned, owner))
            return await Deferred.fromCoroutine(read).addTimeout(seconds, self._clock)
        except (CancelledError, VaultLocked):
            raise
        except Overdue:
            return Outcome(fault=ResourceLimitExceeded(f"No answer came within {seconds:g} seconds.").fault())
        except AileronError as error:  # by contract raised before anything is sent
            return Outcome(fault=error.fault(), sent=False)
        except Exception:  # noqa: BLE001 - connectors are foreign code and may raise anything
            _log.failure("the connector {fqn} broke its contract", fqn=planned.description.name)
            return _BROKEN

    async def _pause(self, seconds: float) -> bool:
        """Wait for C{seconds}. Return False if the daemon stops meanwhile."""
        try:
            await deferLater(self._clock, seconds)
        except CancelledError:
            return False
        return True

    async def _note_attempt(self, execution: _Execution, planned: PlannedStep, number: int) -> None:
        """Store that another attempt begins, with the attempts and steps that ended before it."""
        begun = AttemptRow(execution.run.id, planned.step.id, number, "started", self._runs.now())
        execution.current = begun
        events = (*execution.events, *self._list_failed_attempts(execution))
        rows = (*execution.attempts, begun)
        progress = Progress(execution.run.id, events, execution.steps, rows, execution.flags)
        await self._runs.insist(execution.run.id, lambda: self._runs.record_progress(progress))
        execution.steps = execution.attempts = execution.events = execution.flags = ()

    def _list_failed_attempts(self, execution: _Execution) -> Iterator[Event]:
        """Yield an C{execution.attempt} event for each failed attempt that is not stored yet.

        The event at the end of the run describes all attempts too, including these.
        """
        ended = len(execution.attempts)
        for row, went in zip(execution.attempts, execution.told[len(execution.told) - ended :], strict=True):
            if row.fault is not None:
                shown = {name: went[name] for name in ("started_at", "ended_at", "sent", "status")}
                yield self._runs.event_of_run(
                    "execution.attempt",
                    execution.run,
                    fault=row.fault,
                    step=row.step_id,
                    attempt=row.number,
                    went=shown,
                )

    def _keep(self, execution: _Execution, position: int, planned: PlannedStep, outcome: Outcome) -> None:
        """Add the outcome of an attempt to C{execution}, to be stored with the next write."""
        read = classify(outcome, planned.effect)
        begun = execution.current
        which = (begun.run_id, begun.step_id, begun.number)
        took = begun.started_at, self._runs.now()
        ended = AttemptRow(*which, read.value, *took, outcome.fault, outcome.sent, *outcome.kept_answer)
        execution.attempts = (*execution.attempts, ended)
        execution.told = (*execution.told, describe_attempt(ended, outcome, execution.built))
        execution.doubted = execution.in_doubt
        # guard of promise 5: a run stays uncertain until an attempt succeeds -> DoubtTests.test_doubt_stays,
        #    instead execution.in_doubt = read is Meaning.IN_DOUBT
        execution.in_doubt = read is Meaning.IN_DOUBT or (execution.in_doubt and read is not Meaning.DONE)
        if read is Meaning.DONE:
            execution.outputs[planned.step.id] = outcome.output
            done = StepRow(execution.run.id, planned.step.id, position, "completed", outcome.output)
            execution.steps = (*execution.steps, done)
        echoed = find_echoes(self._runs.events, execution.run, planned, outcome)
        execution.events, execution.flags = (*execution.events, *echoed.events), (*execution.flags, *echoed.flags)

    async def _complete(self, execution: _Execution) -> Run:
        last = execution.plan.steps[-1].step.id
        result: JSON = {"output": execution.outputs[last], "steps": dict(execution.outputs)}
        return await self._end(execution, RunState.COMPLETED, "execution.succeeded", result=result)

    async def _stop(self, execution: _Execution, position: int, fault: Fault) -> Run:
        step = execution.plan.steps[position].step
        fault = fault.with_details(step=step.id, steps_done=list(execution.outputs))
        if execution.in_doubt or any(planned.effect != READ for planned in execution.plan.steps[:position]):
            fault = evolve(fault, retriable=False)  # a repeated run could repeat an effect
        # guard of promise 5: an uncertain run ends as unknown -> DoubtTests.test_stopped, instead if True
        if not execution.in_doubt:
            return await self._end(execution, RunState.FAILED, "execution.failed", fault)
        ended = await self._end(execution, RunState.UNKNOWN, "execution.unknown", fault)
        self._listen(execution, position, ended)
        return ended

    def _listen(self, execution: _Execution, position: int, run: Run) -> None:
        """If the last attempt timed out and its response may still arrive, wait for it in the background and record it.

        :param run: the run, already stored as uncertain.
        """
        steps, answer = execution.plan.steps, execution.late
        if answer is not None:
            done, last = dict(execution.outputs), position == len(steps) - 1
            doubt = UncertainEffect(run, steps[position], position, done, last)
            execution.late = None
            self._late_answers.listen(
                LateAnswer(doubt, execution.attempts[-1], execution.built, not execution.doubted), answer
            )

    async def _end(
        self, execution: _Execution, state: RunState, type_: str, fault: Fault | None = None, result: JSON = None
    ) -> Run:
        connector = execution.plan.steps[-1].description.name
        event = self._runs.event_of_run(type_, execution.run, fault=fault, connector=connector, attempts=execution.told)
        ending = transition(
            execution.run,
            state,
            event.at,
            *execution.events,
            event,
            steps=execution.steps,
            attempts=execution.attempts,
            flags=execution.flags,
            result=result,
            fault=fault,
        )
        execution.ending, execution.events = ending, ending.events  # for L{_contested}, if the row was changed
        run = await self._runs.insist(execution.run.id, lambda: self._runs.apply(ending))
        _log.info("run {run} of {action} ended: {state}", run=run.id, action=run.action, state=run.state.value)
        return run

    async def _contested(self, execution: _Execution, present: Run, state: str) -> Run:
        """Record that another program changed the row of an executing run. The row stays as it is.

        :param present: the run as the changed row has it, returned unchanged.
        :param state: the state in which the run should have been.
        """
        # guard of several daemons: the end of an effect that another daemon took for lost is recorded as late
        #    -> runner.test_several.LateTests.test_completed
        if self._runs.shared and present.state in _TAKEN_OVER:
            return await self._record_late(execution, present)
        found = "The run's row was changed while it was carried out."
        done = list(execution.outputs)
        event = self._runs.event_of_run(
            "tamper.detected", execution.run, row="runs", found=found, state=state, steps_done=done
        )
        await self._runs.insist(execution.run.id, lambda: self._runs.record(event, *execution.events))
        return present

    async def _record_late(self, execution: _Execution, present: Run) -> Run:
        """Record the end of an effect whose run another daemon stored as C{unknown} after this one's lease ended.

        :return: the run afterwards. If this daemon knows for certain how the effect ended, the run is settled.
        """
        ending = execution.ending
        end = RunState.UNKNOWN if ending is None else ending.end
        certain = {RunState.COMPLETED: True, RunState.FAILED: False}.get(end)
        event = self._runs.event_of_run(
            "execution.late_answer",
            execution.run,
            fault=None if ending is None else ending.fault,
            connector=execution.plan.steps[-1].description.name,
            happened=certain,
            last=certain is not None,
            attempts=execution.told,
        )
        events = (*(execution.events if ending is None else ending.events[:-1]), event)

        def change(run: Run) -> Transition:
            return transition(
                run,
                end,
                event.at,
                *events,
                steps=execution.steps,
                attempts=execution.attempts,
                flags=execution.flags,
                result=run.result if ending is None or certain is None else ending.result,
                fault=run.fault if ending is None or certain is None else ending.fault,
                verify=require_unchanged(run),
            )

        return await self._runs.amend(present, change, events)

    def _remaining_seconds(self, execution: _Execution) -> float:
        """Return the seconds left of the action's timeout. Setting the clock back does not make them more."""
        left = execution.deadline - self._clock.seconds()
        return max(0.0, min(left, execution.plan.action.timeout_seconds))


def _hang_up(execution: _Execution) -> None:
    """Cancel the request that timed out, if there is one and its response is not awaited by L{LateAnswers}."""
    if execution.late is not None:
        cancel_answer(execution.late)
