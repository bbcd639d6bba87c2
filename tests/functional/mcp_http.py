"""A daemon that serves MCP over HTTP; the SDK's own client, in a loop beside the reactor; and requests by hand."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import attrs
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from twisted.internet.defer import Deferred

from aileron.base.bridge import LoopThread
from tests.functional.mcp_client import CLIENT
from tests.functional.operated import AgentSession, OperatedTestCase
from tests.functional.reactor import IKitReactor
from tests.functional.web import Reply, Web

Era = Literal["legacy", "auto"]
ERAS: tuple[Era, ...] = ("legacy", "auto")
T = TypeVar("T")

_ON = "mcp:\n  http: true\n"
_ACCEPT = "application/json, text/event-stream"
_TALK_SECONDS = 150.0


@asynccontextmanager
async def connected(url: str, token: str, era: Era, **options: Any) -> AsyncIterator[Client]:
    """The SDK's client with an agent's token, its hands shaken as its era does."""
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, **options) as client,
    ):
        yield client


async def talk(reactor: IKitReactor, conversation: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Have a conversation in a loop of its own."""
    thread = LoopThread(reactor, "client")
    await thread.start()
    try:
        talking: Deferred[T] = thread.bridge.ask(conversation)
        return await talking.addTimeout(_TALK_SECONDS, reactor)
    finally:
        await thread.stop()


@attrs.frozen
class McpByHand:
    """Requests to ``/mcp``, one at a time, each wholly the test's."""

    web: Web
    url: str
    token: str | None = attrs.field(repr=False)

    async def post(
        self, method: str, params: Mapping[str, Any] | None = None, session_id: str | None = None, **headers: str
    ) -> Reply:
        """One message of the protocol."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}
        return await self._ask("POST", session_id, body, **headers)

    async def listen(self, session_id: str) -> Reply:
        """What comes unasked in a session, once that is over."""
        return await self._ask("GET", session_id)

    async def delete(self, session_id: str) -> Reply:
        """Be done with a session."""
        return await self._ask("DELETE", session_id)

    async def _ask(
        self, method: str, session_id: str | None, body: Mapping[str, Any] | None = None, **headers: str
    ) -> Reply:
        session = {} if session_id is None else {"Mcp_Session_Id": session_id}
        given: dict[str, Any] = {"Accept": _ACCEPT, **session, **headers}
        return await self.web.ask(method, self.url, self.token, body, **given)

    async def shake_hands(self) -> Reply:
        """Open a session of the handshake's era."""
        return await self.post("initialize", CLIENT)

    async def opened(self) -> str:
        """The id of a session that was opened."""
        reply = await self.shake_hands()
        assert reply.status == 200, reply
        [session_id] = reply.headers.getRawHeaders("mcp-session-id") or ()
        return session_id


def message_of(reply: Reply) -> Mapping[str, Any]:
    """The one message of an answer, an event or plain."""
    text = reply.text
    if text.startswith("{"):
        return dict(json.loads(text))
    [data] = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return dict(json.loads(data))


class McpHttpTestCase(OperatedTestCase):
    """A user who wants it."""

    async def furnish_with_mcp(self, more: str = "") -> AgentSession:
        """A daemon that serves it, and an agent's session.

        :param more: of what is said of it.
        """
        await self.furnish(_ON + more)
        return await self.session()

    @property
    def mcp_url(self) -> str:
        """Where it is served."""
        return f"{self.home.discovery()['url']}/mcp"

    def by_hand(self, token: str | None) -> McpByHand:
        """Requests of the test's own."""
        return McpByHand(self.web, self.mcp_url, token)
