"""Sends the answer to a tool piece by piece, and reports when the connection has taken all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IPullProducer
from zope.interface import implementer

_PIECE_BYTES = 64 * 1024


@implementer(IPullProducer)
@define(eq=False)
class AnswerSender:
    """Writes an answer over TLS. The transport below TLS asks for each piece when it has sent the one before.

    :param write: writes bytes over TLS.
    :param below: the transport below TLS.
    :param moved: called before each piece is written.
    :param sent: called once, when the transport has sent everything. It is not called if the connection is lost before.
    """

    _data: bytes = field(repr=False)
    _write: Callable[[bytes], object]
    _below: Any
    _moved: Callable[[], object]
    _sent: Callable[[], object]
    _position: int = field(default=0, init=False)
    _is_over: bool = field(default=False, init=False)

    def start(self) -> None:
        """Write the first piece of the answer."""
        self._below.registerProducer(self, False)

    def resumeProducing(self) -> None:
        """Write the next piece of the answer, or end if there is none. Called when all earlier bytes were sent."""
        if self._is_over:
            return
        # guard of own tools: an answer of which TLS dropped a part was not given
        #    -> features.own_tools.test_connection.DeliveryTests.test_tls_ends
        if self._below.disconnecting:
            self._end()
            return
        piece = self._data[self._position : self._position + _PIECE_BYTES]
        self._position += len(piece)
        if piece:
            self._moved()
            self._write(piece)
            return
        self._end()
        self._sent()

    def stopProducing(self) -> None:
        """Write nothing more of the answer: the connection is lost."""
        self._is_over = True

    def _end(self) -> None:
        self._is_over = True
        self._below.unregisterProducer()
