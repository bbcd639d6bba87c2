"""Writes the long bodies of tools' requests to the disk while they are received."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from aileron.home.stored_contents import StoredContents, UnfinishedContent
from aileron.model.errors import LimitExceeded, StoreUnavailable

from ._bodies import BodyReading, LongBody
from ._budget import HeldBytes

PIECE_BYTES = 64 * 1024
"""The bytes of a body that are written at once. While they are written, the connection is not read."""

MOST_UNFINISHED_OF_SESSION, MOST_UNFINISHED = 256 * 1024 * 1024, 1024 * 1024 * 1024
"""The most bytes on the disk of bodies that are being received, of one session and of all."""

T = TypeVar("T")
_FULL = "The bodies that this session's tools are sending are too long together. Nothing was sent: try again later."
_log = Logger()


def _do_nothing() -> None:
    return None


@define(eq=False)
class BodySpool:
    """One long body that is received, and then stored or deleted.

    The spool belongs to its connection until L{take} is called. Its owner must call L{discard} in the end.

    :param pause: stops reading the connection.
    :param resume: continues reading it.
    :ivar problem: why the body cannot be stored, as sentences, or empty.
    :ivar is_taken: whether the connection no longer owns it.
    """

    _session_id: str
    _spools: BodySpools
    _reading: BodyReading
    _pause: Callable[[], object] = _do_nothing
    _resume: Callable[[], object] = _do_nothing
    problem: str = field(default="", init=False)
    is_taken: bool = field(default=False, init=False)
    _queue: bytearray = field(factory=bytearray, init=False)
    _in_flight: int = field(default=0, init=False)
    _counted: int = field(default=0, init=False)
    _content: UnfinishedContent | None = field(default=None, init=False)
    _turns: DeferredLock = field(factory=DeferredLock, init=False)

    @property
    def held(self) -> int:
        """The bytes of the body that are in memory."""
        return len(self._queue) + self._in_flight

    def write(self, piece: bytes) -> None:
        """Add received bytes. If they cannot be stored, they are dropped, and L{finish} raises the reason."""
        if self.problem:
            return
        self._queue += piece
        if len(self._queue) >= PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        piece, self._queue = bytes(self._queue), bytearray()
        # guard of own tools: bodies that are being received do not fill the disk
        #    -> features.own_tools.test_spool.SpoolTests.test_budget
        if not self._spools.count(self._session_id, self._counted, self._counted + len(piece)):
            self.problem = _FULL
            return
        self._counted += len(piece)
        self._in_flight += len(piece)
        self._pause()
        self._spools.keep(self._turns.run(lambda: Deferred.fromCoroutine(self._write(piece))))

    async def _write(self, piece: bytes) -> None:
        try:
            if not self.problem:
                await self._spools.in_thread(self._write_piece, piece)
        except OSError as error:
            self.problem = f"The body cannot be stored: {error.strerror}. Nothing was sent."
        finally:
            self._in_flight -= len(piece)
            if not self._in_flight:
                self._resume()

    def _write_piece(self, piece: bytes) -> None:
        """Write a piece to the file. Called in a thread."""
        if self._content is None:
            self._content = self._spools.begin()
        self._content.add(piece)
        self._reading.add(piece)

    async def finish(self) -> LongBody:
        """Wait until all bytes are written, and return what was read of them.

        :raises LimitExceeded: if the bodies that are being received are too long together.
        :raises StoreUnavailable: if it cannot be written.
        """
        if self._queue and not self.problem:
            self._flush()
        async with self._turns:
            if self.problem:
                raise (LimitExceeded if self.problem is _FULL else StoreUnavailable)(self.problem)
            body: LongBody = await self._spools.in_thread(self._reading.end)
            return body

    async def examine(self, work: Callable[[bytes], T]) -> T:
        """Call C{work} with the whole finished body in another thread, and return its result.

        :raises StoreUnavailable: if the body cannot be read.
        """
        async with self._turns:
            content = self._content
            if content is None:
                raise StoreUnavailable("The body is not stored any more. Nothing was sent.")
            try:
                found: T = await self._spools.in_thread(lambda: work(content.read()))
            except OSError as error:
                raise StoreUnavailable(f"The body cannot be read: {error.strerror}. Nothing was sent.") from None
            return found

    def take(self) -> None:
        """Note that the body no longer belongs to its connection."""
        self.is_taken = True

    async def store(self) -> str:
        """Store the finished body durably, and return its digest.

        :raises StoreUnavailable: if it cannot be stored.
        """
        async with self._turns:
            if self._content is None:
                raise ValueError("there is no body")
            try:
                digest: str = await self._spools.in_thread(self._content.store)
            except OSError as error:
                raise StoreUnavailable(f"The body cannot be stored: {error.strerror}. Nothing was sent.") from None
            return digest

    def discard(self) -> None:
        """Delete the body in the background, unless it was stored. Idempotent."""
        self._queue.clear()
        self.problem = self.problem or "The body was discarded."
        self._spools.keep(self._turns.run(lambda: Deferred.fromCoroutine(self._discard())))

    async def _discard(self) -> None:
        content, self._content = self._content, None
        if content is not None:
            await self._spools.in_thread(content.discard)
        self._spools.count(self._session_id, self._counted, 0)
        self._counted = 0


@define(eq=False)
class BodySpools:
    """Makes the spools of all connections, and counts their bytes.

    :ivar in_thread: calls a function with arguments in another thread.
    """

    contents: StoredContents
    in_thread: Callable[..., Awaitable[Any]]
    _bytes: HeldBytes = field(factory=lambda: HeldBytes(MOST_UNFINISHED_OF_SESSION, MOST_UNFINISHED), init=False)
    _going: set[Deferred[None]] = field(factory=set, init=False)

    def open(
        self,
        session_id: str,
        reading: BodyReading,
        pause: Callable[[], object] = _do_nothing,
        resume: Callable[[], object] = _do_nothing,
    ) -> BodySpool:
        """Return the spool of a new body of a session."""
        return BodySpool(session_id, self, reading, pause, resume)

    def begin(self) -> UnfinishedContent:
        """Create the file of a body. Called in a thread.

        :raises OSError: if the file cannot be created.
        """
        return self.contents.begin()

    def count(self, session_id: str, before: int, now: int) -> bool:
        """Count the bytes of a session's body on the disk: see L{HeldBytes.change}."""
        return self._bytes.change(session_id, before, now)

    def keep(self, going: Deferred[None]) -> None:
        """Keep a write or a deletion until it ends. Its failure is logged."""
        self._going.add(going)
        going.addErrback(lambda why: _log.failure("writing the body of a tool's request", why))
        going.addBoth(lambda _: self._going.discard(going))

    async def stop(self) -> None:
        """Wait for all writes and deletions that are under way."""
        while self._going:
            await next(iter(self._going))
