"""The SDK's client, run in the loop.  Importing this module loads the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
from mcp import Client, types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata, SessionMessage

from aileron import __version__
from aileron.base.bridge import ThreadBridge
from aileron.base.json import JSON, plain
from aileron.connectors._conversation import Rejected

from ._wire import Delivery, Message, Refused

T = TypeVar("T")

_delivery: ContextVar[Delivery | None] = ContextVar("delivery", default=None)
"""Of the request that the running task makes."""


class _Outlet:
    """Takes what the SDK writes: each message is sent by the session, in the reactor, before writing returns."""

    def __init__(self, bridge: ThreadBridge, send: Callable[..., Any]) -> None:
        self._bridge, self._send = bridge, send

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message.

        :raises MCPError: the server refused it, from which the SDK tells an older server.
        """
        raw: dict[str, JSON] = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        said = item.metadata.headers if isinstance(item.metadata, ClientMessageMetadata) else None
        asks = isinstance(item.message, types.JSONRPCRequest)
        delivery = _delivery.get() if asks else None
        try:
            await self._bridge.call(lambda: self._send(raw, said or {}, delivery))
        except Refused as error:
            if asks:
                raise MCPError(types.INVALID_REQUEST, f"status {error.status}") from None
        except Exception:
            if asks:  # whether a notification or a refusal arrives changes nothing
                raise

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def __aenter__(self) -> _Outlet:
        return self

    async def __aexit__(self, *_why: object) -> None:
        """There is nothing to close."""


def _find_cause(error: Exception) -> Exception:
    """Find the one failure inside of groups: the SDK wraps what a server says once for each of its task groups."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


class SdkClient:
    """The client of one session, made in the loop.  The SDK answers each request of the server with a refusal."""

    def __init__(self, bridge: ThreadBridge, send: Callable[..., Any], mode: str) -> None:
        self._outlet, self._mode = _Outlet(bridge, send), mode
        self._leave = asyncio.Event()
        self._opened: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._inlet, self._received = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    async def run(self) -> None:
        """Begin the session, and keep it until L{leave}."""
        about = types.Implementation(name="aileron", version=__version__)
        try:
            async with Client(self._streams(), mode=self._mode, cache=None, client_info=about) as client:
                self._opened.set_result(client.session)
                await self._leave.wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(_find_cause(error))
            self._opened.exception()  # read here, since nobody may be waiting any more

    async def opened(self) -> str:
        """Wait until it has begun, and return the version of the protocol.

        :raises Rejected: the server refused.
        """
        try:
            session = await asyncio.shield(self._opened)
        except MCPError as error:
            raise Rejected("a session", str(error.error.message), error.error.code) from None
        return str(session.protocol_version)

    async def list_tools(self, cursor: str | None, delivery: Delivery) -> None:
        """Ask for a page of tools; the SDK keeps which arguments go into headers as well, and leaves out bad ones."""
        params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
        kept = await self._ask(delivery, lambda session: session.list_tools(params=params))
        answer: Any = delivery.answer  # in which every tool has a name, or the SDK would have raised
        delivery.left_out = frozenset(each["name"] for each in answer["result"]["tools"]) - {
            *(t.name for t in kept.tools)
        }

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], meta: Mapping[str, JSON], delivery: Delivery
    ) -> None:
        """Call a tool.

        The SDK's own C{call_tool} would check the result by the schema that the server made, however long that takes.
        """
        about: Any = plain(meta)
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=about)
        request = types.CallToolRequest(params=params)
        await self._ask(delivery, lambda session: session.send_request(request, types.Result))

    def deliver(self, message: Message) -> None:
        """Hand it a message of the server; one that is malformed becomes an error, so that nobody waits for it."""
        try:
            parsed = types.jsonrpc_message_adapter.validate_python(dict(message), by_name=False)
        except ValueError:
            malformed = types.ErrorData(code=types.INTERNAL_ERROR, message="malformed")
            number: Any = message.get("id")
            parsed = types.JSONRPCError(jsonrpc="2.0", id=number, error=malformed)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._inlet.send_nowait(SessionMessage(parsed))

    def leave(self) -> None:
        """End it, and fail whatever is waited for."""
        self._inlet.close()
        self._leave.set()

    async def _ask(self, delivery: Delivery, make: Callable[[ClientSession], Awaitable[T]]) -> T:
        _delivery.set(delivery)
        return await make(await asyncio.shield(self._opened))

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        yield self._received, self._outlet
