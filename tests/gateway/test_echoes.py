"""A provider that sent its key back is put on record, and the binding is flagged."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import StoreUnavailable
from aileron.gateway._injection import LeakRecorder, SecretLeak
from aileron.testing import UnthreadedPool, example_session, memory_store
from aileron.values import OPENAI, Actor, AuditQuery, Binding, BindingFlag, utc

NOW = 1_760_000_000.0
BINDING = Binding("api_key/openai/default", "api_key", "openai", "default", OPENAI.fqn, utc(0), revision=3)
ECHO = SecretLeak(OPENAI, BINDING, example_session(), "base64")


class EchoesTests(SynchronousTestCase):
    """Over a real store."""

    def setUp(self) -> None:
        """A store that answers when the test lets it."""
        self.clock = Clock()
        self.clock.advance(NOW)
        self.threads = UnthreadedPool()
        self.path = Path(self.mktemp())
        self.store = memory_store(self, self.clock, self.path, lambda *_: self.threads)
        ids = iter(f"id-{at}" for at in range(9))
        self.echoes = LeakRecorder(self.store.flags, self.clock, lambda: next(ids))

    def test_kept(self) -> None:
        """Event and flag say which binding, of which provider and in whose session."""
        self.echoes.tell(ECHO)
        (record,) = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items
        event = record.event
        self.assertEqual((event.type, event.at, event.actor), ("secret.echoed", utc(NOW), Actor("agent", "session-1")))
        self.assertEqual((event.session_id, event.connector), ("session-1", "gateway://openai"))
        self.assertEqual(event.payload, {"binding": BINDING.name, "forms": ["base64"]})
        flags = self.successResultOf(Deferred.fromCoroutine(self.store.flags.all()))
        reason = "An answer of gateway://openai held this credential."
        self.assertEqual(flags, {BINDING.name: BindingFlag(BINDING.name, 3, utc(NOW), reason)})

    def test_told_at_the_end(self) -> None:
        """What was told of right before the store is closed is kept, though nobody waited for it."""
        self.threads.hold()
        self.echoes.tell(ECHO)
        closed = Deferred.fromCoroutine(self.store.close())
        self.threads.release()
        self.successResultOf(closed)
        again = memory_store(self, self.clock, self.path)
        self.assertEqual(len(self.successResultOf(Deferred.fromCoroutine(again.audit.list(AuditQuery()))).items), 1)

    def test_not_kept(self) -> None:
        """Where it cannot be kept the log says so."""
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))
        self.echoes.tell(ECHO)
        self.assertEqual(len(self.flushLoggedErrors(StoreUnavailable)), 1)
