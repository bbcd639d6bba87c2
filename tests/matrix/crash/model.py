"""A provider whose model calls what it is told to call, in all three protocols; it outlives every life."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from attrs import define, field

from tests.features.inband.provider import Called, Part, Said, chat_document, message_document, response_document

PATHS: Mapping[str, tuple[str, Callable[..., bytes]]] = {
    "/inband/openai/v1/chat/completions": ("messages", chat_document),
    "/inband/openai/v1/responses": ("input", response_document),
    "/inband/anthropic/v1/messages": ("messages", message_document),
}
"""For each way of asking in in-band mode the name of its history, and what writes its replies."""

_TOLD = ("tool", "tool_result", "function_call_output")


def request(path: str, tool: str, text: str) -> dict[str, Any]:
    """A request that has the model call a tool, always the same."""
    history = [{"role": "user", "content": json.dumps({"tool": tool, "text": text})}]
    return {"model": "m", "max_tokens": 9, "stream": False, PATHS[path][0]: history}


@define(eq=False)
class Model:
    """The provider.

    :ivar port: where it listens.
    """

    port: int = 0
    _numbers: count[int] = field(factory=count)
    _server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            name, write = next(each for path, each in PATHS.items() if head.split(" ")[1] in path)
            content = write([self._say(asked[name])], next(self._numbers))
            about = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"{about}Content-Length: {len(content)}\r\n\r\n".encode() + content)
            await writer.drain()
        writer.close()

    def _say(self, history: list[dict[str, Any]]) -> Part:
        """Call the tool, under another identifier each time, until there is a result."""
        if any(f'"{each}"' in json.dumps(history) for each in _TOLD):
            return Said("done")
        told = json.loads(history[0]["content"])
        return Called(f"call-{next(self._numbers)}", told["tool"], json.dumps({"text": told["text"]}))
