"""A client on standard input and output that does as little as the protocol allows, so that the server is measured."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field

PROTOCOL = "2025-06-18"
_LIMIT = 1 << 20


class Unexpected(RuntimeError):
    """The server did not answer as asked."""


@define
class Client:
    """One server's client.

    :ivar started: seconds from the server's process to its answer to C{initialize}.
    """

    process: asyncio.subprocess.Process
    started: float = 0.0
    _waiting: dict[int, asyncio.Future[Any]] = field(factory=dict)
    _last: int = 0

    async def call(self, tool: str = "noop") -> float:
        """The seconds of one call of a tool, with words of its own."""
        began = time.perf_counter()
        result = await self.ask("tools/call", {"name": tool, "arguments": {"text": secrets.token_hex(8)}})
        took = time.perf_counter() - began
        if result.get("isError"):
            raise Unexpected(str(result))
        return took

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request.

        :raises Unexpected: it is an error.
        """
        self._last += 1
        answer = self._waiting[self._last] = asyncio.get_running_loop().create_future()
        self.tell(method, params, id=self._last)
        return await asyncio.wait_for(answer, 60)

    def tell(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        """Send a notification, or with C{id} a request."""
        assert self.process.stdin
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def listen(self) -> None:
        """Take answers until there are none."""
        assert self.process.stdout
        async for line in self.process.stdout:
            message = json.loads(line)
            waiting = self._waiting.pop(message.get("id"), None) if "method" not in message else None
            if waiting is None:
                continue
            if "result" in message:
                waiting.set_result(message["result"])
            else:
                waiting.set_exception(Unexpected(str(message)))


@asynccontextmanager
async def client_of(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Client]:
    """A client whose server has been started and has offered its tool; the server ends with it."""
    pipe = asyncio.subprocess.PIPE
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=dict(environment), limit=_LIMIT
    )
    client = Client(process)
    listening = asyncio.create_task(client.listen())
    try:
        about = {"name": "bench", "version": "1"}
        await client.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        client.started = time.perf_counter() - began
        client.tell("notifications/initialized", {})
        await _offered(client)
        yield client
    finally:
        listening.cancel()
        assert process.stdin
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _offered(client: Client) -> None:
    listed = await client.ask("tools/list", {})
    if "noop" not in {tool["name"] for tool in listed["tools"]}:
        raise Unexpected(f"no such tool: {listed}")
