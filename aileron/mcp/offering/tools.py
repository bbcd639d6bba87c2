"""The tools offered to a session, and their form in the protocol. Loads no part of the SDK."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, plain
from aileron.client import Daemon, SessionEnvironment
from aileron.mcp._definitions import ToolDefinition, own_definitions
from aileron.mcp._forms import relax_schema
from aileron.mcp._link import DaemonLink
from aileron.mcp.waiting.profiles import USUAL_SECONDS

from .access import ACCESS_DEFINITIONS, Shortlist

TOOLS_A_PAGE = 250  # not every client requests a second page

_REFERENCES = ("$ref", "$dynamicRef")


@frozen
class ToolListing:
    """The tools offered to a session.

    :ivar link: the actions that the daemon offers.
    :ivar shortlist: selects the listed actions.
    :ivar wait_seconds: the longest wait for a change of a call's status that the tool's schema offers.
    """

    link: DaemonLink
    shortlist: Shortlist
    wait_seconds: int

    @classmethod
    def make(cls, daemon: Daemon, session: SessionEnvironment, clock: IReactorTime) -> ToolListing:
        """Make the listing of a session. The link's polling is not started."""
        longest = int(USUAL_SECONDS) if session.wait_seconds is None else session.wait_seconds
        return cls(DaemonLink(daemon, clock), Shortlist(daemon, session.listed_actions), longest)

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """Return every listed tool in order: actions by name, then Aileron's own by name.

        :param hears_changes: whether the client is notified of tools added later. If not, the tools that find unlisted
            actions are always included.
        """
        definitions = await self.link.offered()
        listed = await self.shortlist.of(definitions)
        access = ACCESS_DEFINITIONS if len(listed) < len(definitions) or not hears_changes else ()
        ours = sorted((*own_definitions(self.wait_seconds), *access), key=lambda definition: definition.name)
        return (*listed, *ours)


def write_tool(definition: ToolDefinition, *, asked: bool = False) -> dict[str, JSON]:
    """Return a tool as the protocol's JSON object.

    :param asked: whether a person is asked for missing values by a form, so that they are optional.
    """
    schema = relax_schema(definition) if asked and definition.asks else definition.input_schema
    tool: dict[str, JSON] = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "inputSchema": plain(schema),
        "annotations": {
            "title": definition.title,
            "readOnlyHint": definition.read_only,
            "destructiveHint": definition.destructive,
            "idempotentHint": definition.idempotent,
            "openWorldHint": definition.open_world,
        },
    }
    if definition.output_schema is not None:
        tool["outputSchema"] = plain(wrap_output_schema(definition.output_schema))
    return tool


def wrap_output_schema(output: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the schema of a tool's structured result, whose member C{output} has the schema C{output}."""
    status = {"type": "string", "description": "completed; or anything else: it is not done."}
    text = {"type": "string", "description": "What else there is to know."}
    properties = {"status": status, "output": _relocate(output), "text": text}
    return {"type": "object", "properties": properties, "required": ["status"], "additionalProperties": False}


def _relocate(schema: JSON) -> JSON:
    """Return a schema with its internal references adjusted to the place below C{/properties/output}."""
    if isinstance(schema, Mapping):
        return {
            key: _relocate_reference(value) if key in _REFERENCES else _relocate(value) for key, value in schema.items()
        }
    if isinstance(schema, (list, tuple)):
        return [_relocate(value) for value in schema]
    return schema


def _relocate_reference(value: JSON) -> JSON:
    return f"#/properties/output{value[1:]}" if isinstance(value, str) else _relocate(value)
