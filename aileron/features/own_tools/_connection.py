"""One opened connection of a tool: TLS with a certificate of the session, and one HTTP request after another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, cast

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IDelayedCall,
    IProtocol,
    IReactorTime,
    ITransport,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.ssl import CertificateOptions
from twisted.logger import Logger
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from aileron.model.errors import AileronError
from aileron.model.streams import AnswerBody, AnswerCut
from aileron.model.tool_claims import NO_CALLER, ToolCaller

from ._budget import STREAM_BYTES, HeldBytes
from ._forms import read_long
from ._http import MOST_BODY_BYTES, MOST_PUSH_BYTES, ParsedRequest, RequestParser, UnfitRequest
from ._sending import AnswerSender, StreamSender
from ._spool import BodySpool, BodySpools
from .values import ToolAnswer, ToolDoor, ToolRequest, ToolService

REQUEST_SECONDS = 60
"""The time for the TLS handshake, and for a whole request from its first byte."""

IDLE_SECONDS = 300
"""The time between two requests of a connection, and the time for a tool to take a piece of an answer."""

LINGER_SECONDS = 5
"""The time for a tool to close its side of a connection."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_REASON = re.compile(r"[\t\x20-\x7e]*")
_WITHOUT_CONTENT = frozenset({204, 304})
_NOT_PASSED_ON = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "alt-svc"}
)
_FAILED = UnfitRequest(500, "Aileron could not answer this request; see aileron log")
_log = Logger()


@frozen
class ToolSession:
    """The session and the host to which one connection of a tool belongs.

    :ivar connection: a number that tells connections of this daemon apart.
    :ivar host: the host, with its port unless that is 443.
    :ivar held: the bytes that all connections hold in memory.
    :ivar report: records a request that was refused because of its form, with the reason.
    :ivar services: the services that the session opened at this host.
    :ivar caller: the process that opened the connection.
    :ivar spools: stores long bodies. If it is None, none are accepted.
    """

    session_id: str
    connection: int
    host: str
    door: ToolDoor
    held: HeldBytes
    report: Callable[[str], object]
    services: tuple[ToolService, ...] = ()
    caller: ToolCaller = NO_CALLER
    spools: BodySpools | None = None

    @property
    def most_bytes(self) -> int:
        """The longest body of a request that is kept in memory."""
        return MOST_PUSH_BYTES if any(each.is_git for each in self.services) else MOST_BODY_BYTES

    def hold(self, before: int, now: int) -> bool:
        """Count the bytes that the connection holds: see L{HeldBytes.change}."""
        return self.held.change(self.session_id, before, now)


class _ToolStage(Enum):
    """The progress of a connection of a tool.

    C{ANSWERING}: a request is being answered. C{SENDING}: the transport takes the answer. C{OVER}: nothing is read any
    more.
    """

    READING = auto()
    ANSWERING = auto()
    SENDING = auto()
    OVER = auto()


class ToolConnection(Protocol):
    """The HTTP side of one connection. Requests are answered one at a time; bytes that come meanwhile end it.

    :param below: the transport below TLS.
    """

    transport: Any

    def __init__(self, session: ToolSession, below: Any, clock: IReactorTime) -> None:
        self._session, self._below, self._clock = session, below, clock
        open_sink = None if session.spools is None else self._open_spool
        self._parser = RequestParser(session.host, session.most_bytes, open_sink)
        self._stage = _ToolStage.READING
        self._answering: Deferred[None] | None = None
        self._patience: IDelayedCall | None = None
        self._is_lost = self._is_cut = self._pipelines = False
        self._held = 0

    def connectionMade(self) -> None:
        """Start the timer of the handshake and of the first request."""
        self._wait_for(REQUEST_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        """Parse received bytes. While a request is being answered, they are dropped, and the connection ends then."""
        if self._stage is not _ToolStage.READING:
            # guard of own tools: requests are not read ahead
            #    -> features.own_tools.test_connection.AnswerTests.test_pipelined
            self._pipelines = True
            return
        if not self._parser.has_begun:
            self._wait_for(REQUEST_SECONDS)
        try:
            request = self._parser.receive(data)
            self._hold(self._parser.held if request is None else len(request.body))
        except UnfitRequest as refused:
            self._refuse(refused)
            return
        if request is not None:
            self._begin(request)
        elif self._parser.take_expectation():
            self.transport.write(_CONTINUE)
        elif self._parser.sink is not None:
            self._wait_for(REQUEST_SECONDS)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Stop waiting for the answer, since the tool has closed the connection. A run that was created continues."""
        self._stage, self._is_lost, self._is_cut = _ToolStage.OVER, True, reason.check(ConnectionDone) is None
        self._wait_for(None)
        self._hold(0)
        self._discard(self._parser.sink)
        if self._answering is not None:
            self._answering.cancel()

    def _begin(self, request: ParsedRequest) -> None:
        self._pipelines = bool(self._parser.rest)
        self._stage = _ToolStage.ANSWERING
        self._wait_for(None)
        answering = Deferred.fromCoroutine(self._answer(request))
        if self._stage is _ToolStage.ANSWERING:
            self._answering = answering

    def _open_spool(self, content_type: str) -> BodySpool:
        """Return the spool of a long body. It pauses the connection while bytes are written."""
        session = self._session
        assert session.spools is not None  # noqa: S101  (else the parser would not call it)
        return session.spools.open(
            session.session_id,
            read_long(content_type),
            lambda: self._is_lost or self._below.pauseProducing(),
            lambda: self._is_lost or self._below.resumeProducing(),
        )

    @staticmethod
    def _discard(spool: BodySpool | None) -> None:
        """Delete a long body, unless a run has been requested with it."""
        # guard of own tools: a body is not deleted while a run is made of it
        #    -> features.own_tools.test_connection.LongTests.test_gone
        if spool is not None and not spool.is_taken:
            spool.discard()

    async def _read_request(self, parsed: ParsedRequest) -> ToolRequest:
        """Return a request of the session. If it has a long body, wait until the body is completely written.

        :raises AileronError: if its long body cannot be stored.
        """
        session, spool = self._session, parsed.sink
        return ToolRequest(
            session.session_id,
            session.connection,
            session.host,
            parsed.method,
            parsed.target,
            parsed.headers,
            parsed.body,
            session.caller,
            frozenset(each.name for each in session.services),
            None if spool is None else await spool.finish(),
            spool,
        )

    async def _answer(self, parsed: ParsedRequest) -> None:
        session = self._session
        try:
            answer = await session.door.handle(await self._read_request(parsed))
        except CancelledError:
            return
        except AileronError as error:
            self._refuse(UnfitRequest(403, error.message.removesuffix(".")))
            return
        except Exception:  # noqa: BLE001  (the rim of HTTP: the tool gets an answer, the log the cause)
            _log.failure("answering a tool's request")
            self._refuse(_FAILED)
            return
        finally:
            self._answering = None
            self._discard(parsed.sink)
        if self._stage is not _ToolStage.ANSWERING:
            if answer.stream is not None:
                answer.stream.close()
        elif answer.stream is None:
            self._send(parsed, answer)
        else:
            self._begin_stream(parsed, answer, answer.stream)

    def _begin_stream(self, parsed: ParsedRequest, answer: ToolAnswer, body: AnswerBody) -> None:
        """Send the head of a long answer, and begin to pass on its body."""
        try:
            head = write_head(answer, parsed.method, keep=parsed.keep and not self._pipelines)
            self._hold(len(parsed.body) + STREAM_BYTES)
        except UnfitRequest as refused:
            body.close()
            answer.ended(0, True)
            self._refuse(refused)
            return
        self._stage = _ToolStage.SENDING
        self._wait_for(IDLE_SECONDS)
        self.transport.write(head)
        sender = StreamSender(self.transport.write, self._below, self._note_moved, answer.length)
        passing = Deferred.fromCoroutine(self._pass_on(sender, answer, body, keep=parsed.keep))
        if self._stage is _ToolStage.SENDING:
            self._answering = passing

    async def _pass_on(self, sender: StreamSender, answer: ToolAnswer, body: AnswerBody, *, keep: bool) -> None:
        """Pass on the body of a long answer. If it is not complete, abort the connection."""
        is_cut = True
        try:
            await sender.send(body)
            is_cut = False
        except (AnswerCut, CancelledError):
            pass
        except Exception:  # noqa: BLE001  (the rim of HTTP: the tool's connection ends, the log has the cause)
            _log.failure("passing on a long answer")
        finally:
            self._answering = None
            answer.ended(sender.passed, is_cut)
        if not is_cut:
            self._end_answer(answer.delivered, keep=keep)
        elif not self._is_lost:
            self._stage = _ToolStage.OVER
            # guard of own tools: an answer that is cut has no clean end
            #    -> features.own_tools.test_streaming.StreamTests.test_cut, instead self._leave()
            self._below.abortConnection()

    def _send(self, parsed: ParsedRequest, answer: ToolAnswer) -> None:
        """Send an answer. It is delivered when the transport below TLS has sent all of it."""
        try:
            head = write_head(answer, parsed.method, keep=parsed.keep and not self._pipelines)
            body = b"" if parsed.method == "HEAD" or answer.status in _WITHOUT_CONTENT else answer.body
            self._hold(len(parsed.body) + len(head) + len(body))
        except UnfitRequest as refused:
            self._refuse(refused)
            return
        keep, self._stage = parsed.keep, _ToolStage.SENDING
        sender = AnswerSender(
            head + body,
            self.transport.write,
            self._below,
            lambda: self._wait_for(IDLE_SECONDS),
            lambda: self._end_answer(answer.delivered, keep=keep),
        )
        # guard of own tools: an answer counts when the transport has taken it
        #    -> features.own_tools.test_connection.DeliveryTests.test_blocked,
        #    instead self.transport.write(head + body); self._end_answer(answer.delivered, keep=keep)
        sender.start()

    def _end_answer(self, delivered: Callable[[], object], *, keep: bool) -> None:
        """Wait for the next request or close the connection, and call C{delivered} in the next turn of the reactor.

        It is not called if the connection was lost until then without an end of TLS. A tool that ends later may not
        have read the answer. Its repetition is then a new request for approval.
        """
        self._hold(0)
        # guard of own tools: an answer to a closed connection was not given
        #    -> features.own_tools.test_connection.DeliveryTests.test_closed, instead delivered()
        self._clock.callLater(0, self._deliver, delivered)
        if keep and not self._pipelines:
            self._stage = _ToolStage.READING
            self._wait_for(IDLE_SECONDS)
        else:
            self._leave()

    def _deliver(self, delivered: Callable[[], object]) -> None:
        if not self._is_cut:
            delivered()

    def _refuse(self, refused: UnfitRequest) -> None:
        self._session.report(refused.why)
        if self._is_lost:
            return
        body = json.dumps({"message": f"Aileron: {refused.why}."}).encode("ascii")
        headers = (("Content-Type", "application/json"), ("Cache-Control", "no-store"), ("x-should-retry", "false"))
        answer = ToolAnswer(refused.status, refused.why, headers, body)
        self.transport.write(write_head(answer, "", keep=False) + body)
        self._leave()

    def _leave(self) -> None:
        """Close the connection once all bytes were written. What the tool still sends is dropped for some seconds."""
        self._stage = _ToolStage.OVER
        self._hold(0)
        self._discard(self._parser.sink)
        self._wait_for(LINGER_SECONDS)
        self.transport.loseConnection()

    def _hold(self, number: int) -> None:
        """Count the bytes that this connection holds in memory.

        :raises UnfitRequest: if there are too many of all connections.
        """
        if not self._session.hold(self._held, number):
            raise _too_much()
        self._held = number

    def _note_moved(self) -> None:
        """Restart the timer within which the next piece of an answer must be written."""
        if self._patience is not None and self._patience.active():
            self._patience.reset(IDLE_SECONDS)

    def _wait_for(self, seconds: float | None) -> None:
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self._patience = None if seconds is None else self._clock.callLater(seconds, self._below.abortConnection)


def write_head(answer: ToolAnswer, method: str, *, keep: bool) -> bytes:
    """Return the head of an answer.

    :param method: the method of the request. An answer to C{HEAD} has the length that the service gave, if any.
    :param keep: whether the connection may be used for another request.
    :raises UnfitRequest: if a header or the reason phrase could be read in two ways.
    """
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    # guard of own tools: no answer can smuggle another one
    #    -> features.own_tools.test_connection.HeadTests.test_line_ends
    if not 200 <= answer.status <= 599 or not _REASON.fullmatch(answer.reason):
        raise _unclear_answer()
    for name, value in answer.headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise _unclear_answer()
        is_length = method == "HEAD" and name.lower() == "content-length" and answer.status not in _WITHOUT_CONTENT
        if name.lower() not in _NOT_PASSED_ON or (is_length and _LENGTH.fullmatch(value)):
            lines.append(f"{name}: {value}")
    if method != "HEAD" and answer.status not in _WITHOUT_CONTENT:
        length = len(answer.body) if answer.stream is None else answer.length
        lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
    lines.append(f"Connection: {'keep-alive' if keep else 'close'}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _too_much() -> UnfitRequest:
    why = "The requests and answers of this session's tools are too long together. Nothing was sent: try again later"
    return UnfitRequest(403, why)


def _unclear_answer() -> UnfitRequest:
    return UnfitRequest(502, "The answer of the service cannot be passed on: its headers can be read in two ways")


def serve_tool(
    session: ToolSession, options: CertificateOptions, transport: ITransport, clock: IReactorTime
) -> IProtocol:
    """Serve one connection of a tool over TLS, and return the protocol that gets the received bytes.

    :param options: the settings of TLS for the session's host.
    :param transport: the transport below TLS.
    """
    factory = Factory.forProtocol(lambda: ToolConnection(session, transport, clock))
    factory.noisy = False
    secured = TLSMemoryBIOFactory(options, False, factory, clock)
    # It writes at once. Twisted's usual protocol joins small writes, so it would not be known when they reach the
    # transport.
    secured.protocol = TLSMemoryBIOProtocol
    protocol: Any = secured.buildProtocol(None)
    protocol.makeConnection(transport)
    return cast(IProtocol, protocol)
