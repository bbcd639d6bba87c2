"""C{/mcp}: the guard of every route before a room that knows none."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from zope.interface import implementer

from aileron.api import agent_routes
from aileron.features.feature import RunningFeature
from aileron.features.mcp_http._routes import mcp_handler
from aileron.features.mcp_http.values import PATH, IMcp, McpReply, McpRequest
from aileron.model.errors import LimitExceeded
from tests.api.case import LAUNCH_KEY, ApiCase, running

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@implementer(IMcp)
@define
class ScriptedMcp:
    """Answers what a test wants, and notes what came.

    :ivar fails: raised instead of an answer.
    :ivar gate: waited for before an answer.
    :ivar closed: how many answers were closed.
    """

    asked: list[McpRequest] = field(factory=list)
    over: list[str] = field(factory=list)
    fails: Exception | None = None
    gate: Deferred[None] | None = None
    cancelled: bool = False
    closed: int = 0

    async def serve(self, request: McpRequest) -> McpReply:
        """Note it, and answer."""
        self.asked.append(request)
        if self.fails is not None:
            raise self.fails
        try:
            if self.gate is not None:
                await self.gate
        except CancelledError:
            self.cancelled = True
            raise
        headers = {"content-type": "text/event-stream", "mcp-session-id": "s1"}
        return McpReply(200, headers, _pieces(), self._close)

    def ended(self, session_id: str) -> None:
        self.over.append(session_id)

    def _close(self) -> None:
        self.closed += 1


async def _pieces() -> AsyncIterator[bytes]:
    for piece in (b"", b"one ", b"two"):
        yield piece


class ServedMcp(RunningFeature):
    """The feature as the daemon starts it, with C{mcp} in the place of the endpoint."""

    def __init__(self, mcp: ScriptedMcp) -> None:
        self.resources = {PATH: mcp_handler(mcp)}
        self.session_ended = mcp.ended  # type: ignore[method-assign]


class McpTests(ApiCase):
    """With a room that answers as it is told."""

    def setUp(self) -> None:
        super().setUp()
        self.mcp = ScriptedMcp()
        self.build(features=running(ServedMcp(self.mcp)))

    def test_served(self) -> None:
        """An agent's request reaches the room with its session and shows no secret; the answer reaches the agent."""
        opened = self.open_session()
        heard = self.agents.ask("POST", "/mcp", opened["token"], HELLO, headers={"Mcp-Session-Id": "s1"})
        self.assertEqual((heard.status, heard.text), (200, "one two"))
        self.assertEqual(heard.headers["content-type"], "text/event-stream")
        self.assertEqual(heard.headers["mcp-session-id"], "s1")
        [request] = self.mcp.asked
        self.assertEqual((request.session.id, request.token), (opened["id"], opened["token"]))
        self.assertEqual((request.method, request.path), ("POST", "/mcp"))
        self.assertIn((b"mcp-session-id", b"s1"), [(name.lower(), value) for name, value in request.fields])
        self.assertEqual((request.body, self.mcp.closed), (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', 1))
        token = self.agent_token()
        self.agents.ask("POST", "/mcp", token, HELLO)
        shown = repr(self.mcp.asked[0])
        self.assertNotIn(token, shown)
        self.assertNotIn("ping", shown)

    def test_strangers(self) -> None:
        """Nobody else reaches it: no credential, a made-up one, the operator's, the launch key."""
        for token, status in ((None, 401), ("ail_a_no", 401), (self.operator_token(), 401), (LAUNCH_KEY, 403)):
            for method in ("POST", "GET", "DELETE"):
                heard = self.agents.ask(method, "/mcp", token)
                self.assertEqual(heard.status, status, (method, token))
        self.assertEqual(self.mcp.asked, [])
        self.assertEqual(self.agents.ask("POST", "/mcp").headers["www-authenticate"], "Bearer")

    def test_paths(self) -> None:
        """There is one path, where somebody serves it; on the operator's site there is none."""
        token = self.agent_token()
        for path in ("/mcp/", "/mcp/x", "/mcp%2f"):
            self.assertEqual(self.agents.ask("POST", path, token, HELLO).status, 404, path)
        self.assertEqual(self.operator.ask("POST", "/mcp", token, HELLO).status, 404)
        self.assertEqual(self.mcp.asked, [])
        token = self.agent_token()
        self.build(features=running())
        self.assertEqual(self.agents.ask("POST", "/mcp", token, HELLO).status, 404)

    def test_refused(self) -> None:
        """What the room refuses comes in the envelope; what breaks in it says nothing of the inside."""
        token = self.agent_token()
        self.mcp.fails = LimitExceeded("Too many.", {"retry_after": 7})
        heard = self.agents.ask("POST", "/mcp", token, HELLO)
        self.assertEqual((heard.status, heard.kind, heard.headers["retry-after"]), (429, "limit_exceeded", "7"))
        logged = self.logged()
        self.mcp.fails = RuntimeError("hunter2")
        heard = self.agents.ask("POST", "/mcp", token, HELLO)
        self.assertEqual((heard.status, heard.kind, len(logged)), (500, "internal_error", 1))
        self.assertNotIn("hunter2", heard.text + str(logged))

    def test_many_values(self) -> None:
        """A body of too many values is refused before anybody makes anything of it, as on every route."""
        token = self.agent_token()
        for many, status in ((19_000, 200), (20_000, 400)):
            heard = self.agents.ask("POST", "/mcp", token, {**HELLO, "params": {"_meta": {"x": [{}] * many}}})
            self.assertEqual(heard.status, status, heard.text)
        self.assertIn("more than 20000 values", heard.text)
        self.assertEqual(len(self.mcp.asked), 1)

    def test_held(self) -> None:
        """Bodies are held within bounds: who holds more than a share is refused beyond them, and others go on."""
        self.patch(agent_routes, "MOST_BODIES_BYTES", 2000)
        mine, other = self.agent_token(), self.agent_token()
        gate: Deferred[None] = Deferred()
        self.mcp.gate = gate
        large = {**HELLO, "params": {"_meta": {"x": "a" * 800}}}
        waiting = [self.agents.start("POST", "/mcp", token, large) for token in (mine, mine, other)]
        heard = self.agents.ask("POST", "/mcp", mine, large)
        self.assertEqual((heard.status, heard.kind), (429, "limit_exceeded"))
        self.assertEqual(len(self.mcp.asked), 3)
        self.mcp.gate = None
        gate.callback(None)
        self.agents.treq.flush()
        for each in waiting:
            self.successResultOf(each)
        self.assertEqual(self.agents.ask("POST", "/mcp", mine, large).status, 200)

    def test_client_gone(self) -> None:
        """A client that leaves before there is an answer cancels it."""
        self.mcp.gate = Deferred()
        waiting = self.agents.start("POST", "/mcp", self.agent_token(), HELLO)
        self.assertNoResult(waiting)
        waiting.addErrback(lambda _: None)
        waiting.cancel()
        self.agents.treq.flush()
        self.assertTrue(self.mcp.cancelled)

    def test_session_over(self) -> None:
        """Whoever ends an agent's session, the room hears of it, and the token opens nothing more."""
        mine, other = self.open_session(), self.open_session()
        self.agents.ask("POST", f"/v1/sessions/{mine['id']}/end", mine["token"])
        self.operator.ask("POST", f"/v1/sessions/{other['id']}/deny", self.operator_token())
        self.assertEqual(self.mcp.over, [mine["id"], other["id"]])
        self.assertEqual(self.agents.ask("POST", "/mcp", mine["token"], HELLO).status, 401)
