"""The bases of contracts: test cases to the type checker, and no tests until a test case mixes them in."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase

    MixedIn = SynchronousTestCase
else:
    MixedIn = object

T = TypeVar("T")


class StoreCase(MixedIn):
    """The base of tests of what answers at once, by coroutines."""

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what C{coroutine} came to."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def refused(self, coroutine: Coroutine[Any, Any, object], error: type[BaseException]) -> Any:
        """Return the error of type C{error} that C{coroutine} ended with."""
        return self.failureResultOf(Deferred.fromCoroutine(coroutine), error).value
