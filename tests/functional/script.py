"""What a scripted model says: a list of turns, each text, tool calls or a refusal."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

Arguments = Mapping[str, Any]

_PICTURES = ("image", "image_url", "input_image")


class ScriptError(AssertionError):
    """The agent and the script disagree: a turn too many, a turn too few, or a tool that is not offered."""


@attrs.frozen
class Received:
    """One request as the model saw it, whether a turn answered it or not."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model's name as asked for."""
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The conversation, oldest first; of the responses format its items."""
        given = self.body.get("messages") or self.body.get("input") or []
        return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the agent offers; before one of a namespace stand that and a slash."""
        offered = [tool.get("function", tool) for tool in self.body.get("tools") or []]
        return [name for tool in offered if "name" in tool for name in _names(tool)]

    @property
    def tool_results(self) -> list[str]:
        """What tools answered so far, as text, oldest first."""
        return [result for message in self.messages for result in _results(message)]

    @property
    def pictures(self) -> int:
        """How many pictures the model is shown."""
        return _pictures(self.messages)

    @property
    def is_title(self) -> bool:
        """Whether the agent only wants a heading for its session, which is no turn of the script."""
        before = [message for message in self.messages if message.get("role") in ("system", "developer")]
        system = [_text(message["content"]) for message in before]
        system += [_text(self.body.get("system")), _text(self.body.get("instructions"))]
        return not self.tools and any("title" in text for text in system)

    def tool_named(self, suffix: str) -> str:
        """The one offered tool whose name ends with ``suffix``.

        :raises ScriptError: when none or several do.
        """
        names = [name for name in self.tools if name.endswith(suffix)]
        if len(names) != 1:
            raise ScriptError(f"wanted one tool ending with {suffix!r}, offered are {self.tools}")
        return names[0]


@attrs.frozen
class Say:
    """A turn of plain text; an agent takes it as the end of its work.

    :param pause_seconds: between the events of a streamed one.
    :param cut_after: so many events of a streamed one are sent, then the connection is closed without its end.
    """

    text: str
    pause_seconds: float = 0.0
    cut_after: int | None = None


@attrs.frozen
class Call:
    """One tool call.

    :param tool: the end of the tool's name; agents put their own prefix before it.
    :param arguments: the arguments, or a function from the request that asks for this turn to them.
    """

    tool: str
    arguments: Arguments | Callable[[Received], Arguments] = attrs.Factory(dict)

    def arguments_for(self, received: Received) -> str:
        """The arguments as JSON text."""
        given = self.arguments
        return json.dumps(dict(given(received) if callable(given) else given))


@attrs.frozen
class Calls:
    """A turn of several tool calls at once."""

    calls: tuple[Call, ...]


@attrs.frozen
class Refuse:
    """A turn answered by an HTTP error in the provider's shape.

    :param headers: more of the answer's headers, such as C{Retry-After}.
    """

    status: int
    message: str
    headers: Mapping[str, str] = attrs.Factory(dict)


Turn = Say | Call | Calls | Refuse


def found(pattern: str, received: Received) -> str:
    """The first group of ``pattern`` in the latest tool result that has it.

    :raises ScriptError: when no result has it.
    """
    for result in reversed(received.tool_results):
        if match := re.search(pattern, result):
            return match.group(1)
    raise ScriptError(f"no tool result matches {pattern!r}: {received.tool_results}")


def _pictures(part: object) -> int:
    if isinstance(part, Mapping):
        return int(part.get("type") in _PICTURES) + sum(map(_pictures, part.values()))
    return sum(map(_pictures, part)) if isinstance(part, list) else 0


def _names(tool: Mapping[str, Any]) -> list[str]:
    """Its name; of a namespace those of what is in it."""
    if tool.get("type") != "namespace":
        return [tool["name"]]
    return [f"{tool['name']}/{each['name']}" for each in tool["tools"]]


def _results(message: Mapping[str, Any]) -> list[str]:
    """The tool results in one message: a message or item of its own, or parts of one (Anthropic's messages)."""
    if message.get("type") == "function_call_output":
        return [_text(message["output"])]
    content = message.get("content")
    if message.get("role") == "tool":
        return [_text(content)]
    parts = [] if isinstance(content, str) else content or []
    return [_text(part["content"]) for part in parts if part.get("type") == "tool_result"]


def _text(content: Any) -> str:
    """Message content as text, be it a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
