"""The definitions of the offered tools: one for each enabled action, and Aileron's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from aileron.base.json import JSON

STATUS_TOOL = "check_action_status"
DIAGNOSTICS_TOOL = "aileron_diagnostics"
SEARCH_TOOL = "search_actions"
DESCRIBE_TOOL = "describe_action"
RUN_TOOL = "run_action"
OUR_TOOLS = frozenset({STATUS_TOOL, DIAGNOSTICS_TOOL, SEARCH_TOOL, DESCRIBE_TOOL, RUN_TOOL})

_NAME = re.compile(r"[a-zA-Z0-9_]{1,64}")  # the names that every agent and provider accepts

_GATED = (
    "This needs the user's approval. The call may answer that it is pending: then show the user the message that came "
    f"with it, go on or ask {STATUS_TOOL} later, and do not report the action as done before it says completed."
)

_ASKED = (
    "For the user to say and never for you to make up: {names}. Leave out what they did not tell you: they are asked "
    "where your program shows forms. Where it does not, ask them yourself before you call."
)


@frozen
class ToolDefinition:
    """One tool as shown to a client.

    :ivar name: the name, of at most 64 characters C{[a-zA-Z0-9_]}.
    :ivar action: the name of its action, or None for one of Aileron's own tools.
    :ivar input_schema: the JSON Schema of the arguments.
    :ivar gated: whether calls need approval.
    :ivar withdrawn_on_cancel: whether cancelling a call cancels its run while the run is pending.
    :ivar destructive: whether the tool may change or remove existing data.
    :ivar open_world: whether the tool contacts external services.
    :ivar about: the description without Aileron's additions.
    :ivar output_schema: the JSON Schema of the action's output, if declared.
    :ivar asks: the arguments that a person must provide.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, JSON]
    read_only: bool
    idempotent: bool
    action: str | None = None
    gated: bool = False
    withdrawn_on_cancel: bool = False
    destructive: bool = False
    open_world: bool = False
    about: str = ""
    output_schema: Mapping[str, JSON] | None = None
    asks: tuple[str, ...] = ()


def read_definitions(items: Iterable[Any]) -> tuple[ToolDefinition, ...]:
    """Return the tools of the enabled actions among C{items}, sorted by name.

    Malformed items, and items with the name of one of Aileron's own tools, are left out.
    """
    definitions = [definition for item in items if (definition := _definition(item)) is not None]
    return tuple(sorted(definitions, key=lambda definition: definition.name))


def own_definitions(longest_wait_seconds: int) -> tuple[ToolDefinition, ToolDefinition]:
    """Return the definitions of the diagnostics and status tools, which are always present, sorted by name."""
    return _DIAGNOSTICS, _status_definition(longest_wait_seconds)


def _definition(item: Any) -> ToolDefinition | None:
    try:
        if not item["enabled"] or item["tool_name"] in OUR_TOOLS:
            return None
        heading, body = _split(str(item.get("description") or ""))
        about = body or str(item.get("intent") or "")
        asks = tuple(map(str, item.get("asks") or ()))
        return ToolDefinition(
            name=_check_name(item["tool_name"]),
            title=heading or str(item["name"]),
            description=_describe(about, asks, gated=bool(item["gated"])),
            input_schema=dict(item["input_schema"]),
            read_only=bool(item["read_only"]),
            idempotent=bool(item["idempotent"]),
            action=str(item["name"]),
            gated=bool(item["gated"]),
            withdrawn_on_cancel=item.get("on_cancel") == "withdraw",
            destructive=bool(item.get("destructive", not item["read_only"])),
            open_world=bool(item.get("open_world", True)),
            about=about,
            output_schema=None if item.get("output_schema") is None else dict(item["output_schema"]),
            asks=asks,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _describe(about: str, asks: tuple[str, ...], *, gated: bool) -> str:
    asked = _ASKED.format(names=", ".join(asks)) if asks else ""
    return "\n\n".join(part for part in (about, asked, _GATED if gated else "") if part)


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("no name for a tool")
    return name


def _split(body: str) -> tuple[str, str]:
    """Split an action's body into its heading and the rest.

    The heading is empty if the body does not begin with one.
    """
    first, _, rest = body.strip().partition("\n")
    if first.startswith("# "):
        return first[2:].strip(), rest.strip()
    return "", body.strip()


def object_schema(properties: Mapping[str, JSON], *required: str) -> Mapping[str, JSON]:
    """Return the JSON Schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _status_definition(longest_wait_seconds: int) -> ToolDefinition:
    wait: Mapping[str, JSON] = {
        "type": "number",
        "minimum": 0,
        "maximum": longest_wait_seconds,
        "description": "How long to wait for a change before answering, in seconds. 0 answers at once.",
    }
    approval = {"type": "string", "description": "The approval_id that the pending answer named."}
    return ToolDefinition(
        name=STATUS_TOOL,
        title="Check an action's status",
        description="Checks a pending action: still waiting for the user's approval, denied, or completed (with its "
        "result). Also works after you were resumed.",
        input_schema=object_schema({"approval_id": approval, "wait_seconds": wait}, "approval_id"),
        read_only=True,
        idempotent=True,
    )


_DIAGNOSTICS = ToolDefinition(
    name=DIAGNOSTICS_TOOL,
    title="Aileron diagnostics",
    description="Tells whether Aileron's daemon can be reached, which actions it offers, and what to do if not.",
    input_schema=object_schema({}),
    read_only=True,
    idempotent=True,
)
