"""The names of tools: ours beside the client's own, so that neither hides the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from aileron.inband._turns import OfferedTool

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

    def down(self, name: object) -> object:
        """Return the client's name for one of its tools."""
        return next((own for own, seen in self.up.items() if seen == name), name)

    def warnings(self) -> tuple[str, ...]:
        """Say which of the client's tools have another name."""
        return tuple(f"The client's tool {own} is shown to the model as {seen}." for own, seen in self.up.items())


def choose_names(offered: Sequence[OfferedTool], own: Sequence[str]) -> ToolNames:
    """Choose names: a client's C{aileron_x} becomes C{agent_aileron_x}, and a tool of ours gives way to the client's.

    :param own: the names of the client's tools.
    """
    used = set(own)
    up = {}
    for name in dict.fromkeys(own):
        if name.startswith(_OURS):
            up[name] = _unique(_THEIRS + name, used)
            used.add(up[name])
    ours = {}
    for tool in sorted(offered, key=lambda tool: tool.name):
        name = tool.name if tool.name not in used else _unique(_OURS + tool.name, used)
        ours[name] = tool
        used.add(name)
    return ToolNames(ours, up)


def _unique(name: str, used: Iterable[str]) -> str:
    count, found = 1, name[:_LONGEST]
    while found in used:
        count += 1
        mark = f"_{count}"
        found = name[: _LONGEST - len(mark)] + mark
    return found
