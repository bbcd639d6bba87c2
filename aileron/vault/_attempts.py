"""Limits on attempts: values that can be taken only once, and a delay that grows with failures."""

from __future__ import annotations

from typing import Generic, TypeVar

from twisted.internet.interfaces import IReactorTime

Value = TypeVar("Value")


class ReplayCache(Generic[Value]):
    """A table of at most C{limit} values; each lives C{seconds} or until it is taken; the oldest give way."""

    def __init__(self, clock: IReactorTime, seconds: float, limit: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = limit
        self._kept: dict[str, tuple[float, Value]] = {}

    def put(self, key: str, value: Value) -> None:
        """Keep a value."""
        while len(self._kept) >= self._limit:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.seconds() + self._seconds, value)

    def take(self, key: str) -> Value | None:
        """Take the value, which is gone whatever its age; L{None}: unknown, taken before, or late."""
        until, value = self._kept.pop(key, (0.0, None))
        return value if self._clock.seconds() < until else None

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


MOST_SECONDS = 5.0
_FREE = 3
_FIRST_SECONDS = 0.25
_FORGOTTEN_SECONDS = 60.0
_MOST_COUNTED = 32


class Throttle:
    """The throttle of the next try."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0

    def failed(self) -> None:
        """Count a failure."""
        self._failures = min(_MOST_COUNTED, self._count() + 1)
        self._failed_at = self._clock.seconds()

    def succeeded(self) -> None:
        """Forget the failures before."""
        self._failures = 0

    def seconds(self) -> float:
        """0 for the first tries, then 0.25 s, twice that with each failure, 5 s at most."""
        beyond = self._count() - _FREE
        return 0.0 if beyond < 0 else min(MOST_SECONDS, _FIRST_SECONDS * 2.0**beyond)

    def _count(self) -> int:
        return self._failures if self._clock.seconds() < self._failed_at + _FORGOTTEN_SECONDS else 0
