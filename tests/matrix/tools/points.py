"""Points at which a life of the daemon may end while it has a tool's write, beside those of the runner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from aileron.features.own_tools import _door, running

Reached = Callable[[str], None]

RECOGNISED = "after tool.recognised"


def watch_tools(reached: Reached) -> None:
    """Have this process call C{reached} at the points of own tools: once a write is recognised, and at each claim."""
    changed: tuple[Any, Any] = (_door, running)
    recognise, writes = changed[0].recognise, changed[1].Writes

    def recognised(*args: Any) -> Any:
        found = recognise(*args)
        reached(RECOGNISED)
        return found

    def make(submission: Any, store: Any, *rest: Any) -> Any:
        return writes(submission, WatchedClaims(store, reached), *rest)

    changed[0].recognise, changed[1].Writes = recognised, make


@frozen
class WatchedClaims:
    """The claims in the database, with a point before and after each write."""

    _inner: Any
    _reached: Reached

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def keep(self, claim: Any) -> None:
        """Store a claim, between two points that say what about it is new."""
        what = "given" if claim.given else "told" if claim.told else "asked"
        self._reached(f"before claims.keep {what}")
        await self._inner.keep(claim)
        self._reached(f"after claims.keep {what}")

    async def take_over(self, *args: Any) -> Any:
        """Take over a claim. The points are reached also if there is none to take over."""
        self._reached("before claims.take_over")
        found = await self._inner.take_over(*args)
        self._reached("after claims.take_over")
        return found
