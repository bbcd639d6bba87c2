"""Points at which a life of the daemon may end while it has a tool's write, beside those of the runner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from aileron.features.own_tools import _door, running
from aileron.store import _runs

Reached = Callable[[str], None]

RECOGNISED = "after tool.recognised"
NO_CLAIM, CLAIM = "run without claim, before its commit", "run with claim, before its commit"
"""The points in the transaction that stores a run: before its claim is written, and after."""


def watch_tools(reached: Reached) -> None:
    """Have this process call C{reached} at the points of own tools: once a write is recognised, and at each claim."""
    changed: tuple[Any, Any, Any] = (_door, running, _runs)
    recognise, writes, insert = changed[0].recognise, changed[1].Writes, changed[2].insert_claim

    def recognised(*args: Any) -> Any:
        found = recognise(*args)
        reached(RECOGNISED)
        return found

    def make(submission: Any, store: Any, *rest: Any) -> Any:
        return writes(submission, WatchedClaims(store, reached), *rest)

    def insert_claim(*args: Any) -> None:
        reached(NO_CLAIM)
        insert(*args)
        reached(CLAIM)

    changed[0].recognise, changed[1].Writes, changed[2].insert_claim = recognised, make, insert_claim


@frozen
class WatchedClaims:
    """The claims in the database, with a point before and after each write."""

    _inner: Any
    _reached: Reached

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def note_callers(self, claim: Any, *events: Any) -> None:
        """Store the callers of a claim, between two points that say what about them is new."""
        what = "given" if events else "told"
        self._reached(f"before claims.note {what}")
        await self._inner.note_callers(claim, *events)
        self._reached(f"after claims.note {what}")

    async def take_over(self, *args: Any) -> Any:
        """Take over a claim. The points are reached also if there is none to take over."""
        self._reached("before claims.take_over")
        found = await self._inner.take_over(*args)
        self._reached("after claims.take_over")
        return found
