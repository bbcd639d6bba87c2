"""Long bodies are written while they are received, within limits, and nothing of them is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.features.own_tools._bodies import LongBody
from aileron.features.own_tools._budget import HeldBytes
from aileron.features.own_tools._forms import read_long
from aileron.features.own_tools._spool import PIECE_BYTES, BodySpool, BodySpools
from aileron.home.stored_contents import StoredContents, UnfinishedContent
from aileron.model.errors import LimitExceeded, StoreUnavailable

PIECE = b"x" * PIECE_BYTES


class SpoolTests(SynchronousTestCase):
    """Spools over real files, with the thread stepped by hand."""

    def setUp(self) -> None:
        home = Path(self.mktemp()).absolute()
        home.mkdir(mode=0o700)
        self.stored = StoredContents.of_home(home)
        self.waiting: list[Deferred[None]] = []
        self.spools = BodySpools(self.stored, self.in_thread)
        self.is_paused = False

    async def in_thread(self, work: Any, *args: Any) -> Any:
        """Call a function once the thread is stepped."""
        turn: Deferred[None] = Deferred()
        self.waiting.append(turn)
        await turn
        return work(*args)

    def step(self, most: int = 100) -> None:
        """Let the thread work."""
        for _ in range(most):
            if self.waiting:
                self.waiting.pop(0).callback(None)

    def open(self, session_id: str = "session-1") -> BodySpool:
        """Return a new spool."""
        return self.spools.open(
            session_id, read_long("text/plain"), lambda: self.pause(paused=True), lambda: self.pause(paused=False)
        )

    def pause(self, *, paused: bool) -> None:
        """Note whether the connection is read."""
        self.is_paused = paused

    def finish(self, spool: BodySpool) -> Deferred[LongBody]:
        """Finish a body."""
        finished = Deferred.fromCoroutine(spool.finish())
        self.step()
        return finished

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [each.name for each in self.stored.directory.iterdir()] if self.stored.directory.exists() else []

    def test_stored(self) -> None:
        """A body is written in pieces while the connection is not read, and stored by its digest."""
        spool = self.open()
        spool.write(b"a")
        self.assertEqual(([], False, 1), (self.waiting, self.is_paused, spool.held))
        spool.write(PIECE)
        self.assertEqual((True, PIECE_BYTES + 1), (self.is_paused, spool.held))
        self.step()
        self.assertEqual((False, 0), (self.is_paused, spool.held))
        spool.write(b"z")
        content = b"a" + PIECE + b"z"
        long = self.successResultOf(self.finish(spool))
        self.assertEqual((digest_of_bytes(content), len(content)), (long.digest, long.size))
        self.assertEqual({}, self.stored.list_sizes())
        stored = Deferred.fromCoroutine(spool.store())
        self.step()
        self.assertEqual(long.digest, self.successResultOf(stored))
        spool.discard()
        self.step()
        self.assertEqual({long.digest: long.size}, self.stored.list_sizes())
        self.assertEqual({}, self.spools._bytes._of_sessions)

    def test_discarded(self) -> None:
        """A body that is discarded in the midst leaves no file and counts no more, also while it is being written."""
        for steps in (0, 1, 2):
            spool = self.open()
            spool.write(PIECE)
            spool.write(PIECE)
            self.step(steps)
            for _ in range(2):
                spool.discard()
            spool.write(PIECE)
            self.step()
            self.assertEqual(([], {}), (self.names(), self.spools._bytes._of_sessions), steps)
            self.assertEqual((0, False), (spool.held, self.is_paused))

    def test_disk(self) -> None:
        """If the disk is full, what follows is dropped, and the reason is said in the end."""

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        for name, pieces in (("add", 3), ("store", 1)):
            patched = self.patch(UnfinishedContent, name, full)
            spool = self.open()
            for _ in range(pieces):
                spool.write(PIECE)
                self.step()
            if name == "add":
                failed: Deferred[Any] = self.finish(spool)
            else:
                self.successResultOf(self.finish(spool))
                failed = Deferred.fromCoroutine(spool.store())
                self.step()
            self.assertIn("No space left", self.failureResultOf(failed, StoreUnavailable).value.message)
            self.assertFalse(self.is_paused)
            patched.restore()
            spool.discard()
            self.step()
            self.assertEqual([], self.names())

    def test_budget(self) -> None:
        """What is being received is limited, of one session and of all, and counts until it is stored or discarded."""
        self.spools._bytes = HeldBytes(2 * PIECE_BYTES, 3 * PIECE_BYTES)
        first, second, other = self.open(), self.open(), self.open("session-2")
        for _ in range(2):
            first.write(PIECE)
        second.write(PIECE)
        other.write(PIECE)
        other.write(PIECE)
        for spool in (second, other):
            self.failureResultOf(self.finish(spool), LimitExceeded)
            spool.discard()
        self.successResultOf(self.finish(first))
        first.discard()
        self.step()
        again = self.open("session-2")
        for _ in range(2):
            again.write(PIECE)
        self.successResultOf(self.finish(again))

    def test_stop(self) -> None:
        """When the daemon ends, what is being written is waited for."""
        spool = self.open()
        spool.write(PIECE)
        spool.discard()
        stopped = Deferred.fromCoroutine(self.spools.stop())
        self.assertNoResult(stopped)
        self.step()
        self.successResultOf(stopped)
        self.assertEqual([], self.names())

    def test_cancelled(self) -> None:
        """A connection that is lost while its body is finished ends the wait, and the body can be discarded."""
        spool = self.open()
        spool.write(PIECE)
        spool.write(b"rest")
        finishing = Deferred.fromCoroutine(spool.finish())
        finishing.cancel()
        self.failureResultOf(finishing, CancelledError)
        spool.discard()
        self.step()
        self.assertEqual([], self.names())
