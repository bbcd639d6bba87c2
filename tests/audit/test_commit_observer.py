"""Whatever is undone, in whatever batches, each record that is kept while locked has the MAC of its place."""

from __future__ import annotations

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
from aileron.errors import NotFound, StateConflict
from aileron.store import Store
from aileron.testing import UnthreadedPool, example_event, example_run, example_transition, unopened_store
from aileron.values import Actor, RunState

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
