"""An MCP client over a child's standard streams that sends what it is told and keeps what comes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from tests.functional.reactor import IKitReactor, until

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Server(ProcessProtocol):
    """A started ``aileron-mcp`` and what it said.

    :ivar messages: every message so far.
    :ivar status: how it ended; None while it runs.
    """

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.errors = b""
        self.status: tuple[int | None, int | None] | None = None
        self._rest = b""

    @property
    def process(self) -> IProcessTransport:
        """The process."""
        return cast(IProcessTransport, self.transport)

    def send(self, method: str, params: Mapping[str, Any] | None = None, number: int | None = None) -> None:
        """Send a request, or without a number a notification."""
        given = {"id": number, "params": params, "method": method, "jsonrpc": "2.0"}
        message = {key: value for key, value in given.items() if value is not None}
        self.process.writeToChild(0, json.dumps(message).encode() + b"\n")

    def reply(self, number: object, result: Mapping[str, Any]) -> None:
        """Answer a request of the server's."""
        message = {"id": number, "result": result, "jsonrpc": "2.0"}
        self.process.writeToChild(0, json.dumps(message).encode() + b"\n")

    def heard(self, method: str) -> list[Mapping[str, Any]]:
        """What the server asked or told by this name."""
        return [message for message in self.messages if message.get("method") == method]

    def answer(self, number: int) -> Mapping[str, Any] | None:
        """The answer to a request, if it is there."""
        return next((message for message in self.messages if message.get("id") == number), None)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Read messages, keep errors."""
        if childFD == 2:
            self.errors += data
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.messages += [json.loads(line) for line in lines]

    def processExited(self, reason: Failure) -> None:
        """Note how it ended."""
        self.status = (getattr(reason.value, "exitCode", None), getattr(reason.value, "signal", None))


@attrs.frozen
class ToolResult:
    """What a tool call gave a model.

    :ivar blocks: what stands behind the text.
    """

    text: str
    is_error: bool
    blocks: Sequence[Mapping[str, Any]] = ()


@attrs.define
class McpClient:
    """Asks one server, a request at a time or several, each with a deadline.

    :ivar asked: the number of the newest request.
    """

    _reactor: IKitReactor
    server: Server
    asked: int = 0

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, seconds: float = 30) -> Mapping[str, Any]:
        """Send a request and wait for its result.

        :raises AssertionError: the server answers with an error.
        """
        self.asked += 1
        number = self.asked
        self.server.send(method, params, number)
        await until(self._reactor, lambda: self.server.answer(number) is not None, seconds, f"an answer to {method}")
        answer = self.server.answer(number)
        assert answer is not None and "result" in answer, answer
        result: Mapping[str, Any] = answer["result"]
        return result

    async def shake_hands(self, client: Mapping[str, Any] = CLIENT) -> None:
        """Open the conversation."""
        await self.ask("initialize", client)
        self.server.send("notifications/initialized")

    async def tools(self) -> list[str]:
        """The names of what is offered."""
        return [tool["name"] for tool in (await self.ask("tools/list"))["tools"]]

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float = 60) -> ToolResult:
        """Call a tool."""
        result = await self.ask("tools/call", {"name": tool, "arguments": dict(arguments)}, seconds)
        first, *others = result["content"]
        return ToolResult(first["text"], bool(result.get("isError")), others)
