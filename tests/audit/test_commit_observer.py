"""Whatever is undone, in whatever batches, each record that is kept while locked has the MAC of its place."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import CommitObserver, KeyFile
from aileron.audit._commit_observer import mac_of
from aileron.audit._key_file import EvolvingKey
from aileron.base.unthreaded import UnthreadedPool
from aileron.model.audit import Actor
from aileron.model.errors import NotFound, StateConflict
from aileron.model.runs import RunState
from aileron.store import Store
from aileron.testing import example_event, example_run, example_transition, unopened_store

_KEY = b"k" * 32
_BATCHES = st.lists(st.lists(st.sampled_from(("append", "two", "refused")), min_size=1, max_size=5), max_size=8)


class CommitObserverTests(SynchronousTestCase):
    """A observer of a real store, its vault locked."""

    def _begin(self, directory: str, pool: UnthreadedPool) -> tuple[CommitObserver, Store]:
        observer = CommitObserver(KeyFile(Path(directory, "audit.key")))
        observer.load()
        store = unopened_store(Path(directory, "db"), Clock(), lambda *_: pool, observer=observer)
        self.successResultOf(Deferred.fromCoroutine(store.open()))
        observer.locked = True
        return observer, store

    def _ask(self, store: Store, what: str) -> None:
        if what == "refused":
            work = self._refused(store)
        else:
            work = store.audit.append(*map(example_event, ("a", "b")[: 1 + (what == "two")]))
        done = Deferred.fromCoroutine(work)
        done.addErrback(lambda failure: failure.trap(NotFound, StateConflict))

    async def _refused(self, store: Store) -> None:
        await store.runs.apply(example_transition(example_run("nobody"), RunState.APPROVED))

    @settings(deadline=None, max_examples=25)
    @given(_BATCHES, st.integers(0, 3))
    def test_every_place(self, batches: list[list[str]], lost: int) -> None:
        """Keys are used once each, in order, over lives in which the file lags behind."""
        with TemporaryDirectory() as directory:
            path = Path(directory, "audit.key")
            KeyFile(path).save(EvolvingKey("s", 0, _KEY))
            for number, batch in enumerate(batches):
                pool = UnthreadedPool()
                observer, store = self._begin(directory, pool)
                observer.catch_up(self.successResultOf(Deferred.fromCoroutine(store.archive.count_of("s"))))
                before = path.read_bytes()
                pool.hold()
                for what in batch:
                    self._ask(store, what)
                pool.release()
                self._check(store)
                self.successResultOf(Deferred.fromCoroutine(store.close()))
                if number == lost:
                    path.write_bytes(before)

    def _check(self, store: Store) -> None:
        records = self.successResultOf(Deferred.fromCoroutine(store.archive.macs(0, 1000)))
        first = EvolvingKey("s", 0, _KEY)
        expected = [(each.sequence, mac_of(first.advance(place), each.hash)) for place, each in enumerate(records)]
        self.assertEqual([(each.sequence, each.mac) for each in records], expected)

    def test_file_follows(self) -> None:
        """The key in the file is that of the next record as soon as the last is durable."""
        with TemporaryDirectory() as directory:
            KeyFile(Path(directory, "audit.key")).save(EvolvingKey("s", 0, _KEY))
            _, store = self._begin(directory, UnthreadedPool())
            for count in range(1, 4):
                self._ask(store, "append")
                state = KeyFile(Path(directory, "audit.key")).load()
                self.assertEqual(state, EvolvingKey("s", 0, _KEY).advance(count))
            self.successResultOf(Deferred.fromCoroutine(store.close()))

    def test_due_when_durable(self) -> None:
        """A decision is due once it is durable, not while it may still be undone."""
        with TemporaryDirectory() as directory:
            pool = UnthreadedPool()
            observer, store = self._begin(directory, pool)
            pool.hold()
            Deferred.fromCoroutine(store.audit.append(example_event("x", actor=Actor("human", "o"))))
            self.assertFalse(observer.due)
            pool.release()
            self.assertTrue(observer.due)
            self.successResultOf(Deferred.fromCoroutine(store.close()))


class _CrashError(Exception):
    """The process ends here."""


class KeyFileTests(SynchronousTestCase):
    """One file."""

    def setUp(self) -> None:
        """No file yet, and a state."""
        self.path = Path(self.mktemp())
        self.file = KeyFile(self.path)
        self.state = EvolvingKey("stretch-1", 0, b"k" * 32)

    def test_kept(self) -> None:
        """What was written last stands there, for this user alone; of a key that was used nothing is left."""
        for steps in range(5):
            self.file.save(self.state.advance(steps))
            self.assertEqual(self.file.load(), self.state.advance(steps))
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        data = self.path.read_bytes()
        for steps in range(4):
            self.assertNotIn(self.state.advance(steps).key.hex().encode(), data)
        self.assertEqual(self.state.advance(2).advance(3), self.state.advance(5))
        self.assertNotIn("kkkk", repr(self.state))

    def test_crash(self) -> None:
        """Wherever a write ends, the old state or the new one stands there whole."""
        self.file.save(self.state)
        for survived in (0, 1):
            left = [survived]

            def sync(descriptor: int, left: list[int] = left) -> None:
                if not left[0]:
                    raise _CrashError
                left[0] -= 1
                os.fsync(descriptor)

            before = self.file.load()
            assert before is not None
            self.assertRaises(_CrashError, KeyFile(self.path, sync).save, before.advance(1))
            self.assertIn(self.file.load(), (before, before.advance(1)))

    def test_no_state(self) -> None:
        """No file, a place that was written by half, or with a number that we never write, and a pipe are no state.

        Nobody is sent along billions of keys, or waits at the pipe.
        """
        self.assertIsNone(self.file.load())
        self.file.save(self.state)
        data = self.path.read_bytes()
        self.path.write_bytes(data[:40] + b"x" + data[41:])
        self.assertIsNone(self.file.load())
        for count, index in ((0, -(10**18)), (-1, 0), (10**200, 0), (0, 10**30)):
            text = f"{count} stretch {index} {'00' * 32}".encode()
            self.path.write_bytes((text + b" " + sha256(text).hexdigest().encode() + b"\n").ljust(512, b"\0"))
            self.assertIsNone(self.file.load(), (count, index))
        self.path.unlink()
        os.mkfifo(self.path)
        self.assertIsNone(self.file.load())
