"""Classifies the outcomes of attempts, waits for late responses, and records findings about uncertain runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.converter import to_json
from aileron.base.json import JSON, compact, digest_of_bytes, timestamp
from aileron.base.waiting import notes_of
from aileron.model.audit import Event
from aileron.model.connectors import READ, Finding, Outcome, Request
from aileron.model.errors import InternalError, ResourceLimitExceeded
from aileron.model.faults import Fault
from aileron.model.reviews import ReviewedRequest
from aileron.model.runs import AttemptRow, Run, RunState, StepRow, Transition
from aileron.model.vault import BindingFlag

from .plan import PlannedStep
from .runs import EventFactory, RunRepository, require_unchanged, transition
from .tasks import Tasks

MAX_RETRIES = 3
_FIRST_DELAY_SECONDS = 1.0
_JITTER = 0.2
_RETRIED_KINDS = frozenset({"network_error", "external_api_error"})


class Meaning(Enum):
    """The classified outcome of an attempt, stored in its row. C{IN_DOUBT} means that the effect may have happened."""

    DONE = "succeeded"
    NOT_DONE = "failed"
    IN_DOUBT = "unknown"


def classify(outcome: Outcome, effect: str) -> Meaning:
    """Return the meaning of one attempt's outcome.

    If a write was sent and the connector does not classify its failure, the attempt is in doubt.

    :param effect: C{read} or C{write}.
    """
    if outcome.fault is None:
        return Meaning.DONE
    if effect == READ or outcome.classified or not outcome.sent:
        return Meaning.NOT_DONE
    # guard of promise 5: a write that was sent and not classified is uncertain -> DoubtTests.test_no_answer,
    #    instead return Meaning.NOT_DONE
    return Meaning.IN_DOUBT


@frozen
class RetryPolicy:
    """Allows at most three retries, after 1, 2 and 4 seconds, each stretched at random by up to a fifth.

    :param chance: returns a random number, uniform in [0, 1).
    """

    _chance: Callable[[], float]

    def delay(self, outcome: Outcome, idempotent: bool, attempts: int, remaining_seconds: float) -> float | None:
        """Return the seconds to wait before the next attempt, or None if there must be none.

        A retry is made only after a temporary failure of the network or the service, and only if a second request does
        no harm: the operation is idempotent, or no byte of the first request was sent. C{Retry-After} is honoured.

        :param attempts: the number of attempts made so far.
        :param remaining_seconds: the rest of the action's timeout. A retry that would start later is not made.
        """
        fault = outcome.fault
        if fault is None or not fault.retriable or fault.kind not in _RETRIED_KINDS:
            return None
        # guard of promise 5: the number of attempts is limited -> OnceTests.test_attempts_end
        if attempts > MAX_RETRIES:
            return None
        # guard of promise 5: only idempotent requests are sent again -> DoubtTests.test_no_answer
        if outcome.sent and not idempotent:
            return None
        backoff = _FIRST_DELAY_SECONDS * 2 ** (attempts - 1) * (1 + _JITTER * self._chance())
        delay = max(backoff, outcome.retry_after_seconds or 0.0)
        return delay if delay < remaining_seconds else None


def with_retries(outcome: Outcome, retried: int) -> Outcome:
    """Return C{outcome} with the number of retries added to its fault, if it has a fault."""
    if outcome.fault is None:
        return outcome
    return evolve(outcome, fault=outcome.fault.with_details(retried=retried))


def describe_attempt(ended: AttemptRow, outcome: Outcome, built: Request | None) -> dict[str, JSON]:
    """Return the description of an ended attempt for the audit log, with the digest and size of its output.

    The output itself is in the run's row.

    :param built: the request, if it was built from outputs of earlier steps. Otherwise the event C{execution.started}
        has the request, and C{built} is None.
    """
    return {
        "step": ended.step_id,
        "attempt": ended.number,
        "state": ended.state,
        "started_at": timestamp(ended.started_at),
        "ended_at": None if ended.ended_at is None else timestamp(ended.ended_at),
        "sent": outcome.sent,
        "status": outcome.status,
        **({"output": _measure(outcome.output)} if outcome.fault is None else {"failure": to_json(outcome.fault)}),
        **({} if built is None else {"request": to_json(ReviewedRequest.of(built))}),
        **{name: outcome.notes[name] for name in ("refused", "api", "changed") if name in outcome.notes},
    }


def _measure(output: JSON) -> JSON:
    text = compact(output).encode("ascii")
    return {"digest": digest_of_bytes(text), "bytes": len(text)}


@frozen
class Echoes:
    """The events and flags to store because a response contained the credential. Empty if it did not."""

    events: tuple[Event, ...] = ()
    flags: tuple[BindingFlag, ...] = ()


def find_echoes(pen: EventFactory, run: Run, planned: PlannedStep, outcome: Outcome | Finding) -> Echoes:
    """Return the events and flags to store if the response of C{outcome} contained the credential."""
    if not outcome.notes.get("echoed"):
        return Echoes()
    binding, fqn = planned.binding, planned.description.name
    name, forms = None if binding is None else binding.name, outcome.notes["echoed"]
    event = pen.of_run("secret.echoed", run, connector=fqn, step=planned.step.id, binding=name, forms=forms)
    if binding is None:
        return Echoes((event,))
    reason = f"An answer to {fqn} held this credential."
    return Echoes((event,), (BindingFlag(binding.name, binding.revision, event.at, reason),))


@frozen
class UncertainEffect:
    """The step of a run of unknown outcome whose effect may have happened.

    Earlier steps completed, later ones did not start.

    :ivar position: the index of the step in the plan.
    :ivar done: the outputs of the earlier steps, by step id.
    :ivar last: whether the step is the run's last one.
    """

    run: Run
    planned: PlannedStep
    position: int
    done: Mapping[str, JSON]
    last: bool

    @property
    def step_id(self) -> str:
        """The id of the uncertain step."""
        return self.planned.step.id


@frozen
class LookupResult:
    """The finding about an uncertain effect, with everything to store with it.

    :ivar happened: whether the effect happened, or None if that is still unknown.
    :ivar output: the output of the step if the effect happened.
    :ivar fault: the reason if the effect did not happen, or None for the run's own fault.
    :ivar events: the events to record. The last one records the finding.
    """

    happened: bool | None
    output: JSON = None
    fault: Fault | None = None
    events: tuple[Event, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    flags: tuple[BindingFlag, ...] = ()


async def record_finding(runs: RunRepository, doubt: UncertainEffect, found: LookupResult) -> Run:
    """Store a finding, retrying for as long as the database refuses, and return the run.

    If the uncertain step is the last one and the finding is certain, the run is settled. If the run stopped at an
    earlier step, it stays C{unknown}: its later steps never started, and a person must decide about the run.
    """

    def change(run: Run) -> Transition:
        step = StepRow(run.id, doubt.step_id, doubt.position, "completed", found.output)
        end, result, fault = _end(run, doubt, found)
        return transition(
            run,
            end,
            runs.now(),
            *found.events,
            result=result,
            fault=fault,
            steps=(step,) if found.happened else (),
            attempts=found.attempts,
            flags=found.flags,
            verify=require_unchanged(run),
        )

    return await runs.amend(doubt.run, change, found.events)


def explain_not_done(fault: Fault | None) -> Fault:
    """Return the fault of an uncertain run whose effect turned out not to have happened.

    :param fault: the fault with which the run became uncertain, or None.
    """
    if fault is None or fault.kind == "outcome_unknown":
        because = "The daemon ended while this was being done; it was found out since that it did not happen."
        details = {} if fault is None else fault.details
        return InternalError(because, details).fault()
    return evolve(fault, message=f"It did not happen. {fault.message}")


def _end(run: Run, doubt: UncertainEffect, found: LookupResult) -> tuple[RunState, JSON, Fault | None]:
    """Return the state, the result and the fault of the run after a finding.

    The result is None if the effect did not happen, and the fault is None if the run is completed.
    """
    if found.happened is None:
        return RunState.UNKNOWN, run.result, run.fault
    if not doubt.last:
        known: JSON = {"step": doubt.step_id, "happened": found.happened}
        return RunState.UNKNOWN, run.result, None if run.fault is None else run.fault.with_details(found=known)
    if found.happened:
        steps: JSON = {**doubt.done, doubt.step_id: found.output}
        return RunState.COMPLETED, {"output": found.output, "steps": steps}, None
    return RunState.FAILED, None, found.fault or explain_not_done(run.fault)


LATE_SECONDS = 60.0
"""The seconds after the timeout of an attempt for which the connection stays open for a late response."""

_MOST_AT_ONCE = 64
_DROPPED = ResourceLimitExceeded("Its answer was not waited for any longer.").fault()
_SETTLES = {Meaning.DONE: True, Meaning.NOT_DONE: False}
_log = Logger()


@frozen
class LateAnswer:
    """An attempt that timed out and whose answer may still arrive.

    :ivar attempt: the stored row of the attempt.
    :ivar built: the request, if it was built from outputs of earlier steps, else None.
    :ivar alone: whether no earlier attempt of the step is in doubt. Only then a refusal of this attempt settles the
        step.
    """

    doubt: UncertainEffect
    attempt: AttemptRow
    built: Request | None
    alone: bool


@define(eq=False)
class LateAnswers:
    """The open connections of at most 64 timed-out attempts. Beyond that, the oldest connection is closed.

    A connector needs the credential to remove it from the response. Therefore all connections are closed before the
    vault is locked or the daemon stops.
    """

    _runs: RunRepository
    _tasks: Tasks
    _open: dict[str, Deferred[Outcome]] = field(factory=dict, init=False)  # by run id
    _closed: bool = field(default=False, init=False)

    def listen(self, late: LateAnswer, answer: Deferred[Outcome]) -> None:
        """Record the outcome of an attempt when C{answer} fires. The run must be stored as C{unknown} before.

        If the connection is closed before, only an echo of the credential is recorded.
        """
        run_id = late.doubt.run.id
        self._open[run_id] = answer
        answer.addBoth(self._take_in, late)
        while len(self._open) > (0 if self._closed else _MOST_AT_ONCE):
            self._open.pop(next(iter(self._open))).cancel()

    def listens(self, run_id: str) -> bool:
        """Return whether the connection of an attempt of the run is still open, so that its effect may still happen."""
        return run_id in self._open

    def drop(self) -> None:
        """Close the open connections of timed-out attempts, and from now on each new one at once. Idempotent."""
        self._closed = True
        while self._open:
            self._open.popitem()[1].cancel()

    def _take_in(self, outcome: Outcome | Failure, late: LateAnswer) -> None:
        self._open.pop(late.doubt.run.id, None)
        if isinstance(outcome, Failure):
            if not isinstance(outcome.value, CancelledError):
                _log.failure("the connector {fqn} broke its contract", outcome, fqn=late.doubt.planned.description.name)
                return
            outcome = Outcome(fault=_DROPPED, classified=False, notes=notes_of(outcome.value))
        if not _silent(outcome, late.doubt.planned.effect):
            self._tasks.start(f"recording the late response of run {late.doubt.run.id}", self._record(late, outcome))

    async def _record(self, late: LateAnswer, outcome: Outcome) -> None:
        await record_finding(self._runs, late.doubt, self._find(late, outcome))

    def _find(self, late: LateAnswer, outcome: Outcome) -> LookupResult:
        doubt, read = late.doubt, classify(outcome, late.doubt.planned.effect)
        fqn, events = doubt.planned.description.name, self._runs.events
        echoed = find_echoes(events, doubt.run, doubt.planned, outcome)
        answer, kind = outcome.kept_answer
        ended = evolve(late.attempt, state=read.value, ended_at=events.now(), fault=outcome.fault)
        ended = evolve(ended, answer=answer, answer_type=kind)
        happened = _SETTLES.get(read) if late.alone or read is Meaning.DONE else None
        event = events.of_run(
            "execution.late_answer",
            doubt.run,
            fault=outcome.fault,
            connector=fqn,
            happened=happened,
            last=doubt.last,
            answer=describe_attempt(ended, outcome, late.built),
        )
        place: dict[str, JSON] = {"step": doubt.step_id, "steps_done": list(doubt.done)}
        fault = None if outcome.fault is None else outcome.fault.with_details(**place)
        return LookupResult(happened, outcome.output, fault, (*echoed.events, event), (ended,), echoed.flags)


def _silent(outcome: Outcome, effect: str) -> bool:
    """Return whether a late attempt has nothing to record: no response arrived, and no credential was sent back."""
    over = outcome.fault is not None and outcome.fault.kind == "resource_limit_exceeded" and outcome.status is None
    return over and classify(outcome, effect) is Meaning.IN_DOUBT and not outcome.notes.get("echoed")


async def in_time(answer: Deferred[Outcome], seconds: float, clock: IReactorTime) -> Outcome | None:
    """Wait for C{answer} for at most C{seconds}. If C{answer} is late, it is not cancelled.

    Cancelling this coroutine cancels C{answer}.

    :return: the outcome, or None if C{answer} is late. A callback added to C{answer} then gets the outcome.
    :raises CancelledError: if this coroutine was cancelled. The connector may have added notes to the error.
    """
    there: Deferred[Outcome | None] = Deferred()
    answer.addBoth(_relay, there)
    if there.called:
        return await there
    late = clock.callLater(seconds, there.callback, None)
    try:
        return await there
    except CancelledError:
        raise cancel_answer(answer) from None
    finally:
        if late.active():
            late.cancel()


def cancel_answer(answer: Deferred[Outcome]) -> CancelledError:
    """Cancel C{answer} and return its CancelledError, to which the connector may have added notes.

    Any other error that the cancelled request raises is logged.
    """
    ended = CancelledError()

    def note(failure: Failure) -> None:
        nonlocal ended
        if isinstance(failure.value, CancelledError):
            ended = failure.value
        else:
            _log.failure("a connector raised an error after its request was cancelled", failure)

    answer.addErrback(note)
    answer.cancel()
    return ended


def _relay(result: Outcome | Failure, there: Deferred[Outcome | None]) -> Outcome | Failure | None:
    """Pass the result of a request to the Deferred C{there}.

    If that has fired, because the wait ended, return the result.

    A separate Deferred is needed because a failed Deferred cannot be awaited within its own callback.
    """
    if there.called:
        return result
    there.callback(result)  # a Failure makes it fail
    return None
