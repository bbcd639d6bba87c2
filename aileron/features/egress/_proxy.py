"""The proxy's end of one connection: admitted, connected, its TLS hello checked, and then carried and counted."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ._dialer import Dialer, Unreachable
from ._head import ConnectRequest, HeadRefused, read_head, write_refusal
from ._hello import SERVER_HELLO_BYTES, HelloRefused, asks_again, read_hello
from ._sessions import MOST_TUNNELS, Access, EgressRefused, EgressSessions

HEAD_SECONDS = 15
LEAVE_SECONDS = 15
"""For a host to read what was sent to it before the program left."""

IDLE_SECONDS = 300
MOST_SECONDS = 4 * 3600

_HANDSHAKE = 22
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_ALERT = bytes.fromhex("15030300020270")
"""A fatal alert of TLS: the server does not know this name."""

_GIVEN_UP = "it was given up before it was connected"

_log = Logger()


class _TunnelStage(Enum):
    """The progress of a connection.

    C{RECORDING}: there is a connection to the host, which goes on record before anything is sent by it.
    C{ANSWER}: the hello was sent on, and nothing more is before the server's answer tells whether another one follows.
    C{REFUSED}: nothing more is sent on, as it was refused, blocked or cut.
    """

    HEAD = auto()
    ASKING = auto()
    CONNECTING = auto()
    RECORDING = auto()
    HELLO = auto()
    ANSWER = auto()
    OPEN = auto()
    REFUSED = auto()


class _HostConnection(Protocol):
    """The other end: what comes from the host."""

    transport: Any

    def __init__(self, client: ProxyConnection) -> None:
        self._client = client

    def dataReceived(self, data: bytes) -> None:
        self._client.answered(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._client.host_left()


class ProxyConnection(Protocol):
    """One connection to the proxy, of one session, to one host.

    :ivar host: where to; empty before it is known.
    """

    transport: Any

    def __init__(
        self,
        sessions: EgressSessions,
        dialer: Dialer,
        clock: IReactorTime,
        lost: Callable[[ProxyConnection], object] = lambda _: None,
    ) -> None:
        """Begin with nothing.

        :param lost: told when the program has left.
        """
        self.host = ""
        self._sessions, self._dialer, self._clock, self._lost = sessions, dialer, clock, lost
        self._stage = _TunnelStage.HEAD
        self._buffer = self._first = b""
        self._asked_again = False
        self._access: Access | None = None
        self._upstream: _HostConnection | None = None
        self._connecting: Deferred[None] | None = None
        self._end: IDelayedCall | None = None
        self._patience: IDelayedCall | None = None
        self._gone = False

    def connectionMade(self) -> None:
        """Give it some time to say what it wants, and an end in any case."""
        self._wait_for(HEAD_SECONDS)
        self._end = self._clock.callLater(MOST_SECONDS, self.cut)

    def dataReceived(self, data: bytes) -> None:
        """Take what comes from the sandbox."""
        if self._stage is _TunnelStage.OPEN:
            self._send(data)
            return
        if self._stage is not _TunnelStage.REFUSED:
            self._buffer += data
        if self._stage is _TunnelStage.HEAD:
            self._read_head()
        elif self._stage is _TunnelStage.HELLO:
            self._read_hello()

    def answered(self, data: bytes) -> None:
        """Take what comes from the host."""
        waits = self._stage in (_TunnelStage.RECORDING, _TunnelStage.HELLO)  # for what no TLS server says first
        if self._access is None or (waits and not self._asked_again):
            self._report("egress.blocked", "the host speaks first, so it is not TLS")
            self.cut()
            return
        self._moved()
        self._access.count(self.host, received=len(data))
        self.transport.write(data)
        if self._stage is _TunnelStage.ANSWER:
            self._first += data
            if self._first[0] != _HANDSHAKE:
                self._open()
            elif len(self._first) >= SERVER_HELLO_BYTES:
                self._open_or_ask_again()

    def cut(self) -> None:
        """End both ends now: what has not left yet never does.  Twice is safe."""
        self._give_up()
        self._stage = _TunnelStage.REFUSED
        self.transport.abortConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def host_left(self) -> None:
        """Note that the other end is over: the program may read what there is."""
        self._upstream = None
        if self._gone:
            self._be_done()
        elif self._stage is not _TunnelStage.RECORDING:
            self.transport.unregisterProducer()  # the program's end would wait for what it says
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End the other end, and what is under way; what a program sent before it left may take some time to arrive."""
        self._gone = True
        self._lost(self)
        self._give_up()
        if self._upstream is None:
            self._be_done()
        elif reason.check(ConnectionDone) is None:
            self._upstream.transport.abortConnection()
        else:
            self._wait_for(LEAVE_SECONDS)
            self._upstream.transport.unregisterProducer()  # one that is told to wait would keep it open
            self._upstream.transport.loseConnection()

    def _give_up(self) -> None:
        """Connect no more; what is being recorded, of an admission or a connection, is recorded."""
        if self._connecting is not None and self._stage is _TunnelStage.CONNECTING:
            self._connecting.cancel()

    def _is_over(self) -> bool:
        """Tell whether nobody waits for it any more."""
        return self._gone or self._stage is _TunnelStage.REFUSED

    def _be_done(self) -> None:
        self._wait_for(None)
        if self._end is not None and self._end.active():
            self._end.cancel()
        if self._access is not None:
            self._access.tunnels.discard(self)

    def _wait_for(self, seconds: float | None) -> None:
        """Wait so long for what comes next, and then end it; L{None}: something else ends it."""
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self._patience = None if seconds is None else self._clock.callLater(seconds, self.cut)

    def _moved(self) -> None:
        if self._patience is not None and self._patience.active():
            self._patience.reset(IDLE_SECONDS)

    def _read_head(self) -> None:
        try:
            request = read_head(self._buffer)
        except HeadRefused as refused:
            self._refuse(refused.status, refused.why)
            return
        if request is None:
            return
        self._stage, self._buffer, self.host = _TunnelStage.ASKING, request.rest, request.host
        self._wait_for(None)  # each step has a limit of its own
        self.transport.pauseProducing()
        self._connecting = Deferred.fromCoroutine(self._connect(request))
        self._connecting.addErrback(self._failed)

    async def _connect(self, request: ConnectRequest) -> None:
        access = self._sessions.redeem(request.ticket)
        if access is None:
            self._refuse(403, "Aileron: the session has ended")
            return
        if len(access.tunnels) >= MOST_TUNNELS:
            self._refuse(429, f"This session has {MOST_TUNNELS} connections open already")
            return
        self._access = access
        access.tunnels.add(self)
        private = await self._sessions.admit(access, self.host)
        if self._is_over():
            self._report("egress.failed", _GIVEN_UP)
            return
        factory = Factory.forProtocol(lambda: _HostConnection(self))
        factory.noisy = False
        self._stage = _TunnelStage.CONNECTING
        upstream: Any = await self._dialer.connect(self.host, factory, private_network=private)
        self._upstream, self._stage = upstream, _TunnelStage.RECORDING
        await self._sessions.confirm(access, self.host)
        self._connecting = None
        if self._is_over():
            return
        if self._upstream is None:  # it hung up meanwhile
            raise Unreachable
        self.transport.registerProducer(upstream.transport, True)
        self._stage = _TunnelStage.HELLO
        self._wait_for(HEAD_SECONDS)
        self.transport.write(_ESTABLISHED)
        self.transport.resumeProducing()
        self._read_hello()

    def _failed(self, failure: Failure) -> None:
        self._connecting = None
        error = failure.value
        if self._stage in (_TunnelStage.CONNECTING, _TunnelStage.RECORDING):
            self._report("egress.failed", _explain(error))
        if self._is_over():
            return
        if isinstance(error, EgressRefused):
            self._refuse(403, f"Aileron: {self.host} is not allowed: {error.why}")
        elif isinstance(error, Unreachable):
            self._refuse(502, f"Aileron: {self.host} cannot be reached")
        elif not isinstance(error, CancelledError):
            _log.failure("connecting a sandbox", failure)
            self._refuse(500, "Aileron: the connection failed; see aileron log")

    def _report(self, type_: str, why: str) -> None:
        if self._access is not None:
            self._sessions.report(type_, self._access, self.host, why)

    def _refuse(self, status: int, why: str) -> None:
        self._stage = _TunnelStage.REFUSED
        self._wait_for(HEAD_SECONDS)
        self.transport.write(write_refusal(status, why))
        self.transport.loseConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def _read_hello(self) -> None:
        try:
            hello = read_hello(self._buffer)
        except HelloRefused as refused:
            self._block(refused.why)
            return
        if hello is None:
            return
        if hello.name != self.host.rpartition(":")[0]:
            self._block(f"names {hello.name}")
            return
        checked, self._buffer = self._buffer[: hello.length], self._buffer[hello.length :]
        self._wait_for(IDLE_SECONDS)
        self._send(checked)
        if self._asked_again:
            self._open()
        else:
            self._stage = _TunnelStage.ANSWER
            self.transport.pauseProducing()

    def _block(self, why: str) -> None:
        self._stage = _TunnelStage.REFUSED
        self._report("egress.blocked", why)
        self.transport.unregisterProducer()
        self._wait_for(HEAD_SECONDS)
        self.transport.write(_ALERT)
        self.transport.loseConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def _open_or_ask_again(self) -> None:
        if not asks_again(self._first):
            self._open()
            return
        self._asked_again, self._stage = True, _TunnelStage.HELLO
        self.transport.resumeProducing()
        self._read_hello()

    def _open(self) -> None:
        self._stage = _TunnelStage.OPEN
        held, self._buffer = self._buffer, b""
        if held:
            self._send(held)
        if self._upstream is not None:
            self._upstream.transport.registerProducer(self.transport, True)
        self.transport.resumeProducing()

    def _send(self, data: bytes) -> None:
        if self._access is None or self._upstream is None:
            return
        self._moved()
        self._access.count(self.host, sent=len(data))
        self._upstream.transport.write(data)


def _explain(error: BaseException | None) -> str:
    """Say why a connection was not made."""
    if isinstance(error, EgressRefused | Unreachable):
        return error.why
    return _GIVEN_UP if isinstance(error, CancelledError) else "it failed; see aileron log"
