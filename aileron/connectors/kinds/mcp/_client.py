"""The MCP SDK's client, run in the asyncio loop. Importing this module loads the SDK."""

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
"""The delivery of the request that the running task makes."""


class _Outlet:
    """The stream that the SDK writes to. The session sends each message, in the reactor, before the write returns."""

    def __init__(self, bridge: ThreadBridge, send: Callable[..., Any]) -> None:
        self._bridge, self._send = bridge, send

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message.

        :raises MCPError: if the server refused the request; the SDK then tries an older protocol.
        :raises Exception: any other error of the session, if the message is a request.
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
            if asks:  # a notification or a refusal that does not arrive changes nothing
                raise

    async def aclose(self) -> None:
        """Do nothing: the session has no stream to close."""

    async def __aenter__(self) -> _Outlet:
        return self

    async def __aexit__(self, *_why: object) -> None:
        """Do nothing: the session has no stream to close."""


def _find_cause(error: Exception) -> Exception:
    """Return the error inside of exception groups with one error: the SDK adds a group for each of its task groups."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


class SdkClient:
    """The client of one session, created in the loop. The SDK refuses each request of the server."""

    def __init__(self, bridge: ThreadBridge, send: Callable[..., Any], mode: str) -> None:
        self._outlet, self._mode = _Outlet(bridge, send), mode
        self._leave = asyncio.Event()
        self._opened: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._inlet, self._received = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    async def run(self) -> None:
        """Start the session and keep it open until L{leave} is called.

        If it cannot start, L{opened} raises the error.
        """
        about = types.Implementation(name="aileron", version=__version__)
        try:
            async with Client(self._streams(), mode=self._mode, cache=None, client_info=about) as client:
                self._opened.set_result(client.session)
                await self._leave.wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(_find_cause(error))
            self._opened.exception()  # marks the error as retrieved, since L{opened} may no longer be waiting

    async def opened(self) -> str:
        """Wait until the session has started, and return the version of the protocol.

        :raises Rejected: if the server refuses the session.
        :raises Exception: the error of the connection or the SDK, if the session cannot start.
        """
        try:
            session = await asyncio.shield(self._opened)
        except MCPError as error:
            raise Rejected("a session", str(error.error.message), error.error.code) from None
        return str(session.protocol_version)

    async def list_tools(self, cursor: str | None, delivery: Delivery) -> None:
        """Request a page of tools, and record in C{delivery} the tools that the SDK leaves out for invalid headers.

        The response is stored in C{delivery}, too.
        """
        params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
        kept = await self._ask(delivery, lambda session: session.list_tools(params=params))
        answer: Any = delivery.answer  # each tool has a name, or the SDK would have raised an error
        delivery.left_out = frozenset(each["name"] for each in answer["result"]["tools"]) - {
            *(t.name for t in kept.tools)
        }

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], meta: Mapping[str, JSON], delivery: Delivery
    ) -> None:
        """Call a tool. The response is stored in C{delivery}.

        The SDK's own C{call_tool} is not used: it validates the result by the server's schema without a time limit.
        """
        about: Any = plain(meta)
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=about)
        request = types.CallToolRequest(params=params)
        await self._ask(delivery, lambda session: session.send_request(request, types.Result))

    def deliver(self, message: Message) -> None:
        """Pass a message of the server to the SDK. In place of a malformed response, pass an error to its request.

        If the session has ended, do nothing.
        """
        try:
            parsed = types.jsonrpc_message_adapter.validate_python(dict(message), by_name=False)
        except ValueError:
            malformed = types.ErrorData(code=types.INTERNAL_ERROR, message="malformed")
            number: Any = message.get("id")
            parsed = types.JSONRPCError(jsonrpc="2.0", id=number, error=malformed)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._inlet.send_nowait(SessionMessage(parsed))

    def leave(self) -> None:
        """End the session, and fail all pending requests."""
        self._inlet.close()
        self._leave.set()

    async def _ask(self, delivery: Delivery, make: Callable[[ClientSession], Awaitable[T]]) -> T:
        _delivery.set(delivery)
        return await make(await asyncio.shield(self._opened))

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        yield self._received, self._outlet
