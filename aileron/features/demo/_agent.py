"""The demo's agent: a real MCP client that runs the installed C{aileron-mcp}, in a session as of a launched agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.client import SessionEnvironment
from aileron.client.blocking import ask
from aileron.home.discovery import live_discovery
from aileron.home.paths import Home
from aileron.model.errors import InternalError

from ._stage import script

if TYPE_CHECKING:
    from mcp import Client

AGENT = "demo agent"
_WAIT_SECONDS = 900
_SECONDS = 10.0


def open_session(home: Home, directory: str) -> SessionEnvironment:
    """Open a session and return the environment of C{aileron-mcp} for the demo's agent.

    :raises InternalError: if the daemon opened no session.
    """
    found = live_discovery(home)
    if found is None:
        raise InternalError("The demo's daemon is not running any more.")
    claim = {"agent": AGENT, "working_dir": directory}
    opened = ask_service(found.url, "POST", "/v1/sessions", found.launch_key, claim)
    return SessionEnvironment(found.url, str(opened["token"]), _WAIT_SECONDS).on_this_machine()


def ask_service(
    url: str, method: str, path: str, token: str | None, body: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Send a request to a service on this machine and return the JSON object of its answer.

    :raises InternalError: if the service does not answer, or it refuses the request.
    """
    try:
        status, answer = ask(url, method, path, token, body, seconds=_SECONDS)
    except (OSError, ValueError) as error:
        raise InternalError(f"No valid response from {url} ({type(error).__name__}).") from None
    if status >= 400 or not isinstance(answer, dict):
        raise InternalError(f"{url}{path} refused (HTTP {status}).")
    return answer


_OFFERED_SECONDS = 20.0
_LOOK_SECONDS = 0.2


@frozen
class DemoAgent:
    """The demo's agent, connected to the daemon."""

    _client: Client

    async def tools_with(self, wanted: str) -> list[str]:
        """Wait until the tool C{wanted} is offered, and return the names of all tools.

        :raises InternalError: if the tool was not offered in time.
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

    async def call(self, tool: str, arguments: Mapping[str, str]) -> str:
        """Call a tool and return its text after the operator has decided."""
        result = await self._client.call_tool(tool, dict(arguments))
        return "\n".join(part.text for part in result.content if part.type == "text")


@asynccontextmanager
async def agent(home: Home, directory: str) -> AsyncIterator[DemoAgent]:
    """Connect the agent in a session of its own, and disconnect it when the block ends.

    :raises InternalError: if the daemon opened no session.
    """
    # The SDK takes half a second to import: only the demo pays for it.
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    environment = {"PATH": os.defpath, **open_session(home, directory).variables()}
    parameters = StdioServerParameters(command=script("aileron-mcp"), args=[], env=environment)
    try:
        async with Client(stdio_client(parameters)) as client:
            yield DemoAgent(client)
    except BaseExceptionGroup as group:
        raise only_cause(group) from None


def only_cause(error: BaseException) -> BaseException:
    """Return the only exception in nested exception groups. A group of several exceptions is returned as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
