"""The endpoint of all agents: each has a server of its own, and the log says nothing of what they say."""

from __future__ import annotations

import logging
from typing import Any, cast

from attrs import evolve
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.bridge import LogFilter
from aileron.base.json import utc
from aileron.features.mcp_http import _http_endpoint
from aileron.features.mcp_http._http_endpoint import MOST_AGENTS, HttpEndpoint, sealing_for
from aileron.features.mcp_http.values import McpReply, McpRequest, McpSettings
from aileron.mcp.agent import AgentServer
from aileron.model.errors import InternalError, LimitExceeded
from aileron.model.sessions import Session
from tests.client.test_against_api import SilentRoutes
from tests.features.mcp_http.test_session_server import HELLO, written
from tests.mcp.stepped import Stepped, SteppedCase

NOW = utc(1_760_000_000.0)
KEY = b"k" * 32


class Beside:
    """A loop that is stepped by hand."""

    def __init__(self, sides: Stepped) -> None:
        self.bridge = sides.bridge

    def start(self) -> Deferred[None]:
        """It runs."""
        return succeed(None)

    def stop(self) -> Deferred[None]:
        """It has ended."""
        return succeed(None)


class EndpointTests(SteppedCase):
    """Several agents, a daemon that never answers."""

    def setUp(self) -> None:
        super().setUp()
        self.made: list[object] = []
        self.endpoint = HttpEndpoint(Clock(), McpSettings(http=True), Beside(self.sides))
        self.patch(_http_endpoint, "AgentServer", self.serving)

    def serving(self, *given: Any) -> AgentServer:
        """Make it, and note that."""
        self.made.append(made := AgentServer(*given))
        return made

    def open(self) -> None:
        """Begin."""
        self.successResultOf(self.endpoint.open(SilentRoutes()))
        self.addCleanup(self.settle)
        self.addCleanup(self.endpoint.close)

    def ask(self, agent: str, method: str = "initialize", **headers: str) -> Deferred[McpReply]:
        """A message of an agent's."""
        session = Session(agent, "agent", "/src", NOW, NOW)
        request: McpRequest = evolve(written(method, HELLO, **headers), session=session)
        answer = Deferred.fromCoroutine(self.endpoint.serve(request))
        self.settle()
        return answer

    def test_closed(self) -> None:
        """Before it is open, and after, nobody is served."""
        self.failureResultOf(self.ask("a"), InternalError)
        self.open()
        self.successResultOf(self.ask("a"))
        self.successResultOf(self.endpoint.close())
        self.failureResultOf(self.ask("a"), InternalError)

    def test_made(self) -> None:
        """What an agent is served is made when it first asks, and anew after its end."""
        self.open()
        for agent in ("a", "a", "b"):
            self.successResultOf(self.ask(agent))
        self.assertEqual(len(self.made), 2)
        self.endpoint.ended("a")
        self.settle()
        self.successResultOf(self.ask("a"))
        self.assertEqual(len(self.made), 3)

    def test_apart(self) -> None:
        """A session id is found by its own agent, and until that agent's session is over."""
        self.open()
        session_id = self.successResultOf(self.ask("a")).headers["mcp-session-id"]
        self.assertEqual(self.status("a", session_id), 200)
        self.assertEqual(self.status("b", session_id), 404)
        self.endpoint.ended("b")
        self.assertEqual(self.status("a", session_id), 200)
        self.endpoint.ended("a")
        self.endpoint.ended("a")
        self.settle()
        self.assertEqual(self.status("a", session_id), 404)

    def status(self, agent: str, session_id: str) -> int:
        """How a message in a session is answered."""
        return self.successResultOf(self.ask(agent, "ping", mcp_session_id=session_id)).status

    def test_most(self) -> None:
        """So many agents are served at once; one that is gone makes room."""
        self.open()
        for number in range(MOST_AGENTS):
            self.successResultOf(self.ask(str(number))).close()
        self.failureResultOf(self.ask("one more"), LimitExceeded)
        self.successResultOf(self.ask("0")).close()
        self.endpoint.ended("0")
        self.successResultOf(self.ask("one more"))


class SealingTests(SynchronousTestCase):
    """What a stateless client is given to bring back."""

    def hand_back(self, giver: RequestStateBoundary, taker: RequestStateBoundary) -> object:
        """Have one agent's boundary seal a state, and another's take it."""
        taken: list[object] = []

        async def give(_ctx: object) -> dict[str, Any]:
            return {"resultType": "input_required", "inputRequests": {}, "requestState": "inside"}

        async def take(ctx: Any) -> dict[str, Any]:
            taken.append(ctx.params["requestState"])
            return {}

        async def both() -> None:
            params = {"name": "ship_update", "arguments": {}}
            given = cast("dict[str, Any]", await giver(_context(params), give))
            self.assertNotIn("inside", given["requestState"])
            await taker(_context({**params, "requestState": given["requestState"]}), take)

        self.successResultOf(Deferred.fromCoroutine(both()))
        return taken[0]

    def test_bound(self) -> None:
        """It opens for the agent that it was given to, by the key of this life of the daemon, and in no other case."""
        mine = RequestStateBoundary(sealing_for("a", KEY), default_audience="aileron")
        self.assertEqual(self.hand_back(mine, mine), "inside")
        for session_id, key in (("b", KEY), ("a", b"l" * 32)):
            other = RequestStateBoundary(sealing_for(session_id, key), default_audience="aileron")
            with self.assertLogs("mcp", "WARNING"):
                error = self.assertRaises(self.failureException, self.hand_back, mine, other)
            self.assertIn(MCPError.__name__, str(error))


def _context(params: dict[str, Any]) -> ServerRequestContext[Any, Any]:
    nobody: Any = None
    return ServerRequestContext(
        session=nobody, lifespan_context={}, protocol_version="2026-07-28", method="tools/call", params=params
    )


class LogFilterTests(SynchronousTestCase):
    """One logger."""

    def setUp(self) -> None:
        self.logger = logging.getLogger("aileron-tests-of-filter")
        self.logger.propagate = False
        handler = LogFilter(logging.ERROR)
        self.logger.addHandler(handler)
        self.addCleanup(self.logger.removeHandler, handler)
        self.told: list[str] = []
        observe = cast(ILogObserver, lambda event: self.told.append(formatEvent(event)))
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def test_failure(self) -> None:
        """Of a failure its kind and place are told, and nothing of what it says."""
        value: Any = "hunter2"
        try:
            raise ValueError(value)
        except ValueError:
            self.logger.exception("could not read %s", value)
        [line] = self.told
        self.assertIn("ValueError", line)
        self.assertIn("test_endpoint.py", line)
        self.assertNotIn("hunter2", line)

    def test_lesser(self) -> None:
        """What is no failure is not told."""
        self.logger.warning("client said %s", "hunter2")
        self.assertEqual(self.told, [])
