"""The overlay over SQLite does what every overlay must, and lasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit, IOverlay
from aileron.store._overlay import SQLiteOverlay
from aileron.store._readers import Readers
from aileron.testing import OverlayContract, UnthreadedPool, memory_store, seals


class LateReaders(Readers):
    """Their answer comes when the test gives it."""

    answer: Deferred[Any]

    def read(self, *args: Any, **kwargs: Any) -> Deferred[Any]:
        """See L{Readers.read}."""
        self.answer = Deferred()
        return self.answer


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
        store = memory_store(self)
        readers = LateReaders(store.overlay._readers._pool)  # type: ignore[attr-defined]
        overlay = SQLiteOverlay(store.overlay._writer, readers, Clock(), seals())  # type: ignore[attr-defined]
        early = Deferred.fromCoroutine(overlay.disabled())
        self.do(overlay.set_enabled("a", False, ()))
        readers.answer.callback(frozenset())
        self.assertEqual(self.successResultOf(early), {"a"})
        self.assertEqual(self.do(overlay.disabled()), {"a"})

    def test_cancelled(self) -> None:
        """Whoever stops waiting for a switch does not undo it, nor leave the old one remembered."""
        self.do(self.overlay.disabled())
        self.threads.hold()
        switched = Deferred.fromCoroutine(self.overlay.set_enabled("a", False, ()))
        switched.cancel()
        self.failureResultOf(switched, CancelledError)
        self.threads.release()
        self.assertEqual(self.do(self.overlay.disabled()), {"a"})
