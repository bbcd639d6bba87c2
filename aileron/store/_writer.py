"""A single writer for many callers. Functions that arrive together share one durable commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.waiting import Waiting
from aileron.model.errors import StoreUnavailable

from ._dialect import Cursor
from ._engine import AtEnd, EngineConnection, EnginePool, Job, RolledBackError, closing

P = ParamSpec("P")
T = TypeVar("T")

_log = Logger()


@define(eq=False)
class Writer:
    """Runs functions with a cursor in order, each atomically, and returns results once they are durable.

    A batch is taken from the queue by the writer's thread once its transaction has the database's lock. So functions
    that arrive while another daemon has the lock are in it.

    :param pool: exactly one thread and one connection, without transactions of its own.
    :param max_batch: the maximum number of functions that share a commit.
    :ivar commits: the number of batches whose results were delivered, and of notices of other daemons.
    :ivar committed: fires after each of these batches.
    :param at_end: called at the end of each transaction. The function it returns is called once that is durable.
    """

    _pool: EnginePool
    _max_batch: int = 256
    _at_end: AtEnd | None = None
    _queue: deque[Job] = field(factory=deque, init=False)
    _writing: bool = field(default=False, init=False)
    _at_rest: Waiting = field(factory=Waiting, init=False)
    _closed: bool = field(default=False, init=False)
    commits: int = field(default=0, init=False)
    committed: Waiting = field(factory=Waiting, init=False)

    def write(self, function: Callable[Concatenate[Cursor, P], T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run C{function(cursor, …)} atomically in the writer's thread.

        The function may use only the cursor and immutable values, and may be run again after a rollback.

        :return: the function's result, after the commit. Cancelling while queued removes the write. Cancelling later
            only stops the wait.
        :raises StoreUnavailable: (errback) if the database failed, or L{close} was called. No change was stored.
        :raises TypeError: if there are keyword arguments.
        """
        done: Deferred[T] = Deferred(lambda _: self._forget(job))
        job = Job(function, args, done)
        if kwargs:
            raise TypeError("positional arguments only")
        if self._closed:
            done.errback(closing())
            return done
        self._queue.append(job)
        self._start()
        return done

    def note_commit_elsewhere(self) -> None:
        """Notify callers that wait for a commit that another daemon has committed something."""
        self.commits += 1
        self.committed.fire()

    def close(self) -> Deferred[None]:
        """Refuse further writes. Fires when all queued writes are durable. Idempotent."""
        self._closed = True
        return self._at_rest.wait(over=not self._writing)

    def _forget(self, job: Job) -> None:
        with suppress(ValueError):  # it was taken already
            self._queue.remove(job)

    def _start(self) -> None:
        if self._writing or not self._queue:
            return
        self._writing = True
        batch: list[Job] = []
        told = self._pool.call(_apply, partial(self._take, batch), self._at_end).addCallbacks(
            self._tell, self._refuse, (batch,), {}, (batch,)
        )
        told.addErrback(lambda failure: _log.failure("delivering the results of a batch failed", failure))

    def _take(self, batch: list[Job]) -> Sequence[Job]:
        """Move functions from the queue to a batch, and return it. Called in the writer's thread.

        Meanwhile the reactor's thread may append to the queue, and remove from it. Each of these steps is atomic.
        """
        with suppress(IndexError):
            while len(batch) < self._max_batch:
                batch.append(self._queue.popleft())
        return batch

    def _tell(self, outcomes: Sequence[Any], batch: Sequence[Job]) -> None:
        self._put_back(batch[len(outcomes) :])
        try:
            for job, outcome in zip(batch, outcomes, strict=False):
                _answer(job, outcome)  # writes made by callers now share the next commit
        finally:
            self._writing = False
            self._start()
            if not self._writing:
                self._at_rest.fire()
        self.commits += 1
        self.committed.fire()

    def _put_back(self, jobs: Sequence[Job]) -> None:
        """Put jobs that were not run back to the front of the queue, except for those that were cancelled meanwhile."""
        self._queue.extendleft(job for job in reversed(jobs) if not job.done.called)

    def _refuse(self, reason: Failure, batch: list[Job]) -> None:
        guilty, cause = list(batch or self._take(batch)), reason.value  # none were taken if there was no lock
        if isinstance(cause, RolledBackError):  # run the other jobs again without this one
            guilty, cause = [cause.job], cause.cause
            self._put_back([job for job in batch if job is not guilty[0]])
        refused = self._pool.refusal(cause)
        _log.error("the database refused {count} writes: {cause}", count=len(guilty), cause=refused)
        self._tell([StoreUnavailable(refused.message) for _ in guilty], guilty)


def _answer(job: Job, outcome: Any) -> None:
    if job.done.called:  # the caller cancelled meanwhile
        return
    if isinstance(outcome, Exception):
        job.done.errback(outcome)
    else:
        job.done.callback(outcome)


def _apply(connection: EngineConnection, take: Callable[[], Sequence[Job]], at_end: AtEnd | None) -> list[Any]:
    return connection.write(take, at_end)
