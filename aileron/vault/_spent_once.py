"""Values that can be taken once, within a time, and never grow beyond a number."""

from __future__ import annotations

from typing import Generic, TypeVar

from twisted.internet.interfaces import IReactorTime

Value = TypeVar("Value")


class SpentOnce(Generic[Value]):
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
        """The value, which is gone whatever its age; L{None}: unknown, taken before, or late."""
        until, value = self._kept.pop(key, (0.0, None))
        return value if self._clock.seconds() < until else None

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
