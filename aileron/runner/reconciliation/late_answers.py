"""Listens for answers whose time was up: the run is in doubt already, and what comes may settle it."""

from __future__ import annotations

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.runner.runs.outcomes import Meaning, classify, describe_attempt, find_echoes
from aileron.runner.runs.transitions import EventFactory
from aileron.runner.scheduling import Tasks
from aileron.values import JSON, AttemptRow, Outcome, Request

from .recorder import LookupResult, OutcomeRecorder, UncertainEffect

LATE_SECONDS = 60.0
"""How much longer than its time an answer is listened for."""

_MOST_AT_ONCE = 64
_SETTLES = {Meaning.DONE: True, Meaning.NOT_DONE: False}
_ENDED = {Meaning.DONE: "succeeded", Meaning.NOT_DONE: "failed", Meaning.IN_DOUBT: "unknown"}
_log = Logger()


@frozen
class LateAnswer:
    """Holds an attempt whose time was up.

    :ivar attempt: its row, as it was written by then.
    :ivar built: its request, if it could be built only from earlier answers.
    :ivar alone: whether no earlier attempt is in doubt as well, so that a refusal of this one says all.
    """

    doubt: UncertainEffect
    attempt: AttemptRow
    built: Request | None
    alone: bool


@define(eq=False)
class LateAnswers:
    """Keeps the connections of at most 64 such attempts; beyond that the oldest is dropped.

    Whoever reads an answer must know the credential, to take it out of that.  So nobody listens on once the vault is
    to be locked or the daemon stops.
    """

    _recorder: OutcomeRecorder
    _tasks: Tasks
    _events: EventFactory
    _open: dict[str, Deferred[Outcome]] = field(factory=dict, init=False)  # by run: each has at most one
    _closed: bool = field(default=False, init=False)

    def listen(self, late: LateAnswer, answer: Deferred[Outcome]) -> None:
        """Record what C{answer} brings, if it brings anything; the run must be on record as C{unknown}."""
        run_id = late.doubt.run.id
        self._open[run_id] = answer
        answer.addBoth(self._heard, late)
        while len(self._open) > (0 if self._closed else _MOST_AT_ONCE):
            self._open.pop(next(iter(self._open))).cancel()

    def listens(self, run_id: str) -> bool:
        """Whether the connection of an attempt of that run is still open: it may happen yet."""
        return run_id in self._open

    def drop(self) -> None:
        """Listen no more in this life.  Twice is safe."""
        self._closed = True
        while self._open:
            self._open.popitem()[1].cancel()

    def _heard(self, outcome: Outcome | Failure, late: LateAnswer) -> None:
        self._open.pop(late.doubt.run.id, None)
        if isinstance(outcome, Failure):
            if not outcome.check(CancelledError):
                _log.failure("the connector {fqn} broke its contract", outcome, fqn=late.doubt.planned.description.fqn)
        elif not _silent(outcome):
            self._tasks.start(f"{late.doubt.run.id}, answered late", self._record(late, outcome))

    async def _record(self, late: LateAnswer, outcome: Outcome) -> None:
        await self._recorder.write(late.doubt, self._found(late, outcome))

    def _found(self, late: LateAnswer, outcome: Outcome) -> LookupResult:
        doubt, read = late.doubt, classify(outcome, late.doubt.planned.effect)
        fqn, echoed = doubt.planned.description.fqn, find_echoes(self._events, doubt.run, doubt.planned, outcome)
        ended = evolve(late.attempt, state=_ENDED[read], ended_at=self._events.now(), fault=outcome.fault)
        happened = _SETTLES.get(read) if late.alone or read is Meaning.DONE else None
        event = self._events.of_run(
            "execution.late_answer",
            doubt.run,
            fault=outcome.fault,
            connector=fqn,
            happened=happened,
            last=doubt.last,
            answer=describe_attempt(ended, outcome, late.built),
        )
        fault = None if outcome.fault is None else outcome.fault.with_details(**_place(doubt))
        return LookupResult(happened, outcome.output, fault, (*echoed.events, event), (ended,), echoed.flags)


def _place(doubt: UncertainEffect) -> dict[str, JSON]:
    return {"step": doubt.step_id, "steps_done": list(doubt.done)}


def _silent(outcome: Outcome) -> bool:
    """Whether the time for a late answer was over as well."""
    return outcome.fault is not None and outcome.fault.kind == "resource_limit_exceeded" and outcome.status is None


async def in_time(answer: Deferred[Outcome], seconds: float, clock: IReactorTime) -> bool:
    """Wait for C{answer}, which goes on being worked for where it does not come within C{seconds}.

    Cancelling the wait cancels it as well.

    :return: whether it is there.
    """
    there: Deferred[bool] = Deferred()
    answer.addBoth(_relay, there)
    if there.called:
        return True
    late = clock.callLater(seconds, there.callback, False)
    try:
        return await there
    except CancelledError:
        let_go(answer)
        raise
    finally:
        if late.active():
            late.cancel()


def let_go(answer: Deferred[Outcome]) -> None:
    """Drop the connection of an answer that nobody waits for any more."""
    answer.addErrback(_cancelled)
    answer.cancel()


def _cancelled(failure: Failure) -> None:
    if not failure.check(CancelledError):
        _log.failure("what a connector raised that was told to stop", failure)


def _relay(result: Outcome | Failure, there: Deferred[bool]) -> Outcome | Failure:
    if not there.called:
        there.callback(True)
    return result
