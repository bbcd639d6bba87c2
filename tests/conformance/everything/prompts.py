"""Prompts: with and without arguments, with a picture and a document, and one that asks first."""

from __future__ import annotations

from collections.abc import Iterable

import mcp.types as t
from mcp.shared.exceptions import MCPError

from .answers import Context, embedded, form, image

PromptAnswer = t.GetPromptResult | t.InputRequiredResult

_NAMES = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def prompts(_ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
    """Answer C{prompts/list}."""
    listed = [
        t.Prompt(name=name, description=f"Says what a judge expects of {name}.", arguments=_arguments(names))
        for name, names in _NAMES.items()
    ]
    return t.ListPromptsResult(prompts=listed)


def _arguments(names: Iterable[str]) -> list[t.PromptArgument]:
    return [t.PromptArgument(name=name, description="Of the judge's choice.", required=True) for name in names]


async def prompt(_ctx: Context, params: t.GetPromptRequestParams) -> PromptAnswer:
    """Answer C{prompts/get}."""
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _saying("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return _saying(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        case "test_prompt_with_embedded_resource":
            document = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return _saying(document, "Please process the embedded resource above.")
        case "test_prompt_with_image":
            return _saying(image(), "Please analyze the image above.")
        case "test_input_required_result_prompt":
            return _asking(params)
    raise MCPError(t.INVALID_PARAMS, "There is no such prompt.")


async def complete(_ctx: Context, _params: t.CompleteRequestParams) -> t.CompleteResult:
    """Answer C{completion/complete}."""
    return t.CompleteResult(completion=t.Completion(values=["paris", "park", "party"], total=3, has_more=False))


def _asking(params: t.GetPromptRequestParams) -> PromptAnswer:
    answers = params.input_responses or {}
    if "user_context" in answers:
        return _saying(f"Use the following context: {answers['user_context']}")
    asked = form("What context should the prompt use?", context={"type": "string"})
    return t.InputRequiredResult(input_requests={"user_context": asked})


def _saying(*content: t.ContentBlock | str) -> t.GetPromptResult:
    blocks = [t.TextContent(text=each) if isinstance(each, str) else each for each in content]
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=block) for block in blocks])
