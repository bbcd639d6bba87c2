"""What LLM calls used is kept by day, session and provider, each call once, and never in a caller's way."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from aileron.base.unthreaded import UnthreadedPool
from aileron.model.usage import Usage, UsageSum
from aileron.store import Store
from aileron.store._memories import WRITE_SECONDS
from aileron.testing import example_session, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

TODAY = NOON.date()
SOME, MORE = Usage(100, 20, 50), Usage(7, 3, 0, 140)
BOTH = Usage(107, 23, 50, 140)
ROWS = (
    "SELECT day, session_id, provider, input, output, cached, cost_microdollars, calls FROM llm_usage ORDER BY 1, 2, 3"
)


class UsageCase(DatabaseCase):
    """A store whose clock the test turns."""

    def setUp(self) -> None:
        """At noon, nothing noted."""
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = self.opened()
        self.usage = self.store.usage

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, self.clock, self.path, lambda *_: self.threads)

    def of(self, *session_ids: str) -> dict[str, UsageSum]:
        """The sums of these sessions."""
        return dict(self.do(self.usage.of_sessions(session_ids)))

    def daily(self, since: date = TODAY) -> dict[date, UsageSum]:
        """The sums of the days from that one on."""
        return dict(self.do(self.usage.daily(since)))


class SumsTests(UsageCase):
    """What is told of it."""

    def test_sums(self) -> None:
        """Calls add up by session, whatever the provider, and by day, with those of no session."""
        self.usage.note("openai", "a", SOME)
        self.usage.note("openrouter", "a", MORE)
        self.usage.note("openai", "b", None)
        self.usage.note("openai", None, SOME)
        self.assertEqual(self.of("a", "b", "c"), {"a": UsageSum(BOTH, 2), "b": UsageSum(Usage(), 1)})
        self.assertEqual(self.daily(), {TODAY: UsageSum(Usage(207, 43, 100, 140), 4)})

    def test_no_session(self) -> None:
        """Calls of no session count for their day, and for no session."""
        self.usage.note("openai", None, SOME)
        self.assertEqual((self.of("a"), self.of()), ({}, {}))
        self.assertEqual(self.daily(), {TODAY: UsageSum(SOME, 1)})

    def test_added(self) -> None:
        """What is written later is added to what is there, a cost to none and none to a cost too."""
        for usage in (SOME, MORE, SOME, None):
            self.usage.note("openai", "a", usage)
            self.of("a")
        self.assertEqual(self.of("a"), {"a": UsageSum(Usage(207, 43, 100, 140), 4)})
        self.assertEqual(self.query(ROWS), [(f"{TODAY}", "a", "openai", 207, 43, 100, 140, 4)])

    def test_untold_cost(self) -> None:
        """A cost that nobody told is none, and one of nothing that was told is nothing."""
        self.usage.note("openai", "a", SOME)
        self.usage.note("openrouter", "b", Usage(cost_microdollars=0))
        costs = {name: used.usage.cost_microdollars for name, used in self.of("a", "b").items()}
        self.assertEqual(costs, {"a": None, "b": 0})

    def test_days(self) -> None:
        """A call counts for the day in UTC on which it was noted, however late it is written; older days are left."""
        self.usage.note("openai", "a", SOME)
        tomorrow = TODAY + timedelta(days=1)
        midnight = datetime.combine(tomorrow, time(), UTC).timestamp()
        self.clock.rightNow = midnight - 0.001
        self.usage.note("openai", "a", SOME)
        self.clock.rightNow = midnight
        self.usage.note("openai", "a", MORE)
        twice = UsageSum(Usage(200, 40, 100), 2)
        self.assertEqual(self.daily(), {TODAY: twice, tomorrow: UsageSum(MORE, 1)})
        self.assertEqual(self.daily(tomorrow), {tomorrow: UsageSum(MORE, 1)})
        self.assertEqual(self.of("a"), {"a": UsageSum(Usage(207, 43, 100, 140), 3)})

    def test_forgotten(self) -> None:
        """The usage of a session that is forgotten goes with it; that of others stays."""
        self.do(self.store.sessions.open(example_session("a"), bytes(32), bytes(range(32)), ()))
        self.usage.note("openai", "a", SOME)
        self.usage.note("openai", "b", MORE)
        self.of("a")
        self.query("DELETE FROM sessions WHERE id = 'a'")
        self.assertEqual(self.of("a", "b"), {"b": UsageSum(MORE, 1)})


class WritingTests(UsageCase):
    """When it is written, and how often."""

    def test_later(self) -> None:
        """Nothing is written when a call is noted; all is within ten seconds, in one commit, and once."""
        self.usage.note("openai", "a", SOME)
        self.usage.note("openai", "b", SOME)
        self.clock.advance(WRITE_SECONDS - 0.1)
        self.assertEqual(self.query(ROWS), [])
        self.threads.hold()
        self.clock.advance(0.1)
        self.assertEqual(len(self.threads.todo), 1)
        self.threads.release()
        self.clock.advance(10 * WRITE_SECONDS)
        self.assertEqual(
            [row[1:] for row in self.query(ROWS)], [(each, "openai", 100, 20, 50, None, 1) for each in "ab"]
        )

    def test_another_life(self) -> None:
        """What was noted before the store is closed is there in its next life."""
        self.usage.note("openai", "a", SOME)
        self.do(self.store.close())
        self.usage = self.opened().usage
        self.assertEqual(self.of("a"), {"a": UsageSum(SOME, 1)})

    def test_crash(self) -> None:
        """A life that ends without closing loses what was noted since the last write, and nothing else."""
        self.usage.note("openai", "a", SOME)
        self.clock.advance(WRITE_SECONDS)
        self.usage.note("openai", "a", MORE)
        self.usage = self.opened().usage
        self.assertEqual(self.of("a"), {"a": UsageSum(SOME, 1)})

    def test_refused(self) -> None:
        """What the database refuses is written once as soon as it takes it; meanwhile the older sums are told."""
        self.usage.note("openai", "a", SOME)
        self.of("a")
        with self.locked():
            self.usage.note("openai", "a", MORE)
            self.clock.pump([WRITE_SECONDS] * 3)
            self.usage.note("openai", "b", SOME)
            self.assertEqual(self.of("a", "b"), {"a": UsageSum(SOME, 1)})
        self.clock.pump([WRITE_SECONDS] * 3)
        self.assertEqual(
            [row[1:] for row in self.query(ROWS)],
            [("a", "openai", 107, 23, 50, 140, 2), ("b", "openai", 100, 20, 50, None, 1)],
        )

    def test_reader_leaves(self) -> None:
        """Who stops waiting for sums takes back nothing of what is being written for them."""
        self.usage.note("openai", "a", SOME)
        self.threads.hold()
        reading = Deferred.fromCoroutine(self.usage.of_sessions(["a"]))
        reading.cancel()
        self.failureResultOf(reading, CancelledError)
        self.threads.release()
        self.assertEqual(self.of("a"), {"a": UsageSum(SOME, 1)})

    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.sampled_from(["note", "wait", "read", "refuse", "restart"]), max_size=30))
    def test_once(self, steps: list[str]) -> None:
        """Whatever happens between, with orderly ends every call is counted exactly once."""
        self.path, self.threads = Path(self.mktemp()), UnthreadedPool()
        store, noted = self.opened(), 0
        for step in (*steps, "restart"):
            match step:
                case "note":
                    store.usage.note("openai", "a", Usage(1, 0, 0, 1))
                    noted += 1
                case "wait":
                    self.clock.advance(WRITE_SECONDS)
                case "read":
                    self.do(store.usage.daily(TODAY))
                case "refuse":
                    with self.locked():
                        self.clock.advance(WRITE_SECONDS)
                case "restart":
                    self.do(store.close())
                    store = self.opened()
        expected = {"a": UsageSum(Usage(noted, 0, 0, noted), noted)} if noted else {}
        self.assertEqual(dict(self.do(store.usage.of_sessions(["a"]))), expected)
