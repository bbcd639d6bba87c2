"""A session with one MCP server: the SDK's client runs in an asyncio loop, and the messages travel in the reactor."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from attrs import define, field
from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.bridge import SideGone, ThreadBridge
from aileron.base.json import JSON
from aileron.connectors._answer import ServiceUnreachable
from aileron.connectors._conversation import NotUnderstood, Rejected
from aileron.model.connectors import Request
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization

from ._api_relay import ApiRelay
from ._wire import Delivery, Message, Wire

_log = Logger()

AUTO, LEGACY = "auto", "legacy"
"""How a session begins: by trying the newest protocol first, or only with the handshake of older protocols."""

MOST_SERVER_REQUESTS = 16
"""The most requests from the server, including refused ones. If the server sends more, the session is closed."""


class McpSessions(Protocol):
    """Opens sessions with one server: a new one for each run (HTTP), or one that all runs share (a process)."""

    @property
    def relay(self) -> ApiRelay | None:
        """The relay of the server's own requests to its API, or None for a remote server or one without an API."""
        return None

    @property
    def why_approval(self) -> str:
        """The reason why every call needs an approval, as a clause, or an empty text if there is none."""
        return ""

    def review(self) -> Mapping[str, JSON]:
        """Return what the approval shows of the server besides its URL. This must be unchanged when the call is made.

        :raises CapabilityDenied: if the server cannot be used as the file declares.
        """
        return {}

    async def authorize(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        """Open the credential for C{request}, or return an empty authorization if the connector needs none.

        :raises BindingRequired: if a credential is needed and none was given.
        :raises BindingFailed: if the credential has another kind, is empty, or is not allowed in a header.
        :raises NetworkError: if the credential had to be renewed, which took too long or failed.
        :raises VaultLocked: if the vault was locked meanwhile.
        :raises CredentialNeedsYou: if a person must renew the credential first.
        """

    def open(self, sent: Authorization, credential: ICredential | None) -> Awaitable[McpSession]:
        """Return a session that is ready for requests.

        :param sent: the opened credential.
        :param credential: identifies the account, since a process serves one account only.
        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if there is no session.
        """

    def done(self, session: McpSession) -> None:
        """Release a session after a run, whether it failed or not."""


@define(eq=False)
class McpSession:
    """A session with an MCP server.

    :ivar bridge: the bridge to the loop in which the SDK runs.
    :ivar mode: L{AUTO} or L{LEGACY}.
    :ivar refused: the methods of the server's own requests, which are all refused, except for pings.
    """

    bridge: ThreadBridge
    wire: Wire
    mode: str = AUTO
    refused: list[str] = field(factory=list, init=False)
    _pending: dict[Any, Delivery] = field(factory=dict, init=False)
    _client: Any = field(default=None, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _owed: int = field(default=0, init=False)
    _is_closed: bool = field(default=False, init=False)

    async def start(self) -> str:
        """Negotiate the version of the protocol and return it.

        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if the session cannot start.
        """
        self.wire.listen(self)
        try:
            self._client = await self.bridge.ask(self._load_client)
            self.bridge.ask(self._client.run).addErrback(self._fail)
            version: str = await self.bridge.ask(self._client.opened)
        except (CancelledError, NotUnderstood):
            raise
        except Exception as error:  # noqa: BLE001 - the SDK may raise any error for a server's message
            raise self._failure or error_of(error) from None
        return version

    async def list_tools(self, cursor: str | None, delivery: Delivery) -> Message:
        """Request a page of the server's tools, and return the response.

        :param cursor: the cursor of the page, or None for the first page.
        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if there is no response.
        """
        return await self.request(delivery, lambda: self._client.list_tools(cursor, delivery))

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], meta: Mapping[str, JSON], delivery: Delivery
    ) -> Message:
        """Call a tool once, and return the response.

        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if there is no response.
        """
        return await self.request(delivery, lambda: self._client.call_tool(name, arguments, meta, delivery))

    async def request(self, delivery: Delivery, make: Callable[[], Coroutine[Any, Any, object]]) -> Message:
        """Send one request through the SDK, and return the response as received on the wire.

        :param make: sends the request, in the loop.
        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if there is no response.
        """
        try:
            await self.bridge.ask(make)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the SDK may reject a response, which is then judged by its raw form
            if delivery.answer is None:
                raise delivery.failure or self._failure or error_of(error) from None
        finally:
            delivery.withdrawn = True
        if delivery.answer is None:
            raise NotUnderstood
        return delivery.answer

    async def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery | None) -> None:
        """Send a message of the SDK.

        :param delivery: the delivery of a request whose response is awaited, or None for the SDK's own messages.
        :raises ServiceUnreachable: if the session is closed, or the caller has stopped waiting. Nothing was sent.
        :raises Exception: any error of the wire.
        """
        delivery = delivery or Delivery()
        if self._is_closed or delivery.withdrawn:
            raise ServiceUnreachable
        if "method" in message and "id" in message:
            self._pending[message["id"]] = delivery
        try:
            await self.wire.send(message, headers, delivery)
        except CancelledError:
            raise
        except Exception as error:
            delivery.failure = self._failure = error
            raise
        else:
            # An older server refuses the first message of the newest protocol, and the SDK then tries an older one.
            self._failure = self._failure if self._is_closed else None
        finally:
            self._owed -= "method" not in message

    def receive(self, message: Message) -> None:
        """Process a message of the server: pass responses and requests to the SDK, which refuses requests.

        Notifications are ignored. Too many requests end the session.
        """
        number = message.get("id")
        if "method" in message:
            if type(number) not in (int, str):
                return  # a notification, or a request with an invalid id
            self._owed += 1
            if message["method"] != "ping":
                self.refused.append(str(message["method"]))
            if max(self._owed, len(self.refused)) > MOST_SERVER_REQUESTS:
                self.lost(NotUnderstood())
                return
        elif type(number) is not int or (delivery := self._pending.pop(number, None)) is None:
            return
        else:
            delivery.answer = message
        self._post(lambda: self._client.deliver(message))

    def lost(self, failure: Exception) -> None:
        """Fail all pending requests with C{failure}, and close the session."""
        self._failure = failure
        for delivery in self._pending.values():
            delivery.failure = failure
        self.close()

    def close(self) -> None:
        """End the session. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self.wire.close()
        if self._client is not None:
            self._post(self._client.leave)

    def _post(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(SideGone):  # the daemon is shutting down
            self.bridge.post(act)

    def _fail(self, why: Failure) -> None:
        _log.warn("the session with an MCP server failed: {kind}", kind=why.type)
        self.lost(ServiceUnreachable())

    async def _load_client(self) -> Any:
        # The SDK is large, so it is loaded on first use, in the loop's thread.
        from ._client import SdkClient

        return SdkClient(self.bridge, self.send, self.mode)


def error_of(error: Exception) -> Exception:
    """Return the error to raise to the session's caller if the SDK failed with C{error}, without a network failure."""
    if isinstance(error, Rejected):
        return error
    return NotUnderstood() if isinstance(error, ValueError | TypeError | RuntimeError) else ServiceUnreachable()
