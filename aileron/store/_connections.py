"""Reads that wait for no commit, on a pool of connections that cannot write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredSemaphore, fail, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.waiting import Waiting

from ._dialect import Cursor
from ._engine import EngineConnection, EnginePool, closing

P = ParamSpec("P")
T = TypeVar("T")

MOST_READS = 64
"""The maximum number of concurrent reads.

Others are queued, because all results may arrive in one turn of the reactor.
"""

_log = Logger()


@define(eq=False)
class Readers:
    """Runs functions that only read, each with a cursor.

    :param pool: connections that cannot write.
    """

    _pool: EnginePool
    _turns: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_READS), init=False)
    _reading: int = field(default=0, init=False)
    _at_rest: Waiting = field(factory=Waiting, init=False)
    _closed: bool = field(default=False, init=False)

    def read(self, function: Callable[Concatenate[Cursor, P], T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run C{function(cursor, …)} in a reader's thread, on the data committed before.

        Cancelling before the read starts removes it from the queue. Cancelling later only stops the wait.

        :raises StoreUnavailable: (errback) if the database could not be read, or L{close} was called.
        """
        if self._closed:
            return fail(closing())
        self._reading += 1
        turn = self._turns.acquire()
        return turn.addCallbacks(lambda _: self._in_turn(function, *args, **kwargs), self._note_done)

    def close(self) -> Deferred[None]:
        """Refuse further reads. Fires when the last read has ended. Idempotent."""
        self._closed = True
        return self._at_rest.wait(over=not self._reading)

    def _in_turn(self, *call: Any, **kwargs: Any) -> Deferred[Any]:
        read = maybeDeferred(self._pool.call, _read, *call, **kwargs)
        return shielded(read.addErrback(self._translate).addBoth(self._turn_over))

    def _translate(self, failure: Failure) -> Failure:
        if not self._pool.is_error(failure.value):
            return failure
        refused = self._pool.refusal(failure.value)
        _log.error("a read failed: {cause}", cause=refused)
        return Failure(refused)

    def _turn_over(self, result: Any) -> Any:
        self._turns.release()
        return self._note_done(result)

    def _note_done(self, result: Any) -> Any:
        self._reading -= 1
        if not self._reading:
            self._at_rest.fire()
        return result


def _read(connection: EngineConnection, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return connection.read(function, *args, **kwargs)


def shielded(inner: Deferred[T]) -> Deferred[T]:
    """Return a Deferred with the result of C{inner} that can be cancelled without cancelling C{inner}."""
    outer: Deferred[T] = Deferred()

    def pass_on(result: T | Failure) -> None:
        if not outer.called:
            outer.callback(result)

    inner.addBoth(pass_on)
    return outer
