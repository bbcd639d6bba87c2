"""Where a life of the daemon may end: before and after each write of the runner, and wherever it calls its probe.

The points lie around what the runner works with, so that the product itself holds nothing for this, and every write
that a later feature makes is a point as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from attrs import evolve, frozen

from aileron.model.authority import LoopLimits
from aileron.runner import Collaborators

Reached = Callable[[str], None]

_MANY = 1_000_000
_PATIENT = LoopLimits(_MANY, _MANY, _MANY, _MANY, None)
"""Of an agent that goes on and on, as this one does."""

WRITES = {
    "runs": ("receive", "apply", "progress"),
    "audit": ("append",),
    "contents": ("put",),
    "watermarks": ("put",),
    "trust": ("put", "remove", "void"),
    "control": ("seal", "spend", "outdate"),
    "operator_limits": ("keep_pauses", "keep_caps"),
    "grants": ("put", "use", "revoke", "void"),
}
"""By collaborator, its methods that write."""


def around(collaborators: Collaborators, reached: Reached) -> Collaborators:
    """The same, with C{reached} told of each point."""
    watched: dict[str, Any] = {
        name: Watched(getattr(collaborators, name), name, writes, reached) for name, writes in WRITES.items()
    }
    return evolve(collaborators, probe=reached, loops=_PATIENT, **watched)


@frozen
class Watched:
    """Another object, with a point before and after each of its writes."""

    _inner: Any
    _name: str
    _writes: tuple[str, ...]
    _reached: Reached

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in self._writes:
            return method

        def write(*args: Any, **kwargs: Any) -> Any:
            what = f"{self._name}.{name}{_end(args)}"
            self._reached(f"before {what}")
            written = method(*args, **kwargs)
            if inspect.isawaitable(written):
                return self._later(written, what)
            self._reached(f"after {what}")
            return written

        return write

    async def _later(self, written: Any, what: str) -> Any:
        result = await written
        self._reached(f"after {what}")
        return result


def _end(args: tuple[Any, ...]) -> str:
    """Where a transition leads, if there is one among the arguments."""
    flat = [each for given in args for each in (given if isinstance(given, tuple | list) else (given,))]
    ends = [each.end.value for each in flat if hasattr(each, "end")]
    return f" {ends[-1]}" if ends else ""
