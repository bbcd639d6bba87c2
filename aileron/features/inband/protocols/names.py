"""Chooses names of our tools that differ from the names of the client's tools."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from attrs import Factory, define, field, frozen

from aileron.features.inband._turns import OfferedTool

_OURS = "aileron_"
_THEIRS = "agent_"
_LONGEST = 64  # the limit of providers


@frozen
class ToolNames:
    """The names of tools that the model sees.

    :ivar ours: the offered tools, by the names that the model sees.
    :ivar up: the model's names of renamed client tools, by the client's names.
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
        """Return the client's own name of a tool that the model names. Other names are returned unchanged."""
        return self._down.get(name, name) if isinstance(name, str) else name

    def may_become_ours(self, name: str) -> bool:
        """Return whether an incomplete name may still become the name of one of our tools."""
        at = bisect_left(self._sorted, name)
        return at < len(self._sorted) and self._sorted[at].startswith(name)

    def warnings(self) -> tuple[str, ...]:
        """Return warnings for the client's renamed tools."""
        return tuple(f"The client's tool {_cut(own)} is shown to the model as {seen}." for own, seen in self.up.items())


def choose_names(offered: Sequence[OfferedTool], own: Sequence[str]) -> ToolNames:
    """Choose the names that the model sees. A client's C{aileron_x} becomes C{agent_aileron_x}, and ours stay unique.

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
    """The names already used.

    :ivar names: all used names.
    """

    names: set[str]
    _last: Counter[str] = Factory(Counter)  # the last number tried, by the text before it

    def add(self, name: str) -> str:
        """Add and return a name that is not used yet: C{name}, or a similar name if it is used or too long."""
        found = name[:_LONGEST]
        if found in self.names:
            found = next(each for each in self._numbered(name) if each not in self.names)
        self.names.add(found)
        return found

    def _numbered(self, name: str) -> Iterator[str]:
        """Yield C{name} with numbers from 2 on that were not tried yet, shortened to fit."""
        for digits in range(1, _LONGEST - 1):
            begin = name[: _LONGEST - 1 - digits]
            key = f"{digits} {begin}"
            for number in range(max(self._last[key] + 1, 2, 10 ** (digits - 1)), 10**digits):
                self._last[key] = number
                yield f"{begin}_{number}"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
