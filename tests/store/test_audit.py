"""The record over SQLite does what every record must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.authority import PendingLimits
from aileron.model.errors import NotFound, StateConflict
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState, Transition
from aileron.store import Store, Tuning
from aileron.testing import AuditContract, check_chain, example_event, example_run, memory_store, unopened_store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PERSON = Actor("human", "operator-1")


class SQLiteAuditTests(AuditContract, SynchronousTestCase):
    """The contract."""

    def make_audit(self) -> IAudit:
        """Of a store in a temporary file."""
        return memory_store(self).audit


class WaitsTests(SynchronousTestCase):
    """How long runs waited for a person, by day."""

    def setUp(self) -> None:
        """An empty record."""
        self.audit = memory_store(self).audit

    def record(self, kind: str, run_id: str, at: datetime, actor: Actor = PERSON) -> None:
        """Put it on record."""
        event = example_event(kind, run_id, at=at, actor=actor)
        self.successResultOf(Deferred.fromCoroutine(self.audit.append(event)))

    def waits(self, since: datetime) -> list[tuple[int, int, float, float]]:
        """Day of the month, how many, median and slow, to the hundredth."""
        found = self.successResultOf(Deferred.fromCoroutine(self.audit.time_daily(since, "asked", ("yes", "no"))))
        return [
            (each.day.day, each.number, round(each.median_seconds, 2), round(each.slow_seconds, 2)) for each in found
        ]

    def test_percentiles(self) -> None:
        """Half took no longer than the median and nine in ten no longer than the slow one; a single wait is both."""
        for seconds in range(1, 11):
            self.record("asked", f"run-{seconds}", NOON - timedelta(seconds=seconds))
            self.record("yes", f"run-{seconds}", NOON)
        self.record("asked", "late", NOON)
        self.record("no", "late", NOON + timedelta(days=2, seconds=0.25))
        expected = [(NOON.day, 10, 5.0, 9.0), (NOON.day + 2, 1, 172800.25, 172800.25)]
        self.assertEqual(self.waits(NOON), expected)
        self.assertEqual(self.waits(NOON + timedelta(seconds=1)), expected[1:])
        self.assertEqual(self.waits(NOON + timedelta(days=3)), [])

    def test_what_counts(self) -> None:
        """A wait begins when it was asked first and ends by a person; a clock set back makes it no time at all."""
        self.record("asked", "twice", NOON)
        self.record("asked", "twice", NOON + timedelta(seconds=8))
        self.record("yes", "twice", NOON + timedelta(seconds=10))
        self.assertEqual(self.waits(NOON), [(NOON.day, 1, 10.0, 10.0)])
        self.record("asked", "granted", NOON)
        self.record("yes", "granted", NOON + timedelta(seconds=99), DAEMON)
        self.record("yes", "never asked", NOON)
        self.assertEqual(self.waits(NOON), [(NOON.day, 1, 10.0, 10.0)])
        self.record("asked", "back", NOON + timedelta(hours=1))
        self.record("no", "back", NOON)
        self.assertEqual(self.waits(NOON), [(NOON.day, 2, 0.0, 10.0)])


class NewsTests(SynchronousTestCase):
    """Who waits for more."""

    def test_in_time(self) -> None:
        """After the time there is no news, and who has left is told nothing; others still are."""
        clock = Clock()
        audit = memory_store(self, clock=clock).audit
        patient, leaving, staying = (Deferred.fromCoroutine(audit.news(0, seconds)) for seconds in (2, 9, 9))
        clock.advance(3)
        self.assertEqual(self.successResultOf(patient), ())
        leaving.cancel()
        self.failureResultOf(leaving, CancelledError)
        event = Event("one", "binding.revoked", datetime(2026, 1, 1, tzinfo=UTC), DAEMON)
        self.successResultOf(Deferred.fromCoroutine(audit.append(event)))
        self.assertEqual([record.event for record in self.successResultOf(staying)], [event])


class CallersLeaveTests(SynchronousTestCase):
    """A client that hangs up."""

    def test_kept(self) -> None:
        """What has happened stays on record, also where its caller left while it waited behind another write."""
        pool = UnthreadedPool()
        audit = memory_store(self, threads=lambda *_: pool).audit
        pool.hold()
        first, second = (
            Deferred.fromCoroutine(
                audit.append(Event(id_, "binding.revoked", datetime(2026, 1, 1, tzinfo=UTC), DAEMON))
            )
            for id_ in ("one", "two")
        )
        second.cancel()
        self.failureResultOf(second, CancelledError)
        pool.release()
        self.successResultOf(first)
        records = self.successResultOf(Deferred.fromCoroutine(audit.list(AuditQuery()))).items
        self.assertEqual([record.event.id for record in records], ["two", "one"])


_STATES = st.sampled_from((RunState.RECEIVED, RunState.APPROVED, RunState.EXECUTING, RunState.COMPLETED))
_RUNS = st.sampled_from(("run-0", "run-1", "run-2"))


class _RefusedError(Exception):
    """What a verify raises."""


_REFUSALS = (StateConflict, NotFound, _RefusedError, CancelledError)


class _Callers:
    """Several callers of one store, and what each must find on record."""

    def __init__(self, store: Store, threads: UnthreadedPool) -> None:
        self.store = store
        self.threads = threads
        self.asked: list[tuple[tuple[str, ...], Deferred[object]]] = []

    def receive(self, run_id: str) -> None:
        """Ask to keep a run."""
        # The key makes a second one the same run, for which nothing is recorded.
        run = example_run(run_id, idempotency_key=run_id)
        event = example_event(run_id=run_id)
        first = Transition(run_id, RunState.RECEIVED, RunState.RECEIVED, run.received_at, (event,))

        async def receive() -> bool:
            return (await self.store.runs.receive(run, (first,), PendingLimits()))[1]

        self._ask((event.id,), Deferred.fromCoroutine(receive()))

    def move(self, run_id: str, states: list[RunState], refused: bool) -> None:
        """Ask to move a run along C{states}, in one request."""

        def verify(run: Run, approval: object) -> None:
            if refused:
                raise _RefusedError

        transitions, at = [], example_run().received_at
        for start, end in pairwise(states):
            event = example_event(run_id=run_id)
            transitions.append(Transition(run_id, start, end, at, (event,), verify=verify))
        ids = tuple(transition.events[0].id for transition in transitions)
        self._ask(ids, Deferred.fromCoroutine(self.store.runs.apply(*transitions)))

    def append(self, count: int) -> None:
        """Ask to put so many events on record."""
        events = tuple(example_event() for _ in range(count))
        self._ask(tuple(e.id for e in events), Deferred.fromCoroutine(self.store.audit.append(*events)))

    def commit(self) -> None:
        """Let the writer do one piece of work."""
        if self.threads.todo:
            self.threads.step()

    def give_up(self) -> None:
        """The caller of the newest request stops waiting."""
        if self.asked:
            self.asked[-1][1].cancel()

    def _ask(
        self, ids: tuple[str, ...], asked: Deferred[object] | Deferred[bool] | Deferred[Run] | Deferred[None]
    ) -> None:
        self.asked.append((ids, asked.addErrback(lambda failure: failure.trap(*_REFUSALS))))


_STEPS = st.one_of(
    st.builds(partial, st.just(_Callers.receive), run_id=_RUNS),
    st.builds(
        partial,
        st.just(_Callers.move),
        run_id=_RUNS,
        states=st.lists(_STATES, min_size=2, max_size=4),
        refused=st.booleans(),
    ),
    st.builds(partial, st.just(_Callers.append), count=st.integers(1, 3)),
    st.just(_Callers.commit),
    st.just(_Callers.give_up),
)


class ChainProperties(SynchronousTestCase):
    @settings(deadline=None, max_examples=60)
    @given(st.lists(_STEPS, max_size=30), st.integers(1, 4))
    def test_every_event_once(self, steps: list[Callable[[_Callers], None]], batch: int) -> None:
        """What was answered is on record once, what was refused is not, none by half, and the chain holds."""
        with TemporaryDirectory() as directory:
            threads = UnthreadedPool()
            tuning = Tuning(busy_seconds=0, durable=False, max_batch=batch)
            store = unopened_store(Path(directory, "a.db"), Clock(), lambda *_: threads, tuning)
            self.successResultOf(Deferred.fromCoroutine(store.open()))
            threads.hold()
            callers = _Callers(store, threads)
            for step in steps:
                step(callers)
            threads.release()
            records = self.successResultOf(Deferred.fromCoroutine(store.audit.list(AuditQuery(limit=1000)))).items[::-1]
            self.successResultOf(Deferred.fromCoroutine(store.close()))
        self.assertIsNone(check_chain(records))
        kept = Counter(record.event.id for record in records)
        self.assertLessEqual(set(kept.values()), {1})
        for ids, asked in callers.asked:
            self.check(ids, self.successResultOf(asked), [id_ in kept for id_ in ids])

    def check(self, ids: tuple[str, ...], answer: object, kept: list[bool]) -> None:
        """Whether C{answer} and what was C{kept} of a request agree."""
        if answer is CancelledError:  # it may have been too late to take it back, but never by half
            self.assertIn(set(kept), ({True}, {False}), ids)
        else:
            self.assertEqual(set(kept), {answer not in _REFUSALS and answer is not False}, ids)
