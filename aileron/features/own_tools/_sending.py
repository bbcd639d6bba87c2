"""Sends answers to a tool piece by piece: whole ones, and long ones while they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer
from zope.interface import implementer

from aileron.model.streams import AnswerBody, AnswerCut

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


@implementer(IConsumer, IPushProducer)
@define(eq=False)
class StreamSender:
    """Writes a long answer over TLS while it arrives. The service sends no faster than the tool reads.

    :param write: writes bytes over TLS.
    :param below: the transport below TLS.
    :param moved: called before each piece is written.
    :param length: the length of the body, or None to write it in chunks.
    :ivar passed: the number of bytes of the body that were written.
    """

    _write: Callable[[bytes], object]
    _below: Any
    _moved: Callable[[], object]
    _length: int | None
    passed: int = field(default=0, init=False)
    _producer: Any = field(default=None, init=False)
    _is_paused: bool = field(default=False, init=False)

    async def send(self, body: AnswerBody) -> None:
        """Write the body, and return when the transport has got all of it.

        :raises AnswerCut: if the body is not complete. The end of the answer was not written then.
        """
        self._below.registerProducer(self, True)
        try:
            await body.pass_on(self)
        finally:
            self._below.unregisterProducer()
        # guard of own tools: a body that is shorter than announced has no clean end
        #    -> features.own_tools.test_streaming.StreamTests.test_short
        if self._length is not None and self.passed != self._length:
            raise AnswerCut
        if self._length is None:
            self._write(b"0\r\n\r\n")

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pause and resume the body as the tool reads."""
        self._producer = producer
        if self._is_paused:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        self._producer = None

    def write(self, data: bytes) -> None:
        """Write a piece of the body.

        :raises AnswerCut: if the tool has closed its side of TLS.
        """
        if self._below.disconnecting:
            raise AnswerCut
        if data:
            self.passed += len(data)
            self._moved()
            self._write(data if self._length is not None else b"%x\r\n%b\r\n" % (len(data), data))

    def pauseProducing(self) -> None:
        """Pause the body: the tool has not read what was written."""
        self._is_paused = True
        # guard of own tools: a tool that reads slowly does not fill the memory
        #    -> features.own_tools.test_streaming.StreamTests.test_slow_tool
        if self._producer is not None:
            self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume the body: the tool has read."""
        self._is_paused = False
        self._moved()
        if self._producer is not None:
            self._producer.resumeProducing()

    def stopProducing(self) -> None:
        """Stop the body: the connection to the tool is lost."""
        if self._producer is not None:
            self._producer.stopProducing()
