"""Lets a caller go without losing the result."""

from __future__ import annotations

from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def shielded(inner: Deferred[T]) -> Deferred[T]:
    """The result of C{inner}, for a caller that may be cancelled; C{inner} and its callbacks go on."""
    outer: Deferred[T] = Deferred()

    def told(result: T | Failure) -> None:
        if not outer.called:
            outer.callback(result)

    inner.addBoth(told)
    return outer
