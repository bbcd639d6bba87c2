"""Daemons of two versions on one database: who may change the tables beside whom, and who may work on which."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool
from aileron.model.authority import PendingLimits
from aileron.model.daemons import ProcessFacts
from aileron.store import Store, Tuning, _server_schema, read_address
from aileron.store._engine import DatabaseRefused, NewerDatabase
from aileron.store._server_schema import find_oldest, steps, works_from
from aileron.testing import example_run, unopened_store
from aileron.testing._case import StoreCase
from tests.functional.postgresql import OnServer

_KNOWN = steps()
_NEWEST = max(_KNOWN)
_COLUMN = "ALTER TABLE sessions ADD COLUMN later text COLLATE \"C\" NOT NULL DEFAULT '';\n"
_OLDEST = find_oldest(_NEWEST, {number: works_from(number, step) for number, step in _KNOWN.items()})
_EXPANDS = f"-- works from: {_OLDEST}\n{_COLUMN}"
_CONTRACTS = f"-- works from: {_NEWEST + 1}\nALTER TABLE sessions DROP COLUMN later;\n"


class UpgradeTests(OnServer, StoreCase, SynchronousTestCase):
    """The present version, and later ones, whose further steps stand in for those of a release."""

    def setUp(self) -> None:
        super().setUp()
        self.path = Path(self.mktemp())
        self.name = self.server.make_database()
        self._places[self.path.absolute()] = self.name
        self.addCleanup(self.server.drop, self.name)
        self.clock = Clock()
        self.present = self.opened("present")

    def store(self, name: str, *later: str) -> Store:
        """A store of one of several daemons, which knows these later steps as well."""
        settings = Tuning(busy_seconds=0, durable=False, process=ProcessFacts(name), several=True)
        self.patch(_server_schema, "steps", lambda: {**_KNOWN, **dict(enumerate(later, _NEWEST + 1))})
        place = read_address(self.server.url(self.name))
        store = unopened_store(place, self.clock, threads=UnthreadedPool, tuning=settings)
        self.addCleanup(lambda: self.do(store.close()))
        return store

    def opened(self, name: str, *later: str) -> Store:
        store = self.store(name, *later)
        self.do(store.open())
        return store

    def version(self) -> int:
        ((version,),) = self.query("SELECT version FROM schema_version")
        return int(version)

    def has_column(self) -> bool:
        return bool(self.query("SELECT 1 FROM information_schema.columns WHERE column_name = 'later'"))

    def works(self, store: Store, run_id: str) -> None:
        """The store receives a run, and finds it."""
        self.do(store.runs.receive(example_run(run_id), (), PendingLimits()))
        self.assertIsNotNone(self.do(store.runs.get(run_id)))

    def test_beside(self) -> None:
        """A step that says so is taken while an older daemon works, and that one works on, and starts again."""
        newer = self.opened("newer", _EXPANDS)
        self.assertEqual((self.version(), self.has_column()), (_NEWEST + 1, True))
        self.works(self.present, "run-1")
        self.works(newer, "run-2")
        self.do(self.present.close())
        self.works(self.opened("again"), "run-3")
        self.assertEqual(self.version(), _NEWEST + 1)

    def test_not_beside(self) -> None:
        """Any other step waits until its daemon is alone, and so does one that comes after it."""
        for later in ((_COLUMN,), (_COLUMN, f"-- works from: {_NEWEST + 1}\nSELECT 1;\n")):
            refused = self.refused(self.store("newer", *later).open(), DatabaseRefused)
            self.assertIn("stop all other daemons", refused.message)
        self.assertEqual((self.version(), self.has_column()), (_NEWEST, False))
        self.do(self.present.close())
        self.server.end_sessions(self.name)
        self.opened("newer", _COLUMN)
        self.assertTrue(self.has_column())

    def test_refused(self) -> None:
        """A daemon that cannot work on newer tables does not start, and says what to do; nothing is changed."""
        self.do(self.present.close())
        self.server.end_sessions(self.name)
        self.do(self.opened("newer", _COLUMN).close())
        refused = self.refused(self.store("present").open(), NewerDatabase)
        self.assertIn(f"schema {_NEWEST + 1}; this one knows {_NEWEST}", refused.message)
        self.assertIn("Install the newer one", refused.message)

    def test_contract(self) -> None:
        """What no daemon needs any more goes away in a later release, by a daemon that is alone. Then one release back
        works, and none before it."""
        self.do(self.opened("newer", _EXPANDS).close())
        self.refused(self.store("newest", _EXPANDS, _CONTRACTS).open(), DatabaseRefused)  # the present one runs
        self.do(self.present.close())
        self.server.end_sessions(self.name)
        self.do(self.opened("newest", _EXPANDS, _CONTRACTS).close())
        self.do(self.opened("newer", _EXPANDS).close())
        self.refused(self.store("present").open(), NewerDatabase)

    def test_unrecorded(self) -> None:
        """A database that does not say for whom its later steps are is for nobody older."""
        self.query(f"UPDATE schema_version SET version = {_NEWEST + 1}")
        self.refused(self.store("again").open(), NewerDatabase)
        self.query("DROP TABLE schema_steps")
        self.refused(self.store("again").open(), NewerDatabase)

    def test_marks(self) -> None:
        """A step names an earlier one, or none and so itself."""
        texts = (_COLUMN, "-- works from: 18\n", "-- works from: x\n")
        self.assertEqual([works_from(20, text) for text in texts], [20, 18, 20])
        for number, step in _KNOWN.items():
            self.assertLessEqual(works_from(number, step), number)
            self.assertEqual("works from" in step, works_from(number, step) != number, f"step {number}")
