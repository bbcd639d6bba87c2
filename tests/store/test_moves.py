"""What runs become when several of them move in one commit."""

from __future__ import annotations

from datetime import timedelta

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import NotFound, StateConflict
from aileron.testing import UnthreadedPool, example_event, example_run, example_transition, memory_store
from aileron.values import PendingLimits, Run, RunState, Transition

_S = RunState
_LIMITS = PendingLimits()
NOON = example_run().received_at


class SharedCommitTests(SynchronousTestCase):
    """Each gets its own row, and one that cannot move leaves its neighbours alone."""

    def setUp(self) -> None:
        self.threads = UnthreadedPool()
        self.store = memory_store(self, threads=lambda *_: self.threads)
        self.threads.hold()

    def received(self, run_id: str) -> Deferred[tuple[Run, bool]]:
        """Begin to keep a run."""
        run = example_run(run_id, gated=False, session_id=None)
        return Deferred.fromCoroutine(self.store.runs.receive(run, (), _LIMITS))

    def moving(self, run_id: str, start: RunState, end: RunState, seconds: int = 1) -> Deferred[Run]:
        """Begin to move one."""
        at = NOON + timedelta(seconds=seconds)
        return Deferred.fromCoroutine(
            self.store.runs.apply(Transition(run_id, start, end, at, (example_event(run_id=run_id),)))
        )

    def kept(self, *run_ids: str) -> None:
        """Have them on record, as received."""
        waiting = [self.received(run_id) for run_id in run_ids]
        self.finish()
        for each in waiting:
            self.successResultOf(each)

    def finish(self) -> None:
        """Do all that waits, what came together in one commit."""
        while self.threads.todo:
            self.threads.step()

    def test_each_its_own(self) -> None:
        """Of more than one statement takes, each becomes what its own change makes of it, and is told so."""
        names = [f"run-{number:02}" for number in range(40)]
        self.kept(*names)
        blocked = self.received("another")  # the rest waits for its commit, and shares the next
        moved = {
            name: self.moving(name, _S.RECEIVED, _S.CANCELLED, number) for number, name in enumerate(reversed(names))
        }
        self.finish()
        self.successResultOf(blocked)
        for number, name in enumerate(reversed(names)):
            told = self.successResultOf(moved[name])
            self.assertEqual(
                (told.id, told.state, told.changed_at), (name, _S.CANCELLED, NOON + timedelta(seconds=number))
            )
            self.assertEqual(self.row(name), told)

    def row(self, run_id: str) -> Run | None:
        """What the table has."""
        got = Deferred.fromCoroutine(self.store.runs.get(run_id))
        self.finish()
        return self.successResultOf(got)

    def test_one_twice(self) -> None:
        """Of one run that moves twice in one commit, each change counts, and a third from where it was does not."""
        self.kept("a", "b")
        blocked = self.received("another")
        first = self.moving("a", _S.RECEIVED, _S.APPROVED)
        second = self.moving("a", _S.APPROVED, _S.EXECUTING, 2)
        late = self.moving("a", _S.RECEIVED, _S.APPROVED, 3)
        other = self.moving("b", _S.RECEIVED, _S.APPROVED)
        self.finish()
        self.successResultOf(blocked)
        self.assertEqual([self.successResultOf(each).state for each in (first, second)], [_S.APPROVED, _S.EXECUTING])
        self.assertIs(self.failureResultOf(late, StateConflict).value.present.state, _S.EXECUTING)
        self.assertIs(self.successResultOf(other).state, _S.APPROVED)

    def test_not_there(self) -> None:
        """One that is not there, or stands elsewhere, is told so; its neighbours move."""
        self.kept("a")
        blocked = self.received("another")
        absent = self.moving("absent", _S.RECEIVED, _S.APPROVED)
        elsewhere = self.moving("a", _S.EXECUTING, _S.COMPLETED)
        right = self.moving("a", _S.RECEIVED, _S.APPROVED)
        self.finish()
        self.successResultOf(blocked)
        self.failureResultOf(absent, NotFound)
        self.assertIs(self.failureResultOf(elsewhere, StateConflict).value.present.state, _S.RECEIVED)
        self.assertIs(self.successResultOf(right).state, _S.APPROVED)

    def test_seen_at_once(self) -> None:
        """What looks at the row later in the same commit sees it moved."""
        self.kept("a")
        blocked = self.received("another")
        moved = self.moving("a", _S.RECEIVED, _S.APPROVED)
        looking = example_transition(example_run("a"), _S.PENDING, verify=lambda *_: None)
        looked = Deferred.fromCoroutine(self.store.runs.apply(looking))
        self.finish()
        self.successResultOf(blocked)
        self.successResultOf(moved)
        self.assertIs(self.failureResultOf(looked, StateConflict).value.present.state, _S.APPROVED)
