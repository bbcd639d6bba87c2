"""A session with one MCP server: the SDK's client in its loop, over a wire in the reactor."""

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
"""How a session begins: the newest protocol is tried first, or the handshake of older ones alone."""

MOST_SERVER_REQUESTS = 16
"""How many requests of the server are refused before the session is given up, and how many may wait for their reply."""


class McpSessions(Protocol):
    """Opens sessions with one server: a new one for each run (HTTP), or one that the runs share (a process)."""

    @property
    def relay(self) -> ApiRelay | None:
        """The relay of the server's own requests; those of a remote server are not seen."""
        return None

    @property
    def why_approval(self) -> str:
        """Why every call needs an approval, in a clause; empty: it need not."""
        return ""

    def review(self) -> Mapping[str, JSON]:
        """Return what is shown of the server beside its URL, and must be the same when a call is made.

        :raises CapabilityDenied: it cannot be talked to as the file declares it.
        """
        return {}

    async def authorize(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        """Open the credential for C{request}; raises as L{aileron.connectors._sending.open_credential}."""

    def open(self, sent: Authorization, credential: ICredential | None) -> Awaitable[McpSession]:
        """Return a session that is ready for requests.

        :param sent: the opened credential.
        :param credential: by which a process that is shared is told from one of another account.
        :raises Exception: of L{aileron.connectors._sending.FAILURES}, or L{Refused}: there is no session.
        """

    def done(self, session: McpSession) -> None:
        """Take back a session that one run has used, however that ended."""


@define(eq=False)
class McpSession:
    """One session.

    :ivar bridge: to the loop in which the SDK runs.
    :ivar mode: L{AUTO} or L{LEGACY}.
    :ivar refused: the methods of the server's own requests; each was refused.
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
        """Agree with the server on a version of the protocol, and return it; raises as L{request}."""
        self.wire.listen(self)
        try:
            self._client = await self.bridge.ask(self._load_client)
            self.bridge.ask(self._client.run).addErrback(self._fail)
            version: str = await self.bridge.ask(self._client.opened)
        except (CancelledError, NotUnderstood):
            raise
        except Exception as error:  # noqa: BLE001 - whatever the SDK makes of what a server says
            raise self._failure or error_of(error) from None
        return version

    async def list_tools(self, cursor: str | None, delivery: Delivery) -> Message:
        """Ask for a page of the server's tools; raises as L{request}."""
        return await self.request(delivery, lambda: self._client.list_tools(cursor, delivery))

    async def call_tool(
        self, name: str, arguments: Mapping[str, JSON], meta: Mapping[str, JSON], delivery: Delivery
    ) -> Message:
        """Call a tool, once; raises as L{request}."""
        return await self.request(delivery, lambda: self._client.call_tool(name, arguments, meta, delivery))

    async def request(self, delivery: Delivery, make: Callable[[], Coroutine[Any, Any, object]]) -> Message:
        """Have the SDK send one request, and return the response as it came on the wire.

        :raises Exception: of L{aileron.connectors._sending.FAILURES}, or L{Refused}: there is none.
        """
        try:
            await self.bridge.ask(make)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the SDK judges a response too; what it came as is judged by us
            if delivery.answer is None:
                raise delivery.failure or self._failure or error_of(error) from None
        finally:
            delivery.withdrawn = True
        if delivery.answer is None:
            raise NotUnderstood
        return delivery.answer

    async def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery | None) -> None:
        """Send what the SDK says; raises what the wire does.

        :param delivery: of a request that somebody waits for; L{None}: it is the SDK's own.
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
            # An older server refuses the first message of the newest protocol, and is asked in another way.
            self._failure = self._failure if self._is_closed else None
        finally:
            self._owed -= "method" not in message

    def receive(self, message: Message) -> None:
        """Take a message of the server; of what it says unasked, only requests are passed on, to be refused."""
        number = message.get("id")
        if "method" in message:
            if type(number) not in (int, str):
                return  # it asks for no answer, or for none that could be given
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
        """Fail whatever is waited for, and close."""
        self._failure = failure
        for delivery in self._pending.values():
            delivery.failure = failure
        self.close()

    def close(self) -> None:
        """End it.  Twice is safe."""
        if self._is_closed:
            return
        self._is_closed = True
        self.wire.close()
        if self._client is not None:
            self._post(self._client.leave)

    def _post(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(SideGone):  # the daemon ends
            self.bridge.post(act)

    def _fail(self, why: Failure) -> None:
        _log.warn("a session with an MCP server broke: {kind}", kind=why.type)
        self.lost(ServiceUnreachable())

    async def _load_client(self) -> Any:
        # The SDK is large. It is loaded when it is first needed, and in the loop's thread.
        from ._client import SdkClient

        return SdkClient(self.bridge, self.send, self.mode)


def error_of(error: Exception) -> Exception:
    """Return what to raise where the SDK failed with C{error}, and the wire did not."""
    if isinstance(error, Rejected):
        return error
    return NotUnderstood() if isinstance(error, ValueError | TypeError | RuntimeError) else ServiceUnreachable()
