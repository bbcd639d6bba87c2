"""What the tests of waiting share: tools whose one action waits for a person, and clients of both eras."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp.types as t
from mcp import Client
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import SessionEnvironment
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._server import ToolServer
from aileron.mcp._texts import Pending, ToolResult
from aileron.mcp._tools import CallOptions
from aileron.mcp.waiting.calling import ClientPolicy
from tests.mcp.case import PATIENCE_SECONDS, Era, action
from tests.mcp.test_server import ScriptedTools, done

URL = "http://127.0.0.1:9/approvals/R"
PENDING = ToolResult("It waits.", pending=Pending("R", "Ship update", URL))
ATTENDED = SessionEnvironment("", "", 45, "claude", attended=True)
CLAUDE = t.Implementation(name="claude-code", version="2")


class WaitingTools(ScriptedTools):
    """One action that waits for a person until L{decide}.

    :ivar manners: how each call was made.
    :ivar withdrawn: the keys, and the runs, that were to be taken back.
    :ivar run: how the run stands, for those who ask.
    """

    def __init__(self) -> None:
        super().__init__(done)
        self.manners: list[CallOptions] = []
        self.withdrawn: list[str] = []
        self.run: Mapping[str, Any] = {"id": "R", "status": "pending_approval", "received_at": "1", "changed_at": "2"}
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self._decided: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()

    def decide(self, result: ToolResult = ToolResult("ok")) -> None:  # noqa: B008 - frozen
        """Whoever waits gets this."""
        self._decided.set_result(result)

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """That action."""
        return read_definitions([action(gated=True)])

    async def actions(self) -> tuple[ToolDefinition, ...]:
        """The same, and one that declares its output."""
        declared = action("declared", output_schema={"type": "object"})
        return read_definitions([action(gated=True), declared])

    async def call(self, tool: str, arguments: Mapping[str, Any], options: CallOptions) -> ToolResult:
        """Wait, or say so early."""
        self.manners.append(options)
        if options.early:
            return PENDING
        self.began.set()
        try:
            return await asyncio.shield(self._decided)
        finally:
            self.ended.set()

    async def withdraw(self, key: str) -> None:
        """Note it."""
        self.withdrawn.append(key)

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """The run."""
        return self.run

    async def withdraw_run(self, run_id: str) -> None:
        """Note it."""
        self.withdrawn.append(run_id)


class Person:
    """Answers what a client asks of the person before it.

    :param answer: to a page that is to be opened; L{None}: none, ever.
    :ivar asked: what it was asked.
    """

    def __init__(self, answer: str | None = "accept", then: Callable[[], object] = lambda: None) -> None:
        self.asked: list[Any] = []
        self.was_asked = asyncio.Event()
        self.left_alone = asyncio.Event()
        self._answer: Any = answer
        self._then = then

    async def elicited(self, _context: object, params: object) -> t.ElicitResult:
        """The SDK's callback."""
        self.asked.append(params)
        self.was_asked.set()
        if self._answer is None:
            try:
                await asyncio.Event().wait()
            finally:
                self.left_alone.set()
        self._then()
        return t.ElicitResult(action=self._answer)


@asynccontextmanager
async def connected(
    tools: WaitingTools, era: Era, session: SessionEnvironment = ATTENDED, **options: Any
) -> AsyncIterator[Client]:
    """A client of that era, for a few seconds at most."""
    server = ToolServer(tools, ClientPolicy(session, beats=lambda: itertools.repeat(0.02)))
    options.setdefault("client_info", CLAUDE)
    async with asyncio.timeout(PATIENCE_SECONDS), Client(server.server, mode=era, **options) as client:
        yield client


class WaitingCase(SynchronousTestCase):
    """Has conversations, each in a loop of its own."""

    async def soon(self, happened: Callable[[], object]) -> None:
        """Go on when it has happened."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():
                await asyncio.sleep(0.005)
