"""Request bodies that are sent from a file, piece by piece, and only if the file has the expected digest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, BinaryIO

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer
from twisted.web.iweb import IBodyProducer
from zope.interface import implementer

PIECE_BYTES = 64 * 1024
"""The bytes of a body that are in memory at once."""


class ChangedBody(Exception):
    """The error for a file that does not have the expected size or digest."""


@frozen
class FileBody:
    """A body in an opened file.

    :ivar length: its size in bytes.
    :ivar digest: the digest of its bytes, as C{sha256:<64 hex>}.
    :ivar in_thread: calls a function with arguments in another thread.
    """

    file: BinaryIO = field(repr=False)
    length: int
    digest: str
    in_thread: Callable[..., Awaitable[Any]] = field(repr=False)

    async def check(self) -> None:
        """Read the whole file, and go back to its beginning.

        :raises ChangedBody: if it has another size or digest.
        """
        await self.in_thread(self._check)

    def _check(self) -> None:
        size, found = 0, sha256()
        self.file.seek(0)
        while piece := self.file.read(PIECE_BYTES):
            size += len(piece)
            found.update(piece)
        self.file.seek(0)
        if (size, f"sha256:{found.hexdigest()}") != (self.length, self.digest):
            raise ChangedBody

    async def close(self) -> None:
        """Close the file."""
        await self.in_thread(self.file.close)


@implementer(IBodyProducer)
@define(eq=False)
class FileProducer:
    """A producer that writes a L{FileBody} as fast as the connection takes it.

    The last piece is written only if all pieces together have the digest. Otherwise the request is never complete.
    """

    _body: FileBody
    length: int = field(init=False)
    _paused: Deferred[None] | None = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    @length.default
    def _measure(self) -> int:
        return self._body.length

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        return Deferred.fromCoroutine(self._produce(consumer))

    def pauseProducing(self) -> None:
        if self._paused is None:
            self._paused = Deferred()

    def resumeProducing(self) -> None:
        paused, self._paused = self._paused, None
        if paused is not None:
            paused.callback(None)

    def stopProducing(self) -> None:
        self._is_over = True
        self.resumeProducing()

    async def _produce(self, consumer: IConsumer) -> None:
        """Write all pieces.

        :raises ChangedBody: if the file was changed. Then the last piece was not written.
        """
        left, found = self.length, sha256()
        while left:
            piece = await self._body.in_thread(self._body.file.read, min(PIECE_BYTES, left))
            left -= len(piece)
            found.update(piece)
            # guard of own tools: a file that is changed while it is sent makes no complete request
            #    -> base.test_file_bodies.ProducerTests.test_changed
            if not piece or (not left and f"sha256:{found.hexdigest()}" != self._body.digest):
                raise ChangedBody
            while self._paused is not None and not self._is_over:
                await self._paused
            if self._is_over:
                return
            consumer.write(piece)
