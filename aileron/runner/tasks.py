"""Background tasks, timers and locks for runs, and the notification of callers that wait for a result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.waiting import Waiting
from aileron.model.errors import AileronError
from aileron.model.failures import log_failure

P = ParamSpec("P")
T = TypeVar("T")

_log = Logger()
_STOP_AGAIN_SECONDS = 5.0  # the time that a cancelled task has to store its outcome before it is cancelled again


@define(eq=False)
class Tasks:
    """The running tasks, at most one of each name. A failure is logged and ends only that task."""

    clock: IReactorTime
    _running: dict[object, Deferred[Any]] = field(factory=dict)
    _at_rest: Waiting = field(factory=Waiting)
    _closed: bool = False
    _late: IDelayedCall | None = None

    def start(self, name: str, work: Coroutine[Deferred[Any], Any, None]) -> bool:
        """Start C{work} unless a task of that name is running or the daemon stops.

        :return: whether it was started.
        """
        if self._closed or name in self._running:
            work.close()
            return False
        self._running[name] = task = Deferred.fromCoroutine(work)
        task.addErrback(self._log_failure, name).addBoth(self._ended, name)
        return True

    def shielded(self, work: Coroutine[Deferred[Any], Any, T]) -> Deferred[T]:
        """Return the result of C{work}, which completes even if the caller is cancelled."""
        # guard of promise 4: a decision completes if its caller leaves -> KeptTests.test_caller_leaves,
        #    instead return Deferred.fromCoroutine(work)
        told: Deferred[T] = Deferred()
        self._running[told] = task = Deferred.fromCoroutine(work)
        task.addBoth(self._tell, told).addBoth(self._ended, told)
        return told

    @property
    def is_closed(self) -> bool:
        """True if no more tasks are started, because the daemon stops."""
        return self._closed

    def close(self) -> None:
        """Start no more tasks. Idempotent."""
        self._closed = True

    def list_names(self) -> tuple[str, ...]:
        """Return the names of the running tasks."""
        return tuple(name for name in self._running if isinstance(name, str))

    def running(self, name: str) -> bool:
        """Return whether the task of that name has not ended yet."""
        return name in self._running

    def at_rest(self) -> Deferred[None]:
        """Return a Deferred that fires when none of the tasks is running."""
        return self._at_rest.wait(over=not self._running)

    async def drain(self, seconds: float) -> None:
        """Start no more tasks, wait for the running ones, and cancel those that do not end within C{seconds}."""
        self.close()
        waiting = self.at_rest()
        self._late = self.clock.callLater(seconds, self._stop_all)
        await waiting
        if self._late.active():
            self._late.cancel()

    def _stop_all(self) -> None:
        """Cancel all tasks. Repeat after a while for tasks that have not ended."""
        for task in list(self._running.values()):
            task.cancel()
        if self._running:
            self._late = self.clock.callLater(_STOP_AGAIN_SECONDS, self._stop_all)

    def _log_failure(self, failure: Failure, name: str) -> None:
        if not failure.check(CancelledError):
            log_failure(_log, "the task {name} failed", failure, name=name)

    def _tell(self, result: T | Failure, told: Deferred[T]) -> None:
        if not told.called:
            told.callback(result)
        elif isinstance(result, Failure) and not result.check(AileronError):  # errors for the caller are not logged
            self._log_failure(result, "of a caller that has disconnected")

    def _ended(self, _: object, name: object) -> None:
        self._running.pop(name, None)
        if not self._running:
            self._at_rest.fire()


class _HasTasks(Protocol):
    @property
    def _tasks(self) -> Tasks: ...


S = TypeVar("S", bound=_HasTasks)
Method: TypeAlias = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def shielded(method: Method[S, P, T]) -> Method[S, P, T]:
    """Decorate a method of an object with C{_tasks} so that it completes even if its caller is cancelled."""

    @wraps(method)
    async def shield(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._tasks.shielded(method(self, *args, **kwargs))

    return shield


_LONGEST_SLEEP_SECONDS = 3600.0  # after that the wall clock is read again: it may have been set
_AGAIN_SECONDS = 5.0

Callback: TypeAlias = Callable[[str], Awaitable[None]]
"""A function that is called with the id of a run."""


@define(eq=False)
class Timers:
    """Timers, at most one for each run. A callback that fails is called again until it succeeds."""

    _clock: IReactorTime
    _set: dict[str, IDelayedCall] = field(factory=dict)

    def watch(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Call C{ring} with the run's id at C{at}, never earlier. This replaces an earlier timer of the run."""
        self.forget(run_id)
        left = at.timestamp() - self._clock.seconds()
        self._set_one(min(max(0.0, left), _LONGEST_SLEEP_SECONDS), run_id, at, ring)

    def forget(self, run_id: str) -> None:
        """Cancel the run's timer. Idempotent."""
        alarm = self._set.pop(run_id, None)
        if alarm is not None and alarm.active():
            alarm.cancel()

    def stop(self) -> None:
        """Cancel all timers."""
        for run_id in list(self._set):
            self.forget(run_id)

    def _set_one(self, seconds: float, run_id: str, at: datetime, ring: Callback) -> None:
        self._set[run_id] = self._clock.callLater(seconds, self._wake, run_id, at, ring)

    def _wake(self, run_id: str, at: datetime, ring: Callback) -> None:
        del self._set[run_id]
        if at.timestamp() > self._clock.seconds():
            self.watch(run_id, at, ring)
            return
        Deferred.fromCoroutine(self._go(run_id, ring)).addErrback(self._note_failed, run_id, at, ring)

    async def _go(self, run_id: str, ring: Callback) -> None:
        await ring(run_id)

    def _note_failed(self, failure: Failure, run_id: str, at: datetime, ring: Callback) -> None:
        """Log a failed callback and set the timer again, unless another one was set meanwhile."""
        log_failure(_log, "the timer of run {run} failed", failure, run=run_id)
        if run_id not in self._set:
            self._set_one(_AGAIN_SECONDS, run_id, at, ring)


K = TypeVar("K", bound=Hashable)


@define(eq=False)
class ResultWaiters(Generic[K, T]):
    """The callers that wait for a result, by key. They are notified in the order of L{enlist}."""

    _clock: IReactorTime
    _waiting: dict[K, list[Deferred[T | None]]] = field(factory=dict)

    def enlist(self, key: K) -> Deferred[T | None]:
        """Return a Deferred for the next result of C{key}. Pass it to L{first}, or to L{dismiss} to end the wait.

        The Deferred fires with None if the time given to L{first} is over.
        """
        waiter: Deferred[T | None] = Deferred()
        self._waiting.setdefault(key, []).append(waiter)
        return waiter

    def dismiss(self, key: K, waiter: Deferred[T | None]) -> None:
        """Remove C{waiter}, a Deferred from L{enlist}. Idempotent."""
        waiting = self._waiting.get(key, [])
        if waiter in waiting:
            waiting.remove(waiter)
        if not waiting:
            self._waiting.pop(key, None)

    async def first(self, key: K, waiter: Deferred[T | None], seconds: float) -> T | None:
        """Wait for the result of C{waiter} and return it, or None after C{seconds}. Remove C{waiter} in both cases."""
        late = self._clock.callLater(max(0.0, seconds), self._give_up, waiter)
        try:
            return await waiter
        finally:
            self.dismiss(key, waiter)
            if late.active():
                late.cancel()

    async def all(self, waiters: Mapping[K, Deferred[T | None]], seconds: float) -> None:
        """Wait for the results of all C{waiters}, at most C{seconds} together, and remove them."""
        over = self._clock.seconds() + seconds
        try:
            for key, waiter in waiters.items():
                await self.first(key, waiter, over - self._clock.seconds())
        finally:
            for key, waiter in waiters.items():
                self.dismiss(key, waiter)

    def list_keys(self) -> tuple[K, ...]:
        """Return the keys for whose results callers wait."""
        return tuple(self._waiting)

    def fire_all(self, key: K, news: T) -> None:
        """Fire all Deferreds of C{key} with the result C{news}."""
        for waiter in self._waiting.pop(key, []):
            if not waiter.called:
                waiter.callback(news)

    def end_waits(self, kept: Callable[[K], bool]) -> None:
        """Fire the Deferreds of all keys with None, as if their time were over, except for the keys of C{kept}."""
        for key in [each for each in self._waiting if not kept(each)]:
            for waiter in self._waiting.pop(key):
                self._give_up(waiter)

    def _give_up(self, waiter: Deferred[T | None]) -> None:
        if not waiter.called:
            waiter.callback(None)


@define(eq=False)
class KeyedLocks:
    """A lock for each key, usually the id of a run.

    The database detects concurrent changes of a run too, but only after both have written to the vault, where nothing
    can be undone.

    A lock is released when its work ends, never because the work's coroutine is collected as garbage: the coroutines
    that wait for the lock may be garbage too.
    """

    _locks: dict[str, DeferredLock] = field(factory=dict, init=False)

    async def run(self, run_id: str, work: Callable[[], Coroutine[Deferred[Any], Any, T]]) -> T:
        """Run C{work} while holding the lock of C{run_id}, and return its result.

        C{work} must not acquire the same lock.
        """
        lock = self._locks.setdefault(run_id, DeferredLock())
        try:
            # guard of promise 4: changes of one run are serialized -> KeptTests.test_confirmed_against_denied,
            #    instead return await work()
            return await lock.run(work)
        finally:
            if not lock.locked and self._locks.get(run_id) is lock:  # another lock may have replaced it
                del self._locks[run_id]
