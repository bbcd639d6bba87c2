"""The overlay over SQLite does what every overlay must, and lasts."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit, IOverlay
from aileron.testing import OverlayContract, UnthreadedPool, memory_store


class SQLiteOverlayTests(OverlayContract, SynchronousTestCase):
    """The contract, and what SQLite adds."""

    def make_overlay(self) -> tuple[IOverlay, IAudit]:
        """Of a store in a temporary file."""
        self.path, self.threads = Path(self.mktemp()), UnthreadedPool()
        store = memory_store(self, path=self.path, threads=lambda *_: self.threads)
        return store.overlay, store.audit

    def test_lasts(self) -> None:
        """What is off is off in the daemon's next life."""
        self.do(self.overlay.set_enabled("a", False, ()))
        self.assertEqual(self.do(memory_store(self, path=self.path).overlay.disabled()), {"a"})

    def test_read_late(self) -> None:
        """A first read that was under way during a switch does not bring back what was before it."""
        self.threads.hold()
        early = Deferred.fromCoroutine(self.overlay.disabled())
        switched = Deferred.fromCoroutine(self.overlay.set_enabled("a", False, ()))
        read, write = self.threads.todo
        self.threads.todo.clear()
        write()
        self.successResultOf(switched)
        read()
        self.successResultOf(early)
        self.assertEqual(self.do(self.overlay.disabled()), {"a"})

    def test_cancelled(self) -> None:
        """Whoever stops waiting for a switch does not undo it, nor leave the old one remembered."""
        self.do(self.overlay.disabled())
        self.threads.hold()
        switched = Deferred.fromCoroutine(self.overlay.set_enabled("a", False, ()))
        switched.cancel()
        self.failureResultOf(switched, CancelledError)
        self.threads.release()
        self.assertEqual(self.do(self.overlay.disabled()), {"a"})
