"""Helpers for waiting on Deferreds: many waiters for one event, and waits that can be cancelled at any moment."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

_T = TypeVar("_T")


class Interrupted(CancelledError):
    """Raised instead of C{CancelledError} if the cancelled work has something to record.

    :ivar notes: becomes the C{notes} of the run's L{aileron.model.connectors.Outcome}.
    """

    def __init__(self, notes: Mapping[str, Any]) -> None:
        super().__init__()
        self.notes = notes


def notes_of(ended: CancelledError) -> Mapping[str, Any]:
    """Return the notes of an L{Interrupted}, or an empty mapping for any other C{CancelledError}."""
    return ended.notes if isinstance(ended, Interrupted) else {}


class Waiting:
    """An event with several waiters, each with its own Deferred.

    A cancelled waiter is removed.
    """

    def __init__(self) -> None:
        self._all: list[Deferred[None]] = []

    def wait(self, *, over: bool) -> Deferred[None]:
        """Return a Deferred for the next L{fire}.

        :param over: whether the event has happened for good. The Deferred has then fired already.
        """
        if over:
            return succeed(None)
        waiter: Deferred[None] = Deferred(self._forget)
        self._all.append(waiter)
        return waiter

    def fire(self) -> None:
        """Fire the Deferreds of all waiters in order of arrival.

        A waiter that is added meanwhile waits for the next event.
        """
        told, self._all = self._all, []
        for waiter in told:
            if not waiter.called:  # an earlier waiter may have cancelled it
                waiter.callback(None)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._all:
            self._all.remove(waiter)


def given_up_at_once(inner: Deferred[_T], at_first: Callable[[], object] | None = None) -> Deferred[_T]:
    """Return a Deferred with the result of C{inner} that fails with C{CancelledError} at once when it is cancelled.

    C{inner} is cancelled as well, and its result is then ignored.

    :param at_first: called first when the Deferred is cancelled.
    """

    def cancel(outer: Deferred[_T]) -> None:
        if at_first is not None:
            at_first()
        outer.errback(CancelledError())
        inner.cancel()

    outer: Deferred[_T] = Deferred(cancel)
    inner.addCallbacks(
        lambda value: None if outer.called else outer.callback(value),
        lambda failure: None if outer.called else outer.errback(failure),
    )
    return outer


def uncancelled(inner: Deferred[_T]) -> Deferred[_T]:
    """Return a Deferred with the result of C{inner}.  Cancelling it does not cancel the work of C{inner}."""
    outer: Deferred[_T] = Deferred()
    inner.addCallbacks(outer.callback, outer.errback)
    return outer


def afterwards(work: Coroutine[Deferred[Any], Any, _T], then: Callable[[], object]) -> Deferred[_T]:
    """Return the result of C{work} after calling C{then}.

    Unlike C{finally}, C{then} is not called if the coroutine is closed as garbage: the objects that C{then} would wake
    may be garbage too and already closed.
    """

    def ended(result: _T | Failure) -> _T | Failure:
        then()
        return result

    return Deferred.fromCoroutine(work).addBoth(ended)
