"""Tools of the handshake's era, which ask the client while their call waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp.types as t

from .answers import Context, Tool, ToolAnswer, Tools, result

_CHOICES = ["active", "inactive", "pending"]
_DEFAULTS: Mapping[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": _CHOICES, "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_ENUMS: Mapping[str, Any] = {
    "untitledSingle": {"type": "string", "enum": _CHOICES},
    "titledSingle": {"type": "string", "oneOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["read", "write"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "bugs", "title": "Bug Fix"}]}},
    "legacyEnum": {"type": "string", "enum": ["small", "large"], "enumNames": ["Small Size", "Large Size"]},
}


async def _sampling(ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
    prompt = str((params.arguments or {})["prompt"])
    message = t.SamplingMessage(role="user", content=t.TextContent(text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return result(f"LLM response: {answer.content}")


async def _elicitation(ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
    message = str((params.arguments or {})["message"])
    return await _asked(ctx, message, {"response": {"type": "string"}})


def _form(message: str, properties: Mapping[str, Any]) -> Tool:
    async def ask(ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
        return await _asked(ctx, message, properties)

    return ask


async def _asked(ctx: Context, message: str, properties: Mapping[str, Any]) -> t.CallToolResult:
    schema = {"type": "object", "properties": properties}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return result(f"User response: action={answer.action}, content={answer.content}")


ASKING: Tools = {
    "test_sampling": _sampling,
    "test_elicitation": _elicitation,
    "test_elicitation_sep1034_defaults": _form("Please provide user information", _DEFAULTS),
    "test_elicitation_sep1330_enums": _form("Please select values", _ENUMS),
}
