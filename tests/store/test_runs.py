"""Runs over SQLite do what every keeper of runs must, also where several are changed in one commit."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.authority import PendingLimits
from aileron.model.errors import LimitExceeded, NotFound, StateConflict
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.model.runs import AttemptRow, Charge, Run, RunState, Transition
from aileron.testing import RunsContract, example_ask, example_event, example_run, example_transition, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

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


class SharedCommitTests(DatabaseCase):
    """What comes before the writer begins shares a transaction: each gets its own row, or its own refusal."""

    def setUp(self) -> None:
        """Keep two runs, and let the writer wait."""
        super().setUp()
        self.store = self.opened()
        self.kept = [self.do(self.store.runs.receive(example_run(name), (), PendingLimits()))[0] for name in "ab"]
        self.threads.hold()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Ask for it."""
        return Deferred.fromCoroutine(coroutine)

    def received(self, run: Run, *transitions: Transition) -> Deferred[tuple[Run, bool]]:
        """Ask to keep C{run}."""
        return self.begin(self.store.runs.receive(run, transitions, PendingLimits(per_session=1)))

    def moving(self, run_id: str, start: RunState, end: RunState, seconds: int = 1) -> Deferred[Run]:
        """Ask to move a run."""
        at = NOON + timedelta(seconds=seconds)
        moved = Transition(run_id, start, end, at, (example_event(run_id=run_id),))
        return self.begin(self.store.runs.apply(moved))

    def together(self) -> None:
        """Let the writer do what waits for it, in one transaction."""
        self.assertEqual(len(self.threads.todo), 1)
        self.threads.step()
        self.assertFalse(self.threads.todo)
        self.threads.release()

    def test_key(self) -> None:
        """A key that was used a moment ago is known."""
        one, other = (example_run(name, idempotency_key="key") for name in ("run-1", "run-2"))
        first, second = self.received(one), self.received(other)
        self.together()
        self.assertEqual((self.successResultOf(first), self.successResultOf(second)), ((one, True), (one, False)))

    def test_limit(self) -> None:
        """What was put up for decision a moment ago counts."""
        runs = [example_run(name) for name in ("run-1", "run-2")]
        asked = [self.received(run, example_transition(run, _S.PENDING, ask=example_ask())) for run in runs]
        self.together()
        self.assertIs(self.successResultOf(asked[0])[0].state, _S.PENDING)
        self.failureResultOf(asked[1], LimitExceeded)

    def test_changed_at_once(self) -> None:
        """A run can be ended that was kept a moment ago, and another kept whose attempt refers to it."""
        runs = [self.kept[0], example_run("run-1"), example_run("run-2")]
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

    def test_each_its_own(self) -> None:
        """Of many that move in one commit, each becomes what its own change makes of it, and is told so."""
        runs = [example_run(f"run-{number:02}") for number in range(40)]
        for run in runs:
            self.received(run)
        moved = [self.moving(run.id, _S.RECEIVED, _S.CANCELLED, number) for number, run in enumerate(reversed(runs))]
        self.together()
        for number, run in enumerate(reversed(runs)):
            expected = evolve(run, state=_S.CANCELLED, changed_at=NOON + timedelta(seconds=number))
            self.assertEqual(self.successResultOf(moved[number]), expected)
            self.assertEqual(self.do(self.store.runs.get(run.id)), expected)

    def test_one_twice(self) -> None:
        """Of one run that moves twice in one commit each change counts, and is seen by what looks at the row later.

        One from where the run is no more, or of a run that is not there, is told so; the neighbours move.
        """
        first = self.moving("a", _S.RECEIVED, _S.APPROVED)
        second = self.moving("a", _S.APPROVED, _S.EXECUTING, 2)
        late = self.moving("a", _S.RECEIVED, _S.APPROVED, 3)
        looked = self.begin(self.store.runs.apply(example_transition(self.kept[0], _S.PENDING, verify=lambda *_: None)))
        absent = self.moving("absent", _S.RECEIVED, _S.APPROVED)
        other = self.moving("b", _S.RECEIVED, _S.APPROVED)
        self.together()
        self.assertEqual([self.successResultOf(each).state for each in (first, second)], [_S.APPROVED, _S.EXECUTING])
        for each in (late, looked):
            self.assertIs(self.failureResultOf(each, StateConflict).value.present.state, _S.EXECUTING)
        self.failureResultOf(absent, NotFound)
        self.assertIs(self.successResultOf(other).state, _S.APPROVED)


_TWO_A_MINUTE = Charge("key", 2, 60.0, "full")


class ChargesTests(DatabaseCase):
    """Runs that are charged when they begin, over SQLite."""

    def setUp(self) -> None:
        """A store in a temporary file."""
        super().setUp()
        self.store = self.opened()
        self.runs = 0

    def charged(self, seconds: float, *charges: Charge) -> Deferred[object]:
        """Begin a run so long after noon."""
        self.runs += 1
        run = example_run(f"run-{self.runs}", gated=False)
        begun = example_transition(run, RunState.EXECUTING, f"event-{self.runs}", charges=charges)
        begun = evolve(begun, at=run.received_at + timedelta(seconds=seconds))
        return Deferred.fromCoroutine(self.store.runs.receive(run, [begun], PendingLimits()))

    def passes(self, seconds: float, *charges: Charge) -> None:
        """Check that it begins."""
        self.successResultOf(self.charged(seconds, *charges))

    def waits(self, seconds: float, *charges: Charge) -> object:
        """Check that it is refused; for how long."""
        return self.failureResultOf(self.charged(seconds, *charges), LimitExceeded).value.details["retry_after"]

    def test_window(self) -> None:
        """There is room until as many were counted, and again once the oldest has left the window."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(20, _TWO_A_MINUTE)
        self.assertEqual(self.waits(30, _TWO_A_MINUTE), 30)
        self.passes(60, _TWO_A_MINUTE)
        self.assertEqual(self.waits(61, _TWO_A_MINUTE), 19)

    def test_refused_counts_nothing(self) -> None:
        """What is refused by one limit is not counted against another."""
        other = Charge("other", 1, 60.0, "full")
        self.passes(0, _TWO_A_MINUTE, _TWO_A_MINUTE)  # one run, however many limits name the key
        self.passes(0, _TWO_A_MINUTE)
        self.waits(1, other, _TWO_A_MINUTE)
        self.passes(2, other)

    def test_set_back(self) -> None:
        """A clock that was set back counts what lies ahead of it as well: nothing is won by turning it."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(0, _TWO_A_MINUTE)
        self.waits(-90, _TWO_A_MINUTE)

    def test_forgotten(self) -> None:
        """What no window reaches any more is forgotten."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(3 * 86400, _TWO_A_MINUTE)
        self.assertEqual(self.query("SELECT count(*) FROM charges"), [(1,)])
