"""Two daemons on one database: an outcome wakes the agent once, wherever the agent asks."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from aileron.features.wake._outcomes import OutcomeService
from aileron.features.wake.values import WakeAnswer
from aileron.store._wakes import SQLWakes
from aileron.testing import seals
from tests.features.wake.case import REST, WakeCase


class SeveralCase(WakeCase):
    """Two services, each of which sees all runs that end."""

    def use(self, audit: Any = None, **settings: Any) -> None:
        self.shared = SQLWakes(self.store._writer, seals())
        super().use(audit, **settings)
        self.one = self.outcomes
        self.other, following = self.started(audit, **settings)
        self.addCleanup(self.other.stop)
        self.addCleanup(following.cancel)

    def ask(self, at: OutcomeService, seconds: float = 0, **more: Any) -> Deferred[WakeAnswer]:
        """The agent's hook asks at a daemon."""
        self.outcomes = at
        return self.next(seconds=seconds, **more)

    def told(self, at: OutcomeService, **more: Any) -> WakeAnswer:
        return self.successResultOf(self.ask(at, **more))


class OnceTests(SeveralCase):
    def test_once(self) -> None:
        """An outcome that both daemons have is given out by one of them."""
        self.end(self.request())
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.told(self.one)), "run-1")
        again = self.told(self.other)
        self.assertEqual((again.outcome, again.waiting), (None, False))
        self.assertEqual(len(self.sent()), 1)

    def test_elsewhere(self) -> None:
        """An agent that asked at one daemon before gets at another what ended meanwhile, and all of it."""
        for number in (1, 2):
            self.request(f"run-{number}")
        first = self.request("run-0")
        waiting = self.ask(self.one, 100)
        self.end(first)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.successResultOf(waiting)), "run-0")
        for run_id in ("run-1", "run-2"):
            self.end(self.request(run_id + "x"))
        self.clock.advance(REST)
        self.assertEqual([self.run_of(self.told(self.other)) for _ in range(2)], ["run-1x", "run-2x"])

    def test_fetched(self) -> None:
        """What the agent fetched at one daemon, before or after the end was noticed there, the other does not tell."""
        first, second = self.request("run-1"), self.request("run-2")
        self.one.outcome_told("session-1", first.id)
        self.end(first)
        self.end(second)
        self.one.outcome_told("session-1", second.id)
        self.clock.advance(REST)
        self.assertIsNone(self.told(self.other).outcome)
        self.assertEqual(self.sent(), [])

    def test_ungated(self) -> None:
        """What an agent is told of other runs is not written for the others."""
        run = self.request(gated=False)
        self.end(run)
        self.one.outcome_told("session-1", run.id)
        self.assertEqual(self.count_rows(), 0)

    def count_rows(self) -> int:
        read = self.store._readers.read(lambda cursor: cursor.execute("SELECT count(*) FROM wakes").fetchone()[0])
        return int(self.successResultOf(read))

    def test_later(self) -> None:
        """Of two requests at two daemons the later one gets it, and the earlier one ends then."""
        run = self.request()
        self.request("run-2")
        earlier = self.ask(self.one, 100)
        later = self.ask(self.other, 100)
        self.end(run)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.successResultOf(later)), "run-1")
        ended = self.successResultOf(earlier)
        self.assertEqual((ended.outcome, ended.waiting), (None, False))

    def test_resumed(self) -> None:
        """An agent is resumed only so often by both together, in the conversation that either was told of."""
        self.use(most_resumes=1)
        self.one.name_conversation("session-1", "talk")
        for run_id in ("run-1", "run-2"):
            self.end(self.request(run_id))
        self.clock.advance(REST)
        first = self.told(self.other, resumes=True)
        self.assertEqual((self.run_of(first), first.conversation, first.resumes_left), ("run-1", "talk", 0))
        second = self.told(self.one, resumes=True)
        self.assertEqual((second.outcome, second.resumes_left), (None, 0))
