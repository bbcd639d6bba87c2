"""Waiting for what others do: many for one thing, and one who may give up at any moment."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

_T = TypeVar("_T")


class Interrupted(CancelledError):
    """The end of cancelled work of which something is to be recorded all the same.

    :ivar notes: as of an L{aileron.model.connectors.Outcome}.
    """

    def __init__(self, notes: Mapping[str, Any]) -> None:
        super().__init__()
        self.notes = notes


def notes_of(ended: CancelledError) -> Mapping[str, Any]:
    """Return what is to be recorded of cancelled work."""
    return ended.notes if isinstance(ended, Interrupted) else {}


class Waiting:
    """Something that will happen, and those who wait for it, each with a Deferred of its own.

    One that is cancelled is forgotten.
    """

    def __init__(self) -> None:
        self._all: list[Deferred[None]] = []

    def wait(self, *, over: bool) -> Deferred[None]:
        """Return a Deferred for the next L{fire}.

        :param over: whether there is nothing to wait for any more.
        """
        if over:
            return succeed(None)
        waiter: Deferred[None] = Deferred(self._forget)
        self._all.append(waiter)
        return waiter

    def fire(self) -> None:
        """Tell everyone that it happens, in the order of their coming; who comes meanwhile waits for the next time."""
        told, self._all = self._all, []
        for waiter in told:
            if not waiter.called:  # who was told before may have cancelled it
                waiter.callback(None)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._all:
            self._all.remove(waiter)


def given_up_at_once(inner: Deferred[_T], at_first: Callable[[], object] | None = None) -> Deferred[_T]:
    """Return the same, but cancelling fails with C{CancelledError}, whatever the steps inside make of it.

    :param at_first: called before that.
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
    """Return the same, but cancelling ends the wait alone: what is under way goes on to its end."""
    outer: Deferred[_T] = Deferred()
    inner.addCallbacks(outer.callback, outer.errback)
    return outer


def afterwards(work: Coroutine[Deferred[Any], Any, _T], then: Callable[[], object]) -> Deferred[_T]:
    """Return the result of C{work}, before which C{then} is called.

    Unlike C{finally}, it is not where a coroutine that nobody can wake any more is closed as garbage: whatever C{then}
    would wake may be garbage as well, and was closed, or must not go on.
    """

    def ended(result: _T | Failure) -> _T | Failure:
        then()
        return result

    return Deferred.fromCoroutine(work).addBoth(ended)
