"""What the tests of waiting share: tools whose one action waits for a person, and clients of both eras."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

import mcp.types as t
from mcp import Client
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import SessionEnvironment
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._server import ToolServer
from aileron.mcp._texts import Pending, ToolResult
from aileron.mcp._tools import CallOptions, ITools
from aileron.mcp.waiting.calling import ClientPolicy
from tests.mcp.case import PATIENCE_SECONDS, Era, action
from tests.mcp.test_server import ScriptedTools, done

URL = "http://127.0.0.1:9/approvals/R"
FACTS = {"id": "R", "received_at": "1", "changed_at": "2"}
PENDING = ToolResult("It waits.", pending=Pending("R", "Ship update", URL))
ATTENDED = SessionEnvironment("", "", 45, "claude", attended=True)
Answer = Literal["accept", "decline", "cancel"]
CLAUDE = t.Implementation(name="claude-code", version="2")


class WaitingTools(ScriptedTools):
    """One action that waits for a person until L{decide}.

    :ivar manners: how each call was made.
    :ivar withdrawn: the keys, and the runs, that were to be taken back.
    :ivar run: how the run stands, for those who ask; or why nobody tells.
    :ivar refusal: why it is not taken back.
    """

    def __init__(self) -> None:
        super().__init__(done)
        self.manners: list[CallOptions] = []
        self.withdrawn: list[str] = []
        self.refusal: Exception | None = None
        self.run: Mapping[str, Any] | Exception = {**FACTS, "status": "pending_approval"}
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
        if isinstance(self.run, Exception):
            raise self.run
        return self.run

    async def withdraw_run(self, run_id: str) -> None:
        """Note it, or refuse."""
        if self.refusal is not None:
            raise self.refusal
        self.withdrawn.append(run_id)


class Person:
    """Answers what a client asks of the person before it.

    :param contents: of one form after the other; a word: what is pressed instead.
    :param page: what is answered to a page that is to be opened.
    :param first: awaited before each answer.
    :param then: called once a page was opened.
    :ivar asked: the forms, and the addresses.
    :ivar left_alone: whether the last question was answered, or taken back.
    """

    def __init__(
        self,
        *contents: Mapping[str, Any] | str,
        page: Answer = "accept",
        first: Callable[[], Awaitable[object]] = partial(asyncio.sleep, 0),  # noqa: B008 - it has no state
        then: Callable[[], object] = lambda: None,
    ) -> None:
        self.asked: list[Any] = []
        self.was_asked, self.left_alone = asyncio.Event(), asyncio.Event()
        self._contents, self._page, self._first, self._then = list(contents), page, first, then

    async def elicited(self, _context: object, params: object) -> t.ElicitResult:
        """The SDK's callback."""
        self.asked.append(params)
        self.was_asked.set()
        try:
            await self._first()
        finally:
            self.left_alone.set()
        if isinstance(params, t.ElicitRequestURLParams):
            self._then()
            return t.ElicitResult(action=self._page)
        result: Any = self._contents.pop(0)
        return t.ElicitResult(action=result) if result in ("decline", "cancel") else accepted(result)


def accepted(content: Any) -> t.ElicitResult:
    """The answer to a form that was filled in so."""
    return t.ElicitResult(action="accept", content=content)


async def never() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


@asynccontextmanager
async def connected(
    tools: ITools, era: Era, session: SessionEnvironment = ATTENDED, **options: Any
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
