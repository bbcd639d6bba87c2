"""Failures make the next try wait, a little longer each time; nobody is ever locked out."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

MOST_SECONDS = 5.0
_FREE = 3
_FIRST_SECONDS = 0.25
_FORGOTTEN_SECONDS = 60.0
_MOST_COUNTED = 32


class Slowing:
    """How long the next try waits."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._failures = 0
        self._failed_at = 0.0

    def failed(self) -> None:
        """Count a failure."""
        self._failures = min(_MOST_COUNTED, self._counted() + 1)
        self._failed_at = self._clock.seconds()

    def succeeded(self) -> None:
        """Forget the failures before."""
        self._failures = 0

    def seconds(self) -> float:
        """0 for the first tries, then 0.25 s, twice that with each failure, 5 s at most."""
        beyond = self._counted() - _FREE
        return 0.0 if beyond < 0 else min(MOST_SECONDS, _FIRST_SECONDS * 2.0**beyond)

    def _counted(self) -> int:
        return self._failures if self._clock.seconds() < self._failed_at + _FORGOTTEN_SECONDS else 0
