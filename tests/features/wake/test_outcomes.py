"""Which outcomes are given out, to whom, and how often."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aileron.features.wake._outcomes import MOST_READY, MOST_SESSIONS
from aileron.features.wake.values import describe_outcome
from aileron.model.errors import StoreUnavailable
from aileron.model.runs import RunState
from aileron.testing import example_run
from tests.extent import examples
from tests.features.wake.case import REST, WakeCase


class EndTests(WakeCase):
    """A run ends that nobody asks about."""

    def test_woken_once(self) -> None:
        """A hook that waits gets the outcome after the rest, once, and it is on record before."""
        run = self.request()
        waiting = self.next(seconds=100)
        self.assertNoResult(waiting)
        self.end(run)
        self.assertNoResult(waiting)
        self.assertEqual(self.sent(), [])
        self.clock.advance(REST)
        answer = self.successResultOf(waiting)
        self.assertEqual((self.run_of(answer), answer.waiting), ("run-1", False))
        self.assertEqual(self.sent(), [("run-1", {"state": "completed", "how": "woken"})])
        again = self.answered(seconds=100)
        self.assertEqual((again.outcome, again.waiting), (None, False))

    def test_states(self) -> None:
        """What failed, and what may have happened, wakes too, each in its own words."""
        for number, (state, words) in enumerate(
            (
                (RunState.FAILED, "has failed"),
                (RunState.UNKNOWN, "do not repeat it"),
                (RunState.COMPLETED, "has completed"),
            )
        ):
            self.end(self.request(f"run-{number}"), state)
            self.clock.advance(REST)
            outcome = self.answered().outcome
            assert outcome is not None
            self.assertEqual((outcome.run_id, outcome.state), (f"run-{number}", state))
            self.assertIn(words, outcome.message)

    def test_denied(self) -> None:
        """A denied, expired or cancelled run wakes nobody, and ends the wait."""
        for number, state in enumerate((RunState.DENIED, RunState.EXPIRED, RunState.CANCELLED)):
            run = self.request(f"run-{number}")
            waiting = self.next(seconds=100)
            self.end(run, state)
            answer = self.successResultOf(waiting)
            self.assertEqual((answer.outcome, answer.waiting), (None, False))
            self.clock.advance(REST)
            self.assertIsNone(self.answered().outcome)
        self.assertEqual(self.sent(), [])

    def test_denied_on_wish(self) -> None:
        """They do if the operator says so, and the words say what not to do."""
        self.use(denied=True)
        for number, (state, words) in enumerate(
            (
                (RunState.DENIED, "do not try it again"),
                (RunState.EXPIRED, "nothing was sent"),
                (RunState.CANCELLED, "nothing was sent"),
            )
        ):
            self.end(self.request(f"run-{number}"), state)
            self.clock.advance(REST)
            outcome = self.answered().outcome
            assert outcome is not None
            self.assertIn(words, outcome.message)

    def test_ungated(self) -> None:
        """A run that needed no approval wakes nobody."""
        self.end(self.request(gated=False))
        self.clock.advance(REST)
        self.assertEqual((self.answered().outcome, self.sent()), (None, []))

    def test_before_the_wait(self) -> None:
        """What ended before a hook asked is told as soon as one asks, the oldest first."""
        for run_id in ("run-1", "run-2"):
            self.end(self.request(run_id))
        self.clock.advance(REST)
        first = self.answered()
        self.assertEqual((self.run_of(first), first.waiting), ("run-1", True))
        self.assertEqual(self.run_of(self.answered()), "run-2")

    def test_others(self) -> None:
        """A session is told of its own runs only."""
        self.end(self.request())
        self.clock.advance(REST)
        self.assertIsNone(self.answered("session-2").outcome)
        self.assertEqual(self.run_of(self.answered()), "run-1")

    def test_bounds(self) -> None:
        """Only so many outcomes, and sessions, are kept; the newest stay."""
        for number in range(MOST_READY + 2):
            self.end(self.request(f"run-{number:03}"))
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.answered()), "run-002")
        for number in range(MOST_SESSIONS):
            self.outcomes.outcome_told(f"other-{number}", "run")
        self.assertIsNone(self.answered().outcome)
        self.assertEqual(len(self.outcomes._sessions), MOST_SESSIONS)

    def test_restart(self) -> None:
        """After a restart what ended before wakes nobody, what ends from then on does."""
        late = self.request("run-2")
        self.end(self.request("run-1"))
        self.use()
        self.clock.advance(REST)
        self.assertIsNone(self.answered().outcome)
        self.end(late)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.answered()), "run-2")


class ToldTests(WakeCase):
    """The agent fetches an outcome by itself."""

    def test_before(self) -> None:
        """A waiting call that was answered as the run ended wakes nobody."""
        run = self.request()
        waiting = self.next(seconds=100)
        self.outcomes.outcome_told("session-1", run.id)
        self.end(run)
        self.clock.advance(REST)
        self.assertIsNone(self.successResultOf(waiting).outcome)
        self.assertEqual(self.sent(), [])

    def test_within_the_rest(self) -> None:
        """Nor does an outcome that it fetches soon after, or before a hook asks."""
        for seconds in (REST - 1, REST + 1):
            run = self.request(f"run-{seconds}")
            self.end(run)
            self.clock.advance(seconds)
            self.outcomes.outcome_told("session-1", run.id)
            self.clock.advance(REST)
            answer = self.answered()
            self.assertEqual((answer.outcome, answer.waiting), (None, False))
        self.assertEqual(self.sent(), [])

    @settings(deadline=None, max_examples=examples(60))
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(("request", "end", "deny", "tell", "ask", "pass")),
                st.integers(min_value=0, max_value=4),
            ),
            max_size=30,
        )
    )
    def test_any_order(self, steps: list[tuple[str, int]]) -> None:
        """In any order of events no run wakes twice, and none wakes that was told or denied before."""
        self.setUp()
        open_runs: dict[str, Any] = {}
        silent, woken = set[str](), list[str]()
        for number, (step, which) in enumerate(steps):
            run_id = f"run-{which}"
            if step == "request" and run_id not in open_runs:
                open_runs[run_id] = self.request(run_id)
            elif step in ("end", "deny") and open_runs.get(run_id):
                self.end(open_runs[run_id], RunState.COMPLETED if step == "end" else RunState.DENIED)
                open_runs[run_id] = None
                silent |= {run_id} if step == "deny" else set()
            elif step == "tell":
                self.outcomes.outcome_told("session-1", run_id)
                silent |= {run_id} - set(woken)
            elif step == "ask":
                found = self.run_of(self.answered())
                self.assertNotIn(found, {*woken, *silent}, number)
                woken += [found] if found else []
            else:
                self.clock.advance(which)
        self.assertEqual([run_id for run_id, _ in self.sent()], woken)


class WaitTests(WakeCase):
    """How a hook waits."""

    def test_nothing_pending(self) -> None:
        """Without a run that may still end nothing is waited for."""
        answer = self.answered(seconds=100)
        self.assertEqual((answer.outcome, answer.waiting), (None, False))

    def test_time(self) -> None:
        """A wait that is over says that it is worth waiting again."""
        self.request()
        waiting = self.next(seconds=30)
        self.clock.advance(29)
        self.assertNoResult(waiting)
        self.clock.advance(1)
        self.assertTrue(self.successResultOf(waiting).waiting)

    def test_taken_over(self) -> None:
        """A later request ends an earlier one, which is told to wait no more."""
        run = self.request()
        first, second = self.next(seconds=100), self.next(seconds=100)
        over = self.successResultOf(first)
        self.assertEqual((over.outcome, over.waiting), (None, False))
        self.end(run)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.successResultOf(second)), "run-1")

    def test_session_ends(self) -> None:
        """The end of the session ends the wait, and forgets its outcomes and timers."""
        run = self.request()
        waiting = self.next(seconds=100)
        self.end(run)
        self.outcomes.session_ended("session-1")
        self.outcomes.session_ended("session-1")
        self.assertFalse(self.successResultOf(waiting).waiting)
        self.clock.advance(REST)
        self.assertIsNone(self.answered().outcome)

    def test_hangs_up(self) -> None:
        """A hook that hangs up takes no outcome with it."""
        run = self.request()
        gone = self.next(seconds=100)
        gone.addErrback(lambda _: None)
        gone.cancel()
        self.end(run)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.answered()), "run-1")

    def test_not_recorded(self) -> None:
        """What cannot be recorded wakes nobody, and is kept."""
        audit = Refusing(self.store.audit)
        self.use(audit)
        self.end(self.request())
        self.clock.advance(REST)
        audit.refuses = True
        self.failureResultOf(self.next(), StoreUnavailable)
        audit.refuses = False
        self.assertEqual(self.run_of(self.answered()), "run-1")

    def test_store_away(self) -> None:
        """While the audit log cannot be read, nothing is noticed; later it is."""
        audit = Refusing(self.store.audit)
        audit.reads = False
        self.use(audit)
        self.end(self.request())
        audit.reads = True
        self.clock.advance(REST)
        self.clock.advance(REST)
        self.assertEqual(self.run_of(self.answered()), "run-1")


class Refusing:
    """An audit log that a test can refuse."""

    def __init__(self, audit: Any) -> None:
        self._audit = audit
        self.refuses, self.reads = False, True

    async def append(self, *events: Any) -> None:
        """See L{IAudit}."""
        if self.refuses:
            raise StoreUnavailable("full")
        await self._audit.append(*events)

    async def head(self) -> Any:
        """See L{IAudit}."""
        return await self._audit.head()

    async def news(self, sequence: int, seconds: float) -> Any:
        """See L{IAudit}."""
        if not self.reads:
            raise StoreUnavailable("locked")
        return await self._audit.news(sequence, seconds)


class ResumeTests(WakeCase):
    """The launcher asks after the agent has ended."""

    def test_bounded(self) -> None:
        """An agent is resumed only so often; then nothing is waited for, though hooks are still told."""
        self.use(most_resumes=2)
        for number in range(3):
            self.end(self.request(f"run-{number}"))
        self.request("run-9")
        self.clock.advance(REST)
        first = self.answered(resumes=True, conversation="c-1")
        self.assertEqual((self.run_of(first), first.resumes_left, first.conversation), ("run-0", 1, "c-1"))
        second = self.answered(resumes=True)
        self.assertEqual((self.run_of(second), second.resumes_left, second.conversation), ("run-1", 0, "c-1"))
        third = self.answered(resumes=True, seconds=100)
        self.assertEqual((third.outcome, third.resumes_left), (None, 0))
        self.assertEqual(self.run_of(self.answered()), "run-2")
        self.assertEqual([said["how"] for _, said in self.sent()], ["resumed", "resumed", "woken"])


class MessageTests(WakeCase):
    """What the agent reads."""

    def test_message(self) -> None:
        """It names the run and the action, and nothing that an agent, a service or the operator wrote."""
        run = example_run("01J", state=RunState.COMPLETED, result={"output": "canary"}, reason="canary", title="canary")
        message = describe_outcome(run).message
        self.assertIn("check_action_status with approval_id 01J", message)
        self.assertIn("ship-update", message)
        self.assertNotIn("canary", message)
        self.assertLess(len(message), 250)
