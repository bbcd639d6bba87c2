"""Listens to the notices of other daemons on the database, and decides which daemon does the work of only one."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from aileron.model.errors import StoreUnavailable

from ._address import ServerAddress
from ._bulletin import CHANNEL, News, read_notice
from ._server import connection_options

LOOK_SECONDS = 10.0
"""The seconds after which everything is read again, whether there was a notice or not."""

_LEADER_LOCK = 0x41494C54
_AGAIN_SECONDS = 2.0
_SETTINGS = {"statement_timeout": 5000, "tcp_keepalives_idle": 10}
_LEAD = "SELECT pg_try_advisory_lock(%s)"

_log = Logger()


class _Descriptor:
    """A duplicate of a connection's descriptor, for the reactor: libpq closes its own when the connection is lost."""

    def __init__(self, number: int, readable: Callable[[], None]) -> None:
        self._number, self._readable = os.dup(number), readable

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._number

    def logPrefix(self) -> str:
        """Return a name for the reactor's messages."""
        return "notices"

    def doRead(self) -> None:
        """Read what has arrived."""
        self._readable()

    def connectionLost(self, reason: Failure) -> None:
        """Do nothing: the next attempt finds that the connection is lost."""

    def shut_down(self) -> None:
        """End the connection, so that a thread that waits for it fails."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._number)) as end:
            end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)


@define(eq=False)
class Listener:
    """A connection that receives notices. After a loss it connects again, and reports that anything may have changed.

    :param own: the name of this daemon, whose own notices are ignored.
    :param reactor: the reactor: C{addReader}, C{removeReader} and C{callLater}.
    :ivar heard: called with what another daemon changed. It must not raise.
    :ivar leads: whether this daemon does what only one of them may do, such as notify the operator.
    """

    _address: ServerAddress
    _own: str
    _reactor: Any
    _threads: ThreadPool
    heard: Callable[[News], None] = field(default=lambda news: None, init=False)
    leads: bool = field(default=False, init=False)
    _connection: psycopg.Connection[Any] | None = field(default=None, init=False)
    _descriptor: _Descriptor | None = field(default=None, init=False)
    _connecting: Deferred[Any] | None = field(default=None, init=False)
    _later: IDelayedCall | None = field(default=None, init=False)
    _look_later: IDelayedCall | None = field(default=None, init=False)
    _attempt: Deferred[Any] | None = field(default=None, init=False)  # under way when L{_look} was called last
    _stopped: bool = field(default=False, init=False)

    def start(self) -> None:
        """Connect and listen, and report every L{LOOK_SECONDS} that anything may have changed."""
        self._look_later = self._reactor.callLater(LOOK_SECONDS, self._look)
        self._listen()

    def _listen(self) -> None:
        """Connect and listen. This is repeated every L{LOOK_SECONDS}, and soon after the connection is lost."""
        self._later = None
        self._connecting = deferToThreadPool(self._reactor, self._threads, self._connect)
        self._connecting.addCallbacks(self._connected, self._failed).addErrback(_log_failure)

    def stop(self) -> Deferred[Any] | None:
        """Stop listening. Idempotent. Return a Deferred that fires at the end of an attempt under way, or None."""
        self._stopped = True
        for later in (self._later, self._look_later):
            if later is not None and later.active():
                later.cancel()
        self._later = self._look_later = None
        if self._connecting is not None and self._descriptor is not None:
            self._descriptor.shut_down()
        self._disconnect()
        return None if self._connecting is None else self._connecting.addBoth(lambda _: self._disconnect())

    def _look(self) -> None:
        """Report that anything may have changed, since notices may be lost without a sign.

        If the server has not answered since the last call, end the connection: it may never answer.
        """
        self._look_later = self._reactor.callLater(LOOK_SECONDS, self._look)
        attempt, before = self._connecting, self._attempt
        self._attempt = attempt
        if attempt is not None and attempt is before and self._descriptor is not None:
            self._descriptor.shut_down()
        self.heard(News())

    def _connect(self) -> tuple[psycopg.Connection[Any], bool]:
        """Return a connection, and whether this daemon leads. Connect if needed. Called in a thread."""
        connection = self._connection
        if connection is None or connection.closed:
            connection = psycopg.connect(**connection_options(self._address, _SETTINGS), autocommit=True)
        try:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            leads = self.leads or connection.execute(_LEAD, [_LEADER_LOCK]).fetchone() == (True,)
        except BaseException:
            connection.close()
            raise
        return connection, leads

    def _connected(self, found: tuple[psycopg.Connection[Any], bool]) -> None:
        connection, leads = found
        if self._stopped:
            connection.close()
            return
        if connection is not self._connection:
            self._disconnect()
            self._connection = connection
            self._descriptor = _Descriptor(connection.fileno(), self._read)
            self._reactor.addReader(self._descriptor)
            self.heard(News())
        if leads and not self.leads:
            _log.info("this daemon notifies the operator")
        self.leads = leads
        self._take_notices(connection)
        self._start_after(LOOK_SECONDS)

    def _failed(self, failure: Failure) -> None:
        failure.trap(psycopg.Error, StoreUnavailable, OSError)
        self._disconnect()
        if not self._stopped:
            _log.warn("notices of other daemons cannot be received: {why}", why=type(failure.value).__name__)
            self._start_after(_AGAIN_SECONDS)

    def _start_after(self, seconds: float) -> None:
        self._connecting = None
        self._later = self._reactor.callLater(seconds, self._listen)

    def _read(self) -> None:
        """Read the notices that have arrived. If an attempt to connect is under way, they are read at its end."""
        connection = self._connection
        if connection is None or self._connecting is not None:
            self._pause_reading()
            return
        try:
            connection.pgconn.consume_input()
        except psycopg.Error:
            self._disconnect()
            if self._later is not None:
                self._later.reset(0)
            return
        self._take_notices(connection)

    def _pause_reading(self) -> None:
        """Stop reading until the attempt has ended, since its thread reads from the same connection."""
        if self._descriptor is not None:
            self._reactor.removeReader(self._descriptor)

    def _take_notices(self, connection: psycopg.Connection[Any]) -> None:
        if self._descriptor is not None:
            self._reactor.addReader(self._descriptor)
        while (notice := connection.pgconn.notifies()) is not None:
            news = read_notice(notice.extra.decode("utf-8", "replace"), self._own)
            if news is not None:
                self.heard(news)

    def _disconnect(self) -> None:
        self.leads = False
        descriptor, self._descriptor = self._descriptor, None
        connection, self._connection = self._connection, None
        if descriptor is not None:
            self._reactor.removeReader(descriptor)
            descriptor.close()
        if connection is not None:
            connection.close()


def _log_failure(failure: Failure) -> None:
    _log.failure("receiving notices of other daemons", failure)
