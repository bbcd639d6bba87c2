"""Writes what is found out of a run whose outcome is unknown, where a person has not settled it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from attrs import evolve, frozen

from aileron.errors import InternalError, NotFound, StateConflict
from aileron.runner.runs.plan import PlannedStep
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import Verify, transition
from aileron.values import (
    JSON,
    Approval,
    AttemptRow,
    BindingFlag,
    Event,
    Fault,
    Run,
    RunState,
    StepRow,
    Transition,
    compact,
)


@frozen
class UncertainEffect:
    """Names the one step of an C{unknown} run that may have happened: those before it were done, those after not.

    :ivar done: what the steps before it came to.
    :ivar last: whether it is the run's last step.
    """

    run: Run
    planned: PlannedStep
    position: int
    done: Mapping[str, JSON]
    last: bool

    @property
    def step_id(self) -> str:
        """The step's id."""
        return self.planned.step.id


@frozen
class LookupResult:
    """Holds what was found out, and all that is to be recorded with it.

    :ivar happened: L{None}: nothing, yet.
    :ivar fault: why it did not, where it did not; else ignored.
    :ivar events: the last is the one that tells of it.
    """

    happened: bool | None
    output: JSON = None
    fault: Fault | None = None
    events: tuple[Event, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    flags: tuple[BindingFlag, ...] = ()


@frozen
class OutcomeRecorder:
    """Writes what was found out: on the run while it is C{unknown}, else on record alone."""

    _runs: RunRepository

    async def write(self, doubt: UncertainEffect, found: LookupResult) -> Run:
        """Keep C{found}, however long the database refuses; the run as it then stands.

        It settles a run of which nothing else is open.  A run that stopped before its last step stays C{unknown}: of
        what it was to do a part was never begun, and a person says what is to come of that.
        """
        return await self.amend(doubt.run, lambda run: self._change(run, doubt, found), found.events)

    async def amend(self, run: Run, changed: Callable[[Run], Transition], events: tuple[Event, ...]) -> Run:
        """Apply to C{run} what C{changed} makes of it as it stands, while it is C{unknown}; else only record C{events}.

        :param changed: its transition is L{require_unchanged}'s to verify.
        """
        return await self._runs.insist(run.id, partial(self._amend, run, changed, events))

    async def _amend(self, present: Run, changed: Callable[[Run], Transition], events: tuple[Event, ...]) -> Run:
        while present.state is RunState.UNKNOWN:
            try:
                return await self._runs.apply(changed(present))
            except StateConflict as conflict:
                present = conflict.present
            except NotFound:
                break
        await self._runs.audit.append(*events)
        return present

    def _change(self, run: Run, doubt: UncertainEffect, found: LookupResult) -> Transition:
        step = StepRow(run.id, doubt.step_id, doubt.position, "completed", found.output)
        end, result, fault = _end(run, doubt, found)
        return transition(
            run,
            end,
            self._runs.events.now(),
            *found.events,
            result=result,
            fault=fault,
            steps=(step,) if found.happened else (),
            attempts=found.attempts,
            flags=found.flags,
            verify=require_unchanged(run),
        )


def explain_not_done(fault: Fault | None) -> Fault:
    """Explain why a run failed of which it was found out that it did not happen."""
    if fault is None or fault.kind == "outcome_unknown":
        because = "The daemon ended while this was being done; it was found out since that it did not happen."
        details = {} if fault is None else fault.details
        return InternalError(because, details).fault()
    return evolve(fault, message=f"It did not happen. {fault.message}")


def _end(run: Run, doubt: UncertainEffect, found: LookupResult) -> tuple[RunState, JSON, Fault | None]:
    """Where it brings the run, and with which result and fault."""
    if found.happened is None:
        return RunState.UNKNOWN, run.result, run.fault
    if not doubt.last:
        known: JSON = {"step": doubt.step_id, "happened": found.happened}
        return RunState.UNKNOWN, run.result, None if run.fault is None else run.fault.with_details(found=known)
    if found.happened:
        steps: JSON = {**doubt.done, doubt.step_id: found.output}
        return RunState.COMPLETED, {"output": found.output, "steps": steps}, None
    return RunState.FAILED, None, found.fault or explain_not_done(run.fault)


def require_unchanged(read: Run) -> Verify:
    """Make a check that raises L{StateConflict} where the row is no longer as it was read."""

    def verify(row: Run, approval: Approval | None) -> None:
        if _standing(row) != _standing(read):
            raise StateConflict(row)

    return verify


def _standing(run: Run) -> tuple[object, ...]:
    """What others may have written, as it is kept."""
    return run.state, run.changed_at, run.reason, compact(None if run.fault is None else run.fault.as_json())
