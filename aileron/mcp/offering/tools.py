"""The tools that a session is offered, and each as the protocol writes it.  Loads nothing of the SDK."""

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

TOOLS_A_PAGE = 250  # not every client asks for a second

_REFERENCES = ("$ref", "$dynamicRef")


@frozen
class ToolListing:
    """The tools that a session is offered.

    :ivar link: the actions that the daemon offers.
    :ivar shortlist: which of them are listed.
    :ivar wait_seconds: how long an agent is told that it may wait for news of a call, at most.
    """

    link: DaemonLink
    shortlist: Shortlist
    wait_seconds: int

    @classmethod
    def make(cls, daemon: Daemon, session: SessionEnvironment, clock: IReactorTime) -> ToolListing:
        """Make the listing of a session; its link is not started."""
        longest = int(USUAL_SECONDS) if session.wait_seconds is None else session.wait_seconds
        return cls(DaemonLink(daemon, clock), Shortlist(daemon, session.listed_actions), longest)

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """Return every tool that is listed, in order: actions by name, then Aileron's own by name.

        :param hears_changes: whether the client is told of tools that are added later; if not, the tools that find
            unlisted actions are listed too.
        """
        definitions = await self.link.offered()
        listed = await self.shortlist.of(definitions)
        access = ACCESS_DEFINITIONS if len(listed) < len(definitions) or not hears_changes else ()
        ours = sorted((*own_definitions(self.wait_seconds), *access), key=lambda definition: definition.name)
        return (*listed, *ours)


def write_tool(definition: ToolDefinition, *, asked: bool = False) -> dict[str, JSON]:
    """Write a tool as the protocol has it.

    :param asked: whether a person is asked for what is for them to say.
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
    """Make the schema of the whole answer, C{output} being that of the action's own."""
    status = {"type": "string", "description": "completed; or anything else: it is not done."}
    text = {"type": "string", "description": "What else there is to know."}
    properties = {"status": status, "output": _relocate(output), "text": text}
    return {"type": "object", "properties": properties, "required": ["status"], "additionalProperties": False}


def _relocate(schema: JSON) -> JSON:
    """Move the schema a level below: what it says of its own parts says where they are now."""
    if isinstance(schema, Mapping):
        return {
            key: _relocate_reference(value) if key in _REFERENCES else _relocate(value) for key, value in schema.items()
        }
    if isinstance(schema, (list, tuple)):
        return [_relocate(value) for value in schema]
    return schema


def _relocate_reference(value: JSON) -> JSON:
    return f"#/properties/output{value[1:]}" if isinstance(value, str) else _relocate(value)
