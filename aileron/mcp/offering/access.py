"""Selects which actions are listed as tools. Implements the tools that find, describe and run the other actions."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence

from attrs import define

from aileron.base.json import JSON, plain
from aileron.client import Daemon, DaemonError
from aileron.mcp._definitions import (
    DESCRIBE_TOOL,
    DIAGNOSTICS_TOOL,
    RUN_TOOL,
    SEARCH_TOOL,
    ToolDefinition,
    object_schema,
)
from aileron.mcp._forms import relax_schema
from aileron.mcp._texts import ToolResult

from .search import MOST_FOUND, ActionIndex, SearchUnavailable

_MOST_ABOUT = 200
_NO_SEARCH = (
    "Actions cannot be searched: Aileron runs on a Python whose SQLite is built without FTS5. "
    "Ask the user to set AILERON_LISTED_ACTIONS=1000, which lists every action, and to start you again."
)
_NAME: Mapping[str, JSON] = {"type": "string", "description": f"As {SEARCH_TOOL} names it."}


ACCESS_DEFINITIONS = (
    ToolDefinition(
        name=DESCRIBE_TOOL,
        title="Describe an action",
        description="Tells what an action does, whether it needs the user's approval, and which arguments it takes. "
        f"Read it before {RUN_TOOL}.",
        input_schema=object_schema({"name": _NAME}, "name"),
        read_only=True,
        idempotent=True,
    ),
    ToolDefinition(
        name=RUN_TOOL,
        title="Run an action",
        description="Runs an action that is not listed as a tool of its own. It answers as that action's tool would: "
        "if it says that it is pending, it has not been done.",
        input_schema=object_schema(
            {"name": _NAME, "args": {"type": "object", "description": f"Its arguments, as {DESCRIBE_TOOL} says."}},
            "name",
        ),
        read_only=False,
        idempotent=False,
        destructive=True,
        open_world=True,
    ),
    ToolDefinition(
        name=SEARCH_TOOL,
        title="Search actions",
        description="Finds actions by words. More are installed than are listed here: search before you say that "
        "something cannot be done.",
        input_schema=object_schema(
            {"query": {"type": "string", "description": "A few words on what is to be done."}}, "query"
        ),
        read_only=True,
        idempotent=True,
    ),
)


def render_matches(index: ActionIndex, definitions: Sequence[ToolDefinition], query: object) -> ToolResult:
    """Search the actions for the words of C{query}, and return the matches as the result of the search tool.

    If nothing matches, the result says so. If the query is no text or too long, or SQLite has no full-text index, it is
    an error result.

    :param index: the index of actions.
    :param definitions: the actions to search.
    """
    if not isinstance(query, str) or not query.strip():
        return ToolResult("query must be a few words.", is_error=True)
    try:
        best = index.search(definitions, query, MOST_FOUND + 1)
    except SearchUnavailable:
        return ToolResult(_NO_SEARCH, is_error=True)
    if not best:
        return ToolResult(f"No action of {len(definitions)} has these words. Try others, or fewer.")
    more = ["More actions have some of these words. Add words to narrow the search."] if len(best) > MOST_FOUND else []
    return ToolResult(
        "\n".join([*map(_line, best[:MOST_FOUND]), *more, f"{DESCRIBE_TOOL} tells the arguments of one."])
    )


def find_action(definitions: Sequence[ToolDefinition], name: object) -> ToolDefinition | ToolResult:
    """Return the action with this name or tool name, ignoring case, or an error result if there is none."""
    wanted = name.casefold() if isinstance(name, str) else None
    for definition in definitions:
        if definition.action is not None and wanted in (definition.action.casefold(), definition.name.casefold()):
            return definition
    if not isinstance(name, str) or not name:
        return ToolResult(f"name must be that of an action; {SEARCH_TOOL} finds it.", is_error=True)
    return ToolResult(f"There is no action {name!r} now. To find actions, use {SEARCH_TOOL}.", is_error=True)


def describe_action(definitions: Sequence[ToolDefinition], name: object) -> ToolResult:
    """Return a tool result with the document of one action, or an error result if there is no such action."""
    definition = find_action(definitions, name)
    return definition if isinstance(definition, ToolResult) else ToolResult(render_action(definition))


def resolve_call(
    definitions: Sequence[ToolDefinition], tool: str, arguments: Mapping[str, JSON]
) -> tuple[ToolDefinition, Mapping[str, JSON]] | ToolResult:
    """Return the action that a call of C{tool} runs, listed or not, and its arguments, or an error result."""
    if tool != RUN_TOOL:
        definition = next((definition for definition in definitions if definition.name == tool), None)
        gone = f"There is no tool {tool!r} (any more). {DIAGNOSTICS_TOOL} tells what is offered."
        return ToolResult(gone, is_error=True) if definition is None else (definition, arguments)
    if others := sorted(arguments.keys() - {"name", "args"}):
        # If the other arguments were ignored, the action would run with other arguments than intended.
        return ToolResult(
            f"{RUN_TOOL} takes name and args; put into args what is the action's: {', '.join(others)}.", is_error=True
        )
    found_or_not, given = find_action(definitions, arguments.get("name")), arguments.get("args", {})
    if isinstance(found_or_not, ToolResult):
        return found_or_not
    return (found_or_not, given) if isinstance(given, Mapping) else ToolResult("args must be an object.", is_error=True)


def render_action(definition: ToolDefinition) -> str:
    """Return an action's document: everything that a caller must know, as Markdown."""
    effect = "it only reads" if definition.read_only else "it changes something"
    approval = "after" if definition.gated else "without"
    parts = [
        f"# {definition.title}",
        definition.description,
        f"Action `{definition.action}`, tool `{definition.name}`; {effect}, {approval} the user's approval.",
        f"Arguments:\n{_pretty(relax_schema(definition) if definition.asks else definition.input_schema)}",
    ]
    if definition.output_schema is not None:
        parts.append(f"Output:\n{_pretty(definition.output_schema)}")
    return "\n\n".join(part for part in parts if part)


def _line(definition: ToolDefinition) -> str:
    about = " ".join(definition.about.split())
    short = about if len(about) <= _MOST_ABOUT else f"{about[: _MOST_ABOUT - 1]}…"
    return f"- {definition.action}: {definition.title}. {short}{' (needs approval)' if definition.gated else ''}"


def _pretty(schema: Mapping[str, JSON]) -> str:
    return f"```json\n{json.dumps(plain(schema), ensure_ascii=False, indent=1)}\n```"


MOST_FAVOURITES = 12
USUAL_TOKENS = 250
"""The assumed average tokens of a listed action. The limit of listed actions times this number limits the whole
list."""
_BYTES_A_TOKEN = 4

_log = logging.getLogger(__name__)


def estimate_tokens(definition: ToolDefinition) -> int:
    """Estimate how many tokens of a model's context a tool uses."""
    schemas = (plain(definition.input_schema), plain(definition.output_schema or {}))
    text = json.dumps((definition.name, definition.title, definition.description, *schemas), ensure_ascii=False)
    return len(text.encode()) // _BYTES_A_TOKEN


@define
class Shortlist:
    """The selection of listed actions: all actions, or the most used if all are too many or too long.

    The most used actions are requested once, and adding an action does not remove others, because a changing list would
    invalidate the caches of clients and models.

    :ivar limit: the most listed actions. Together they may have L{USUAL_TOKENS} for each. Once all actions have been
        listed, twice as many may be, so that a few more actions do not shorten the list.
    """

    _daemon: Daemon
    limit: int
    _favourites: tuple[str, ...] | None = None
    _all_were: bool = False

    async def of(self, definitions: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """Return those of C{definitions} that are listed as tools, in their order."""
        most = self.limit * (2 if self._all_were else 1)
        if len(definitions) <= most and len(_fitting(definitions, most)) == len(definitions):
            self._all_were = self._all_were or bool(definitions)
            return tuple(definitions)
        known = {definition.action: definition for definition in definitions}
        used = [known[name] for name in await self._names() if name in known]
        chosen = {definition.action for definition in _fitting(used, min(self.limit, MOST_FAVOURITES))}
        return tuple(definition for definition in definitions if definition.action in chosen)

    async def _names(self) -> tuple[str, ...]:
        if self._favourites is None:
            try:
                names = await self._daemon.most_used(min(self.limit, MOST_FAVOURITES)) if self.limit else ()
            except DaemonError as error:
                # List no action this time: unlisted actions can be found by search.
                _log.info("could not request the most used actions: %s", error)
                return ()
            self._favourites = tuple(names)
        return self._favourites


def _fitting(definitions: Iterable[ToolDefinition], most: int) -> Sequence[ToolDefinition]:
    """Return the definitions that fit into L{USUAL_TOKENS} times C{most}. A definition that does not fit is skipped."""
    fitting, left = [], most * USUAL_TOKENS
    for definition in definitions:
        if (tokens := estimate_tokens(definition)) <= left:
            fitting.append(definition)
            left -= tokens
    return fitting
