"""Runs over SQLite do what every keeper of runs must."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import LimitExceeded
from aileron.interfaces import IAudit, IRuns
from aileron.testing import RunsContract, UnthreadedPool, example_run, example_transition, memory_store
from aileron.testing._examples import NOON, example_ask
from aileron.values import AttemptRow, PendingLimits, Run, RunState, Transition

T = TypeVar("T")
_S = RunState


class SQLiteRunsTests(RunsContract, SynchronousTestCase):
    """The contract."""

    def make_runs(self) -> tuple[IRuns, IAudit]:
        """Of a store in a temporary file."""
        clock = Clock()
        clock.advance(NOON.timestamp())
        store = memory_store(self, clock)
        return store.runs, store.audit


class SharedTests(SynchronousTestCase):
    """Runs whose rows are written in one transaction, late in it."""

    def setUp(self) -> None:
        """The writer is busy: what comes now shares its next transaction."""
        self.pool = UnthreadedPool()
        self.store = memory_store(self, threads=lambda *_: self.pool)
        self.pool.hold()
        self.addCleanup(self.pool.release)
        self.busy = self.begin(self.store.runs.receive(example_run("run-0"), (), PendingLimits()))

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Ask for it."""
        return Deferred.fromCoroutine(coroutine)

    def together(self) -> None:
        """Let the writer do what waits for it, in one transaction."""
        self.pool.step()
        self.assertEqual(len(self.pool.todo), 1)
        self.pool.step()

    def received(self, run: Run, *transitions: Transition) -> Deferred[tuple[Run, bool]]:
        """Ask to keep C{run}."""
        return self.begin(self.store.runs.receive(run, transitions, PendingLimits(per_session=1)))

    def test_key(self) -> None:
        """A key that was used a moment ago is known."""
        one, other = (evolve(example_run(name), idempotency_key="key") for name in ("run-1", "run-2"))
        first, second = self.received(one), self.received(other)
        self.together()
        self.assertEqual(self.successResultOf(first), (one, True))
        self.assertEqual(self.successResultOf(second), (one, False))

    def test_limit(self) -> None:
        """What was put up for decision a moment ago counts."""
        runs = [example_run(name) for name in ("run-1", "run-2")]
        asked = [self.received(run, example_transition(run, _S.PENDING, ask=example_ask())) for run in runs]
        self.together()
        self.assertIs(self.successResultOf(asked[0])[0].state, _S.PENDING)
        self.failureResultOf(asked[1], LimitExceeded)

    def test_changed_at_once(self) -> None:
        """A run can be ended that was kept a moment ago, and another kept whose attempt refers to it."""
        runs = [example_run(name) for name in ("run-0", "run-1", "run-2")]
        attempts = [AttemptRow(run.id, "only", 1, "started", NOON) for run in runs]
        ends = [example_transition(run, _S.FAILED, attempts=(row,)) for run, row in zip(runs, attempts, strict=True)]
        ended = [self.begin(self.store.runs.apply(ends[0]))]
        kept = self.received(runs[1])
        ended.append(self.begin(self.store.runs.apply(ends[1])))
        begun = self.received(runs[2], ends[2])
        self.together()
        self.assertEqual([self.successResultOf(each).state for each in ended], [_S.FAILED, _S.FAILED])
        self.assertEqual(self.successResultOf(kept), (runs[1], True))
        self.assertIs(self.successResultOf(begun)[0].state, _S.FAILED)
