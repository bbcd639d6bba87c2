"""Our connector to MCP servers as the client that the suite judges: ``python -m tests.conformance.client URL``.

It lists the tools of the server, pins them, and calls each once, or as often as the suite's context says.  Where a
scenario is about OAuth, a person signs in first, and again where a credential needs them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import react

from aileron.base.addresses import read_base_url
from aileron.base.json import JSON
from aileron.connectors import system_transport
from aileron.connectors._schema import read_file
from aileron.daemon._connectors import ConnectorMaker
from aileron.model.connectors import Outcome
from aileron.model.interfaces.connectors import IConnector
from tests.conformance import relay
from tests.conformance.person import Kept, Person

_HEAD = """
[connector]
name = "local://conformance"
version = "1.0.0"
kind = "mcp"
{private}

[mcp]
{server}
"""
_CREDENTIAL = """
[credential]
kind = "oauth2"
discover = true
{client}
"""
_OPERATION = """
[operations.{name}]
tool = {tool}
pin = "{pin}"
"""
_SECONDS, _UNAUTHORIZED = 20.0, 401
STDIO, OAUTH = "--stdio", "auth/"


def head(url: str, *, stdio: bool) -> str:
    """The file as far as it says where the server is: over HTTP, or over the pipes of a program that relays to it."""
    if not stdio:
        return _HEAD.format(private="private_network = true", server=f'url = "{read_base_url(url).url}"')
    argv = json.dumps([sys.executable, relay.__file__, url])
    server = f'command = {argv}\ndirectory = "{Path.cwd().resolve()}"\nsandbox = "none"'
    return _HEAD.format(private="", server=server)


@define
class Caller:
    """Sends requests as the runner does, and has a person sign in where one is needed.

    :ivar person: L{None}: the server wants no credential.
    """

    maker: ConnectorMaker
    person: Person | None
    _kept: Kept | None = None

    async def send(self, text: str, operation: str, arguments: Mapping[str, JSON]) -> Outcome:
        """Send one request of the connector whose file says C{text}."""
        connector = self.connector(text)
        request = connector.prepare(operation, arguments, connector.describe().base_url or "", "effect-1")
        if self.person is not None and self._kept is None:
            self._kept = await self.person.sign_in(connector.describe())
        outcome = await connector.invoke(request, self._kept, _SECONDS)
        if self.person is None or self._kept is None or (self._kept.wanted is None and outcome.status != _UNAUTHORIZED):
            return outcome
        self._kept = await self.person.sign_in(connector.describe(), self._kept.wanted or ())
        return await connector.invoke(request, self._kept, _SECONDS)

    def connector(self, text: str) -> IConnector:
        """A connector by its file."""
        reading = read_file(text.encode(), "conformance.toml")
        assert reading.spec is not None, reading.problems
        assert reading.kind is not None
        return reading.kind.make(reading.spec, self.maker.workshop)


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
    person = Person(reactor, Path.cwd()) if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith(OAUTH) else None
    caller = Caller(maker, person)
    try:
        text = head(url, stdio=stdio) + ("" if person is None else _CREDENTIAL.format(client=person.settings()))
        listed = await caller.send(text, "list_tools", {})
        print("listed:", listed.fault and listed.fault.message, file=sys.stderr)
        output: Any = listed.output
        tools = [] if output is None else output["tools"]
        for number, tool in enumerate(tools):
            text += _OPERATION.format(name=f"tool_{number}", tool=json.dumps(tool["name"]), pin=tool["pin"])
        for tool, arguments in calls(tools):
            outcome = await caller.send(text, f"tool_{tools.index(tool)}", arguments)
            print(tool["name"], outcome.output, outcome.fault and outcome.fault.message, file=sys.stderr)
    finally:
        await maker.servers.stop()
        await maybeDeferred(maker.loop.stop)


if __name__ == "__main__":
    own = STDIO in sys.argv
    react(lambda reactor: Deferred.fromCoroutine(converse(reactor, sys.argv[-1], stdio=own)))
