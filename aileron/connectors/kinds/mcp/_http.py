"""Streamable HTTP: each message is sent by POST, and the response is JSON or a stream of events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.base.attachments import media_type_of
from aileron.base.json import JSON, canonical
from aileron.connectors._answer import OutgoingRequest, ServiceAnswer, ServiceUnreachable, StreamingTransport, TakeBody
from aileron.connectors._conversation import NotUnderstood
from aileron.connectors._decode import decode
from aileron.connectors._sending import open_credential, with_credential
from aileron.credentials import wanted_scopes
from aileron.model.connectors import Request
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization

from ._events import EventMessages, read_message
from ._session import AUTO, LEGACY, McpSession, McpSessions
from ._spec import McpSpec
from ._wire import Bridged, Delivery, Message, Receiver, Refused

_SESSION, _VERSION = "mcp-session-id", "mcp-protocol-version"
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")
T = TypeVar("T")

_STATELESS = "2026-07-28"  # the first version without a handshake
_ENDING_SECONDS = 5.0
_MOST_ENDING_BYTES = 64 * 1024


@define(eq=False)
class HttpWire:
    """The connection to an MCP server over HTTP. It implements L{aileron.connectors.kinds.mcp._wire.Wire}.

    :ivar clock: limits the time of the request that ends the session.
    :ivar plain: the request that every message is based on.
    """

    transport: StreamingTransport
    clock: IReactorTime
    plain: OutgoingRequest
    _receiver: Receiver | None = None
    _session_id: str = ""
    _version: str = ""
    _under_way: set[Deferred[None]] = field(factory=set)

    def listen(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Send the message by POST.

        :return: a Deferred that fires with None when the response has been received or its stream has ended. It fails
            with one of L{aileron.connectors._sending.FAILURES} or L{Refused}.
        """
        self._version = headers.get(_VERSION, "" if message.get("method") == "initialize" else self._version)
        sending = Deferred.fromCoroutine(self._post(message, headers, delivery))
        self._under_way.add(sending)

        def forget(result: T) -> T:
            self._under_way.discard(sending)
            return result

        return sending.addBoth(forget)

    def close(self) -> None:
        """Close every connection. If the server started a session, send the request that ends it, and do not wait."""
        self._receiver = None
        for sending in tuple(self._under_way):
            sending.cancel()
        session_id, self._session_id = self._session_id, ""
        if session_id:
            headers = (*self.plain.headers, (_SESSION, session_id), *self._agreed())
            farewell = evolve(
                self.plain, method="DELETE", headers=headers, body=None, max_response_bytes=_MOST_ENDING_BYTES
            )
            ending = self.transport.send(farewell, Delivery()).addTimeout(_ENDING_SECONDS, self.clock)
            ending.addErrback(lambda _: None)  # many servers do not support this, and a failure has no consequences

    async def _post(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> None:
        exchange = _PostedMessage(self, message, delivery)
        agreed = {**dict(self._agreed()), **headers, **({_SESSION: self._session_id} if self._session_id else {})}
        own = (
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            *agreed.items(),
        )
        try:
            body = canonical(message)
        except ValueError:
            raise NotUnderstood from None
        request = evolve(self.plain, headers=(*self.plain.headers, *own), body=body)
        exchange.finish(await self.transport.stream(request, delivery, exchange.begin))

    def _agreed(self) -> Sequence[tuple[str, str]]:
        return [(_VERSION, self._version)] if self._version else []

    def begin(self, session_id: str) -> None:
        """Store the id of the session that the server has started.

        :raises NotUnderstood: if the id is not valid in a header.
        """
        if not _SESSION_ID.fullmatch(session_id):
            raise NotUnderstood
        self._session_id = session_id

    def receive(self, message: JSON) -> None:
        """Pass a message, or each message of a batch, to the receiver.

        :raises NotUnderstood: if C{message} is not a message.
        """
        for each in message if isinstance(message, list) else (message,):
            if not isinstance(each, dict):
                raise NotUnderstood
            if self._receiver is not None:
                self._receiver.receive(each)


@define(eq=False)
class _PostedMessage:
    """A JSON-RPC message that is sent to an MCP server by HTTP POST, and the handling of the HTTP response."""

    wire: HttpWire
    message: Message
    delivery: Delivery
    _parts: list[bytes] = field(factory=list)

    @property
    def _asks(self) -> bool:
        return "method" in self.message and "id" in self.message

    def begin(self, head: ServiceAnswer) -> TakeBody:
        """Check the head of a response, and return the function that receives the body.

        The id of a new session is stored.

        :raises NotUnderstood: if a response with this head cannot have a message, or the session's id is not valid.
        """
        accepted = 200 <= head.status <= 299
        if accepted and self.message.get("method") == "initialize" and _SESSION in head.headers:
            self.wire.begin(head.headers[_SESSION])
        if not self._asks:
            return lambda _: True
        kind = media_type_of(head.headers.get("content-type", ""))
        if accepted and kind == "text/event-stream":
            return self._events(EventMessages(self._receive))
        if accepted and kind != "application/json":
            raise NotUnderstood
        return self._gather

    def finish(self, answer: ServiceAnswer) -> None:
        """Process a complete response.

        :raises Refused: if the server refused the message.
        :raises ServiceUnreachable: if the response ended without a response to the request.
        :raises NotUnderstood: if the body is not a message.
        """
        if not 200 <= answer.status <= 299:
            self._refuse(answer)
        elif self._asks and self._parts:
            self._receive(b"".join(self._parts))
        if self._asks and self.delivery.answer is None:
            raise ServiceUnreachable

    def _refuse(self, answer: ServiceAnswer) -> None:
        """Pass on the JSON-RPC error in the body of a refusal, or raise L{Refused} if there is none.

        The body counts only for 4xx statuses other than 401 and 403, since others may come from a proxy.

        :raises Refused: if the body has no error for this message.
        :raises NotUnderstood: if the body is not such an error.
        """
        if self._asks and 400 <= answer.status <= 499 and answer.status not in (401, 403):
            try:
                body = decode(b"".join(self._parts))
            except ValueError:
                body = None
            if isinstance(body, dict) and self._is_failed_by(body):
                self.wire.receive({"jsonrpc": "2.0", "id": self.message["id"], "error": body["error"]})
                return
        challenge = answer.headers.get("www-authenticate", "")
        lacks_scope = answer.status == 403 and wanted_scopes(challenge) is not None
        location = answer.headers.get("location", "").partition("?")[0].partition("#")[0]
        raise Refused(answer.status, lacks_scope, challenge, location if 300 <= answer.status <= 399 else "")

    def _is_failed_by(self, body: Message) -> bool:
        """Return True if a body is an error for this message. Its id may be missing or a text."""
        number = body.get("id")
        is_meant = number is None or isinstance(number, str) or (type(number) is int and number == self.message["id"])
        return is_meant and isinstance(body.get("error"), dict) and "result" not in body

    def _events(self, reader: EventMessages) -> TakeBody:
        def take(piece: bytes) -> bool:
            reader.feed(piece)
            return self.delivery.answer is not None

        return take

    def _gather(self, piece: bytes) -> bool:
        self._parts.append(piece)
        return False

    def _receive(self, data: bytes) -> None:
        self.wire.receive(read_message(data))


@define(eq=False)
class HttpSessions(McpSessions):
    """L{aileron.connectors.kinds.mcp._session.McpSessions} over HTTP, with a new session for each run.

    :ivar bridge: starts the loop of the SDK when the first session needs it.
    """

    bridge: Bridged
    transport: StreamingTransport
    clock: IReactorTime
    spec: McpSpec
    _mode: str = AUTO

    async def authorize(self, request: Request, credential: ICredential | None, seconds: float) -> Authorization:
        """Open the credential for C{request}, or return an empty authorization if the connector needs none.

        :raises BindingRequired: if a credential is needed and none was given.
        :raises BindingFailed: if the credential has another kind, is empty, or is not allowed in a header.
        :raises NetworkError: if the credential had to be renewed, which took too long or failed.
        :raises VaultLocked: if the vault was locked meanwhile.
        :raises CredentialNeedsYou: if a person must renew the credential first.
        """
        return await open_credential(self.spec.description, request, credential, seconds=seconds, clock=self.clock)

    async def open(self, sent: Authorization, credential: ICredential | None) -> McpSession:
        """Start a session. If the start fails, the session is closed.

        If the server supported only the older handshake last time, this session uses that handshake from the start.

        :raises Exception: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}, if there is no session.
        """
        plain = OutgoingRequest(
            method="POST",
            url=with_credential(self.spec.url, sent),
            headers=sent.headers,
            body=None,
            private_network=self.spec.private_network,
            max_response_bytes=self.spec.max_response_bytes,
        )
        mode, self._mode = self._mode, AUTO
        session = McpSession(await self.bridge(), HttpWire(self.transport, self.clock, plain), mode)
        try:
            version = await session.start()
        except BaseException:
            session.close()
            raise
        self._mode = LEGACY if version < _STATELESS else AUTO
        return session

    def done(self, session: McpSession) -> None:
        session.close()
