"""The names of tools: ours beside the client's own, so that neither hides the other."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import Factory, define, field, frozen

from aileron.features.inband._turns import OfferedTool

_OURS = "aileron_"
_THEIRS = "agent_"
_LONGEST = 64  # what providers take


@frozen
class ToolNames:
    """The names that the model sees.

    :ivar ours: the tools that are offered, by these names.
    :ivar up: those of the client's own tools that have another name there, by the client's.
    """

    ours: Mapping[str, OfferedTool]
    up: Mapping[str, str]
    _down: Mapping[str, str] = field(init=False)
    _sorted: Sequence[str] = field(init=False)

    @_down.default
    def _invert(self) -> Mapping[str, str]:
        return {seen: own for own, seen in self.up.items()}

    @_sorted.default
    def _sort(self) -> Sequence[str]:
        return sorted(self.ours)

    def down(self, name: object) -> object:
        """Return the client's name for one of its tools."""
        return self._down.get(name, name) if isinstance(name, str) else name

    def may_become_ours(self, name: str) -> bool:
        """Return whether a name that comes in pieces may still become the name of one of our tools."""
        at = bisect_left(self._sorted, name)
        return at < len(self._sorted) and self._sorted[at].startswith(name)

    def warnings(self) -> tuple[str, ...]:
        """Say which of the client's tools have another name."""
        return tuple(f"The client's tool {_cut(own)} is shown to the model as {seen}." for own, seen in self.up.items())


def choose_names(offered: Sequence[OfferedTool], own: Sequence[str]) -> ToolNames:
    """Choose names: a client's C{aileron_x} becomes C{agent_aileron_x}, and a tool of ours gives way to the client's.

    :param own: the names of the client's tools.
    """
    used = _UsedNames(set(own))
    up = {name: used.add(_THEIRS + name) for name in dict.fromkeys(own) if name.startswith(_OURS)}
    ours = {}
    for tool in sorted(offered, key=lambda tool: tool.name):
        is_free = tool.name not in used.names
        ours[used.add(tool.name) if is_free else used.add(_OURS + tool.name)] = tool
    return ToolNames(ours, up)


@define
class _UsedNames:
    """The names that are taken.

    :ivar names: all of them.
    """

    names: set[str]
    _last: Counter[str] = Factory(Counter)  # the number that was tried last, by the text before it

    def add(self, name: str) -> str:
        """Take a name, and return it; if it is taken or too long, one that begins like it."""
        found = name[:_LONGEST]
        if found in self.names:
            found = next(each for each in self._numbered(name) if each not in self.names)
        self.names.add(found)
        return found

    def _numbered(self, name: str) -> Iterator[str]:
        """Yield a name with the numbers from 2 on that were not tried with its beginning before."""
        for digits in range(1, _LONGEST - 1):
            begin = name[: _LONGEST - 1 - digits]
            key = f"{digits} {begin}"
            for number in range(max(self._last[key] + 1, 2, 10 ** (digits - 1)), 10**digits):
                self._last[key] = number
                yield f"{begin}_{number}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
