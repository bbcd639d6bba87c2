"""The store as a whole: opened, closed, and refused by what it stands on."""

from __future__ import annotations

from aileron.model.authority import PendingLimits
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.store import Store
from aileron.testing import check_chain, example_event, example_run, example_transition, memory_store, unopened_store

from .case import DatabaseCase

_LIMITS = PendingLimits()


class StoreTests(DatabaseCase):
    def unavailable(self, store: Store) -> None:
        """Check that neither reads nor writes are taken."""
        self.refused(store.runs.get("x"), StoreUnavailable)
        self.refused(store.audit.append(example_event()), StoreUnavailable)

    def test_opened_again(self) -> None:
        """What was kept is there in the next life, and the chain goes on where it ended."""
        store = self.opened()
        run, _ = self.do(store.runs.receive(example_run(), (), _LIMITS))
        self.do(store.audit.append(example_event()))
        self.do(store.close())
        again = self.opened()
        self.assertEqual(self.do(again.runs.get(run.id)), run)
        self.do(again.audit.append(example_event()))
        records = self.do(again.audit.list(AuditQuery())).items[::-1]
        self.assertEqual([record.sequence for record in records], [1, 2])
        self.assertIsNone(check_chain(records))

    def test_files(self) -> None:
        """Nobody else may read the file, nor what SQLite puts beside it, whatever characters are in its name."""
        path = self.path.with_name("a?mode=memory&b#c%20 é.db")
        store = memory_store(self, path=path)
        self.do(store.audit.append(example_event()))
        beside = [each for each in path.parent.iterdir() if each.name.startswith(path.name)]
        self.assertEqual(len(beside), 3)
        self.assertEqual({entry.stat().st_mode & 0o777 for entry in beside}, {0o600})

    def test_not_open(self) -> None:
        """A store that was not opened refuses, and makes no file; a closed one refuses, and may be closed again."""
        store = unopened_store(self.path)
        self.unavailable(store)
        self.do(store.close())
        self.assertFalse(self.path.exists())
        store = self.opened()
        for _ in range(2):
            self.do(store.close())
            self.unavailable(store)

    def test_locked_by_another(self) -> None:
        """Nothing of a transition is written while another process holds the lock; afterwards all of it."""
        store = self.opened()
        run, _ = self.do(store.runs.receive(example_run(), (), _LIMITS))
        moved = example_transition(run, RunState.APPROVED)
        with self.locked():
            self.refused(store.runs.apply(moved), StoreUnavailable)
        self.assertEqual(self.do(store.runs.get(run.id)), run)
        self.assertEqual(self.do(store.audit.list(AuditQuery())).items, ())
        self.assertIs(self.do(store.runs.apply(moved)).state, RunState.APPROVED)

    def test_half_way(self) -> None:
        """Where an event of a transition cannot be kept, the run stays as it was."""
        store = self.opened()
        run, _ = self.do(store.runs.receive(example_run(), (), _LIMITS))
        event = example_event()
        self.do(store.audit.append(event))
        moved = example_transition(run, RunState.APPROVED, events=(example_event(), event))
        self.refused(store.runs.apply(moved), StoreUnavailable)
        self.assertEqual(self.do(store.runs.get(run.id)), run)
        self.assertEqual(len(self.do(store.audit.list(AuditQuery())).items), 1)
