"""Makes operations of the tools of an MCP server, and compares each tool with its reviewed description."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from aileron.base.json import JSON, digest
from aileron.base.text import visible
from aileron.model.connectors import READ, WRITE

from ._derive import name_of
from ._members import find_members
from ._references import ApiDocument, Inexpressible, WorkBudget, list_of, table_of, text_of
from ._requests import Arguments
from ._schemas import flatten
from .description import ARGUMENT, ApiDescription, ApiOperation, OperationSummary
from .files import one_line

NEW, SAME, CHANGED, MISSING = "new", "reviewed", "changed", "missing"
_MOST_WORDS = 300  # differing words to compare; the worst case is cubic
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@frozen
class ToolChange:
    """A tool that no longer matches the pin of an operation of the connector.

    :ivar state: L{CHANGED} or L{MISSING}.
    :ivar lines: the differences, field by field, with invisible characters escaped.
    """

    operation: str
    tool: str
    state: str
    lines: tuple[str, ...] = ()


@frozen
class ServerTools:
    """The tools that a server lists now, and the operations of the connector file that pin some of them.

    :ivar title: the connector's name.
    :ivar tools: the tools, each with a member C{pin}.
    :ivar pinned: the operations of the connector file, by name.
    :ivar reads: the tools that the user declares read-only.
    :ivar is_whole: whether C{tools} is the complete list; False if the server has too many tools.
    """

    title: str
    tools: tuple[Mapping[str, JSON], ...]
    pinned: Mapping[str, Mapping[str, Any]]
    reads: frozenset[str] = frozenset()
    is_whole: bool = True

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return all tools, each with its state: new, reviewed or changed."""
        return tuple(
            OperationSummary(
                name=name,
                key=str(tool["name"]),
                method="CALL",
                path=one_line(str(tool["name"])),
                effect=self._effect(name, tool),
                words=f"{self._state(name, tool)}: {one_line(text_of(tool.get('description')))}",
            )
            for name, tool in self._named().items()
        )

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the connector with the chosen tools, each pinned to its current description."""
        named = self._named()
        operations = tuple(self._operation(each.name, named[each.name]) for each in chosen)
        return ApiDescription(name, self.title, "", operations, kind="mcp")

    def changes(self, reviewed: Mapping[str, Mapping[str, JSON]]) -> Iterator[ToolChange]:
        """Yield every pinned tool that is missing or has changed.

        A tool counts as missing only if the list is complete.

        :param reviewed: reviewed descriptions by pin. A description whose digest is not its pin is ignored.
        """
        for operation, table in self.pinned.items():
            name, pin = str(table.get("tool")), str(table.get("pin"))
            now = [tool for tool in self.tools if tool["name"] == name]
            others = [tool for tool in now if tool["pin"] != pin]
            if not now and self.is_whole:
                yield ToolChange(operation, name, MISSING)
            elif others:
                old = reviewed.get(pin)
                known = old is not None and digest(old) == pin
                lines = (*_compare(old if known and old else {}, others[0]), *self._forgotten(table))
                yield ToolChange(operation, name, CHANGED, lines)

    def _forgotten(self, table: Mapping[str, Any]) -> Iterator[str]:
        """Yield lines that remind the user what was declared about a changed tool, and must be declared again."""
        name = str(table.get("tool"))
        if table.get("effect") == READ and name not in self.reads:
            yield f"effect: [-{READ}-]{{+{WRITE}+}}. If it still only reads, add --read {visible(name)}"
        if table.get("destructive") is False:
            yield "destructive: [-false-]{+true+}. If it still is not, change this in the connector file"

    def _named(self) -> Mapping[str, Mapping[str, JSON]]:
        """Return the tools by the names of their operations.

        The name is that of the pinned operation, or one derived from the tool's name. A tool whose name is a valid
        operation's name takes precedence over a tool whose name only resembles it.
        """
        known = {str(table.get("tool")): name for name, table in self.pinned.items()}
        named: dict[str, Mapping[str, JSON]] = {}
        plain = {name for name in (str(tool["name"]) for tool in self.tools) if name_of(name) == name}
        for tool in self.tools:
            name = str(tool["name"])
            taken = {*named, *self.pinned, "list_tools", *(plain - {name})}
            named[known.pop(name, "") or name_of(name, taken)] = tool
        return named

    def _state(self, name: str, tool: Mapping[str, JSON]) -> str:
        if name not in self.pinned:
            return NEW
        return SAME if self.pinned[name].get("pin") == tool["pin"] else CHANGED

    def _find_reviewed(self, name: str, tool: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Return the operation's table if the tool is unchanged since its review, or an empty table if not."""
        return self.pinned[name] if self._state(name, tool) == SAME else {}

    def _effect(self, name: str, tool: Mapping[str, JSON]) -> str:
        """Return the effect that the user declared, or a write by default. The server's own hints are ignored."""
        return READ if tool["name"] in self.reads else str(self._find_reviewed(name, tool).get("effect", WRITE))

    def _operation(self, name: str, tool: Mapping[str, JSON]) -> ApiOperation:
        if sum(each["name"] == tool["name"] for each in self.tools) > 1:
            return ApiOperation(name=name, refused="the server lists several tools of this name")
        description = text_of(tool.get("description"))
        try:
            arguments = _arguments(table_of(tool.get("inputSchema")))
        except Inexpressible as problem:
            return ApiOperation(name=name, refused=f"its arguments {problem}")
        return ApiOperation(
            name=name,
            title=text_of(tool.get("title")) or one_line(description, 100),
            description=description,
            effect=self._effect(name, tool),
            destructive=bool(self._find_reviewed(name, tool).get("destructive", True)),
            parameters=tuple(evolve(each, place=ARGUMENT) for each in arguments.found),
            extra={"tool": tool["name"], "pin": tool["pin"]},
            marks=arguments.marks,
        )


def _arguments(schema: Mapping[str, JSON]) -> Arguments:
    """Derive the arguments of a tool from its schema.

    :raises Inexpressible: if a required argument cannot be expressed.
    """
    document, work = ApiDocument(schema), WorkBudget()
    arguments = Arguments(document, work, frozenset())
    node = flatten(document, schema, work)
    if find_members(document, node, work).found:
        arguments.add_members(schema)
    elif node.keys.get("additionalProperties") or list_of(node.keys.get("anyOf")) or list_of(node.keys.get("oneOf")):
        arguments.mark("it takes arguments that it does not describe, and they cannot be given")
    return arguments


def _compare(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> Iterator[str]:
    for key in dict.fromkeys((*old, *new)):
        if key != "pin" and old.get(key) != new.get(key):
            yield f"{key}: {word_difference(_write(old.get(key)), _write(new.get(key)))}"
    if not old:
        yield "The description that was reviewed is not kept here: all of the new one is shown."


def _write(value: JSON) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def word_difference(old: str, new: str) -> str:
    """Return a word diff of two texts: C{[-removed-]} and C{{+added+}} between unchanged words.

    Invisible characters are escaped. If too many words differ, the old and the new text are shown one after the other,
    as a comparison would take too long.
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    first = _count_same(before, after)
    last = _count_same(before[first:][::-1], after[first:][::-1])
    start, end = "".join(before[:first]), "".join(before[len(before) - last :])
    before, after = before[first : len(before) - last], after[first : len(after) - last]
    pieces = [visible(start)]
    if max(len(before), len(after)) > _MOST_WORDS:
        pieces.append(_marked("".join(before), "".join(after)))
    else:
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            gone, came = "".join(before[a:b]), "".join(after[c:d])
            pieces.append(visible(gone) if tag == "equal" else _marked(gone, came))
    return "".join((*pieces, visible(end)))


def _count_same(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many words at the beginning of both lists are equal."""
    return next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )


def _marked(gone: str, came: str) -> str:
    return (f"[-{visible(gone)}-]" if gone else "") + (f"{{+{visible(came)}+}}" if came else "")
