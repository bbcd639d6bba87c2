"""Reads the response to a tool call: its outcome, and the output for the action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aileron.base.attachments import UNKNOWN_MEDIA_TYPE, Attachment, attached, media_type_of, regular_base64
from aileron.base.json import JSON
from aileron.connectors._decode import show_safely
from aileron.connectors._sending import not_understood
from aileron.model.connectors import READ, Outcome
from aileron.model.errors import ExternalApiError

from ._wire import Message

NOT_EXECUTED = frozenset({-32700, -32600, -32601, -32602})
"""The JSON-RPC error codes of calls that the server did not understand, so that no tool was called."""

_MOST_MESSAGE, _MOST_TYPE = 2000, 100


@frozen
class CallReader:
    """A reader of responses to a tool call.

    :ivar name: the name of the connector, for messages.
    :ivar effect: the effect of the operation; a failed read has changed nothing.
    """

    name: str
    tool: str
    effect: str

    def outcome(self, answer: Message) -> Outcome:
        """Return the outcome of a call from its response.

        If the response cannot be read, or asks for more input, the effect is unknown.
        """
        error, result = answer.get("error"), answer.get("result")
        if isinstance(error, Mapping) and result is None:
            return self._failed(error)
        if not isinstance(result, Mapping) or error is not None:
            return Outcome(fault=not_understood(self.name), classified=False)
        if result.get("resultType", "complete") != "complete":
            message = f"{self.name} asked for more input during the call, which was refused: no approval covers it."
            return Outcome(fault=ExternalApiError(message).fault(), classified=False)
        try:
            output = _output(result)
        except (TypeError, ValueError, AttributeError):
            return Outcome(fault=not_understood(self.name), classified=False)
        if result.get("isError") is True:
            return self._reported(output)
        return Outcome(output)

    def _failed(self, error: Mapping[str, JSON]) -> Outcome:
        code, said = error.get("code"), show_safely(str(error.get("message", "")), _MOST_MESSAGE)
        fault = ExternalApiError(f"{self.name} answered with the error {code}: {said}", {"code": code}).fault()
        return Outcome(fault=fault, classified=type(code) is int and code in NOT_EXECUTED)

    def _reported(self, output: Mapping[str, JSON]) -> Outcome:
        """Return the outcome of a tool that reports a failure. Unless the call is a read, its effect is unknown."""
        said = show_safely(str(output.get("text", "")), _MOST_MESSAGE)
        undone = "" if self.effect == READ else " It does not say that nothing was done."
        message = f"The tool {show_safely(self.tool)} of {self.name} reported a failure: {said}{undone}"
        return Outcome(fault=ExternalApiError(message).fault(), classified=self.effect == READ)


def _output(result: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the content of a result: text, structured content, attachments and links, each only if present.

    Content of an unknown type next to other content is mentioned in the text.

    :raises TypeError, ValueError, AttributeError: if the result is malformed or has only content of unknown types.
    """
    content = result.get("content", [])
    if not isinstance(content, list) or not isinstance(result.get("isError") or False, bool):
        raise TypeError
    texts: list[str] = []
    found: dict[str, list[JSON]] = {"attachments": [], "links": []}
    unknown = [kind for block in content if (kind := _read_block(block, texts, found))]
    if unknown and len(unknown) == len(content) and result.get("structuredContent") is None:
        raise ValueError  # no part of the result has a known type
    texts += [f"[left out: content of type {kind}, which is not supported]" for kind in unknown]
    output: dict[str, JSON] = {"text": "\n".join(texts)} if texts else {}
    if result.get("structuredContent") is not None:
        output["structured"] = result["structuredContent"]
    return {**output, **{name: each for name, each in found.items() if each}}


def _read_block(block: Any, texts: list[str], found: Mapping[str, list[JSON]]) -> str:
    """Read one block of content into C{texts} or C{found}.

    :return: an empty text, or the printable type of the block if the type is unknown.
    :raises TypeError, ValueError, AttributeError: if the block is malformed.
    """
    kind = block.get("type")
    if kind == "text":
        texts.append(_text(block["text"]) if "text" in block else "")
    elif kind in ("image", "audio"):
        found["attachments"].append(_binary(block.get("mimeType"), block.get("data")))
    elif kind == "resource":
        found["attachments"].append(_resource(block.get("resource")))
    elif kind == "resource_link":
        found["links"].append({key: _text(block[key]) for key in ("uri", "name", "description") if key in block})
    else:
        return show_safely(_text(kind), _MOST_TYPE)
    return ""


def _text(value: JSON) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _binary(media_type: JSON, data: JSON) -> JSON:
    encoded = regular_base64(_text(data))
    if encoded is None:
        raise ValueError
    return Attachment(media_type_of(_text(media_type or UNKNOWN_MEDIA_TYPE)), base64=encoded).as_output()


def _resource(resource: JSON) -> JSON:
    if not isinstance(resource, Mapping):
        raise TypeError
    media_type = _text(resource.get("mimeType") or "text/plain" if "text" in resource else UNKNOWN_MEDIA_TYPE)
    if "text" not in resource:
        return _binary(resource.get("mimeType"), resource.get("blob"))
    return attached(media_type_of(media_type), _text(resource["text"]).encode("utf-8", "replace")).as_output()
