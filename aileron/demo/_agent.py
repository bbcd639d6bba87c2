"""The agent: a real MCP client that runs the installed C{aileron-mcp}, as any agent does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.errors import InternalError
from aileron.home import Home

from ._session import open_session
from ._stage import script

if TYPE_CHECKING:
    from mcp import Client

_OFFERED_SECONDS = 20.0
_LOOK_SECONDS = 0.2


@frozen
class Told:
    """What a tool answered."""

    text: str
    is_error: bool


@frozen
class Agent:
    """An agent that is connected."""

    _client: Client

    async def tools_with(self, wanted: str) -> list[str]:
        """The names of the tools, as soon as C{wanted} is among them.

        :raises InternalError: it is not offered in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _OFFERED_SECONDS
        while True:
            names = [tool.name for tool in (await self._client.list_tools()).tools]
            if wanted in names:
                return names
            if loop.time() > deadline:
                raise InternalError(f"The tool {wanted} is not offered.")
            await asyncio.sleep(_LOOK_SECONDS)

    async def call(self, tool: str, arguments: Mapping[str, str]) -> Told:
        """Call one; it answers when the person has decided."""
        result = await self._client.call_tool(tool, dict(arguments))
        texts = [part.text for part in result.content if part.type == "text"]
        return Told("\n".join(texts), bool(result.is_error))


@asynccontextmanager
async def agent(home: Home, directory: str) -> AsyncIterator[Agent]:
    """The agent, in a session of its own; it is gone at the end."""
    # The SDK takes half a second to import: only whoever plays pays for it.
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    environment = {"PATH": os.defpath, **open_session(home, directory).variables()}
    parameters = StdioServerParameters(command=script("aileron-mcp"), args=[], env=environment)
    try:
        async with Client(stdio_client(parameters)) as client:
            yield Agent(client)
    except BaseExceptionGroup as group:
        raise only_cause(group) from None


def only_cause(error: BaseException) -> BaseException:
    """What went wrong, out of the groups that the SDK's task groups wrap it in; a group of several stays one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
