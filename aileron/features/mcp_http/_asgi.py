"""Passes a request to an ASGI application in an asyncio loop, and its answer to the reactor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from aileron.base.bridge import SideGone, ThreadBridge
from aileron.model.errors import InternalError

from .values import McpReply, McpRequest

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)

_OF_THE_CONNECTION = frozenset((b"connection", b"keep-alive", b"transfer-encoding"))
_WITHHELD = frozenset(
    (b"authorization", b"cookie", b"last-event-id")
)  # last-event-id: no events are stored, so a stream cannot be resumed


async def exchange_request(bridge: ThreadBridge, app: App, request: McpRequest) -> McpReply:
    """Call the ASGI app, and return its reply when the response headers are available. The body streams on demand.

    :raises InternalError: if the app ended without an answer.
    """
    exchange = AsgiExchange(app, request)
    try:
        status, headers = await bridge.ask(exchange.begin)
    except BaseException:
        _leave(bridge, exchange)
        raise
    return McpReply(status, headers, _chunks(bridge, exchange), lambda: _leave(bridge, exchange))


async def _chunks(bridge: ThreadBridge, exchange: AsgiExchange) -> AsyncIterator[bytes]:
    yield b""  # makes the reader send the head at once: the first event of a stream may take long
    more = True
    while more:
        try:
            chunk, more = await bridge.ask(exchange.more)
        except SideGone:
            raise InternalError("The daemon is stopping.") from None
        yield chunk


def _leave(bridge: ThreadBridge, exchange: AsgiExchange) -> None:
    with contextlib.suppress(SideGone):
        bridge.post(exchange.leave)


class AsgiExchange:
    """A request and its answer, on the side of the application in the loop.

    At most one piece of the answer's body is buffered. The application continues when the reader has fetched the piece.
    """

    def __init__(self, app: App, request: McpRequest) -> None:
        self._app = app
        self._scope = _scope(request)
        self._body: bytes | None = request.body
        self._gone = asyncio.Event()
        self._heads: asyncio.Queue[tuple[int, Mapping[str, str]] | None] = asyncio.Queue(1)
        self._pieces: asyncio.Queue[tuple[bytes, bool] | None] = asyncio.Queue(1)
        self._whole = False
        self._running: asyncio.Task[None] | None = None

    async def begin(self) -> tuple[int, Mapping[str, str]]:
        """Start the application and return the status and headers of its answer.

        :raises InternalError: if the application ended without an answer.
        """
        self._running = asyncio.get_running_loop().create_task(self._run())
        head = await self._heads.get()
        if head is None:
            raise InternalError("The MCP server failed.")
        return head

    async def more(self) -> tuple[bytes, bool]:
        """Return the next piece of the answer's body, and whether another piece follows.

        :raises InternalError: if the application ended before the end of the body.
        """
        piece = await self._pieces.get()
        if piece is None:
            raise InternalError("The MCP server ended an answer early.")
        return piece

    def leave(self) -> None:
        """Report to the application that the client has disconnected, and discard the rest of its answer."""
        self._gone.set()
        self._drop()

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 - the task is not awaited; its answer reports the failure
            _log.exception("an MCP request failed")
        finally:
            self._report_end()

    def _report_end(self) -> None:
        """Report to the reader that the application has ended. This must not wait: it also runs in a cancelled task."""
        with contextlib.suppress(asyncio.QueueFull):
            self._heads.put_nowait(None)
        if not self._whole:
            self._drop()
            self._pieces.put_nowait(None)

    def _drop(self) -> None:
        while not self._pieces.empty():
            self._pieces.get_nowait()

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            await self._heads.put((message["status"], _headers(message.get("headers", ()))))
        elif message["type"] == "http.response.body":
            more = bool(message.get("more_body", False))
            await self._pieces.put((bytes(message.get("body", b"")), more))
            self._whole = not more


def _scope(request: McpRequest) -> MutableMapping[str, Any]:
    """Return the ASGI scope of a request, without the agent's token and cookies."""
    fields = [(name.lower(), value) for name, value in request.fields if name.lower() not in _WITHHELD]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode("ascii"),
        "query_string": b"",
        "root_path": "",
        "headers": fields,
        "client": None,
        "server": None,
        "state": {},
    }


def _headers(given: Any) -> Mapping[str, str]:
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in given
        if name.lower() not in _OF_THE_CONNECTION
    }
