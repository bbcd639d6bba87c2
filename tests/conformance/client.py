"""Our connector to MCP servers as the client that the suite judges: ``python -m tests.conformance.client URL``.

It lists the tools of the server, pins them, and calls each once, or as often as the suite's context says.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import react

from aileron.addresses import read_base_url
from aileron.connectors import system_transport
from aileron.connectors._schema import read_file
from aileron.daemon._connectors import ConnectorMaker
from aileron.interfaces import IConnector
from aileron.values import JSON, Outcome
from tests.conformance import relay

_HEAD = """
[connector]
name = "local://conformance"
version = "1.0.0"
kind = "mcp"
{private}

[mcp]
{server}
"""
_OPERATION = """
[operations.{name}]
tool = {tool}
pin = "{pin}"
"""
_SECONDS = 20.0
STDIO = "--stdio"


def head(url: str, *, stdio: bool) -> str:
    """The file as far as it says where the server is: over HTTP, or over the pipes of a program that relays to it."""
    if not stdio:
        return _HEAD.format(private="private_network = true", server=f'url = "{read_base_url(url).url}"')
    argv = json.dumps([sys.executable, relay.__file__, url])
    server = f'command = {argv}\ndirectory = "{Path.cwd().resolve()}"\nsandbox = "none"'
    return _HEAD.format(private="", server=server)


async def send(connector: IConnector, operation: str, arguments: Mapping[str, JSON]) -> Outcome:
    """Send one request, as the runner does."""
    request = connector.prepare(operation, arguments, connector.describe().base_url or "", "effect-1")
    return await connector.invoke(request, None, _SECONDS)


def calls(tools: list[Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Which tool is called with which arguments."""
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    for tool in tools:
        if given is None:
            properties = tool.get("inputSchema", {}).get("properties", {})
            yield tool, {name: _example(name, about, tools) for name, about in properties.items()}
        for call in given or ():
            if call["name"] == tool["name"]:
                yield tool, call["arguments"]


def _example(name: str, about: Mapping[str, Any], tools: list[Any]) -> JSON:
    """An argument; a tool that asks for a schema wants that of the first tool, as it came."""
    schema: JSON = tools[0].get("inputSchema", {}) if name == "schema" else {}
    examples: dict[str, JSON] = {"number": 5, "integer": 5, "boolean": True, "object": schema, "array": []}
    return examples.get(str(about.get("type")), "text")


async def converse(reactor: Any, url: str, *, stdio: bool) -> None:
    """Do all of it, and say what came of it."""
    maker = ConnectorMaker(reactor, system_transport(reactor, lambda: ()), str(Path.cwd() / "state"))
    try:
        text = head(url, stdio=stdio)
        listed = await send(_connector(maker, text), "list_tools", {})
        print("listed:", listed.fault and listed.fault.message, file=sys.stderr)
        output: Any = listed.output
        tools = [] if output is None else output["tools"]
        for number, tool in enumerate(tools):
            text += _OPERATION.format(name=f"tool_{number}", tool=json.dumps(tool["name"]), pin=tool["pin"])
        connector = _connector(maker, text)
        for tool, arguments in calls(tools):
            outcome = await send(connector, f"tool_{tools.index(tool)}", arguments)
            print(tool["name"], outcome.output, outcome.fault and outcome.fault.message, file=sys.stderr)
    finally:
        await maker.servers.stop()
        await maybeDeferred(maker.loop.stop)


def _connector(maker: ConnectorMaker, text: str) -> IConnector:
    reading = read_file(text.encode(), "conformance.toml")
    assert reading.spec is not None, reading.problems
    return maker(reading.spec)


if __name__ == "__main__":
    own = STDIO in sys.argv
    react(lambda reactor: Deferred.fromCoroutine(converse(reactor, sys.argv[-1], stdio=own)))
