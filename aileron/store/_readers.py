"""Reads, apart from the writer: each sees one moment of the database, and none waits for a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from attrs import define, field
from twisted.enterprise.adbapi import ConnectionPool
from twisted.internet.defer import Deferred, DeferredSemaphore, fail, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.waiting import Waiting

from ._connections import closing, refusal

P = ParamSpec("P")
T = TypeVar("T")

MOST_READS = 64
"""At once; others follow.  What is made of them all may come in one turn of the reactor, which must not be long."""

_log = Logger()


@define(eq=False)
class Readers:
    """Runs functions of a cursor that only read.

    :param pool: connections that are C{query_only}.
    """

    _pool: ConnectionPool
    _turns: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_READS), init=False)
    _reading: int = field(default=0, init=False)
    _at_rest: Waiting = field(factory=Waiting, init=False)
    _closed: bool = field(default=False, init=False)

    def read(
        self, function: Callable[Concatenate[sqlite3.Cursor, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """Run C{function(cursor, …)} in a reader's thread, on what was committed before it.

        Cancelling takes it back until its turn comes; later it only ends the wait.

        :raises StoreUnavailable: (errback) the database could not be read, or L{close} was called.
        """
        if self._closed:
            return fail(closing())
        self._reading += 1
        turn = self._turns.acquire()
        return turn.addCallbacks(lambda _: self._in_turn(function, *args, **kwargs), self._note_done)

    def close(self) -> Deferred[None]:
        """Take no more, and answer when the last read has ended.  Twice is safe."""
        self._closed = True
        return self._at_rest.wait(over=not self._reading)

    def _in_turn(self, *call: Any, **kwargs: Any) -> Deferred[Any]:
        read = maybeDeferred(self._pool.runWithConnection, _at_one_moment, *call, **kwargs)
        return shielded(read.addErrback(_translate).addBoth(self._turn_over))

    def _turn_over(self, result: Any) -> Any:
        self._turns.release()
        return self._note_done(result)

    def _note_done(self, result: Any) -> Any:
        self._reading -= 1
        if not self._reading:
            self._at_rest.fire()
        return result


def _at_one_moment(connection: sqlite3.Connection, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    return function(cursor, *args, **kwargs)


def _translate(failure: Failure) -> Failure:
    if failure.check(sqlite3.Error) is None:
        return failure
    refused = refusal(failure.value)
    _log.error("a read failed: {cause}", cause=refused)
    return Failure(refused)


def shielded(inner: Deferred[T]) -> Deferred[T]:
    """Return the result of C{inner}, for a caller that may be cancelled; C{inner} and its callbacks go on."""
    outer: Deferred[T] = Deferred()

    def pass_on(result: T | Failure) -> None:
        if not outer.called:
            outer.callback(result)

    inner.addBoth(pass_on)
    return outer
