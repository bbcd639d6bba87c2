"""Answers that come after their time was up."""

from __future__ import annotations

from typing import cast

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import JSON
from aileron.base.waiting import Interrupted
from aileron.model.connectors import Finding, Outcome
from aileron.model.faults import Fault
from aileron.model.runs import Run, RunState
from aileron.runner.outcomes import LATE_SECONDS

from .kit import step
from .test_reconciling import DoubtCase

_REFUSED = Outcome(fault=Fault("external_api_error", "no such channel", "external"))
_BROKEN = Outcome(fault=Fault("external_api_error", "502", "external"), classified=False, status=502)
_DONE = Outcome({"ts": "9"})
_OVER = Fault("resource_limit_exceeded", "time is up", "runtime")


class LateCase(DoubtCase):
    """An action that is not answered in its time."""

    def setUp(self) -> None:
        """Nobody has answered yet."""
        super().setUp()
        self.answer: Deferred[Outcome] = Deferred()

    def overdue(
        self, action: str = "open", *before: Outcome, key: str = "hello", answer: Deferred[Outcome] | None = None
    ) -> Run:
        """A run whose answer did not come within the operation's thirty seconds."""
        self.answer = Deferred() if answer is None else answer
        self.connector.script.extend([*before, self.answer])
        run = self.submit(action, {"text": key})
        if run.state is RunState.PENDING:
            self.approve(run)
        self.clock.advance(29.9)
        self.assertIs(self.state(run), RunState.EXECUTING)
        self.clock.advance(0.1)
        found = self.now(run)
        self.assertIs(found.state, RunState.UNKNOWN)
        return found


class LateTests(LateCase):
    """What comes of them."""

    def test_table(self) -> None:
        """What is done or refused, as declared, settles the run; anything else is only recorded.

        The connector is given its own time, and a minute more in which only the answer may come.
        """
        for outcome, state, happened, attempt in (
            (_DONE, RunState.COMPLETED, True, "succeeded"),
            (_REFUSED, RunState.FAILED, False, "failed"),
            (_BROKEN, RunState.UNKNOWN, None, "unknown"),
        ):
            for action in ("open", "gated"):
                run = self.overdue(action)
                sending = self.connector.sendings[-1]
                self.assertEqual((sending.seconds, sending.late_seconds), (30.0, LATE_SECONDS))
                self.assertEqual(self.fault(run).kind, "resource_limit_exceeded")
                self.clock.advance(59.0)
                self.answer.callback(outcome)
                (event,) = self.record(run, "execution.late_answer")
                self.assertEqual((self.state(run), event.payload["happened"]), (state, happened))
                _, attempts = self.sync(self.runner.submission.history(run.id))
                self.assertEqual([row.state for row in attempts], [attempt])

    def test_told(self) -> None:
        """A run that was answered late has its result or its fault, and the event that ended it, as any other.

        That the answer held the credential is on record as well.
        """
        run = self.overdue()
        self.answer.callback(evolve(_DONE, notes={"echoed": ["plain"]}))
        found = self.now(run)
        self.assertEqual(found.result, {"output": {"ts": "9"}, "steps": {"only": {"ts": "9"}}})
        self.assertEqual((found.fault, found.audit_id), (None, self.record(run, "execution.late_answer")[0].id))
        self.assertEqual(self.events(run)[-2:], ["secret.echoed", "execution.late_answer"])
        run = self.overdue()
        self.answer.callback(_REFUSED)
        self.assertEqual((self.fault(run).message, self.fault(run).details["step"]), ("no such channel", "only"))

    def test_silence(self) -> None:
        """Where nothing comes for a minute more, or a connector breaks its contract, nothing is recorded."""
        run, broken = self.overdue(), self.answer
        other = self.overdue()
        broken.errback(ZeroDivisionError())
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.clock.pump([1.0] * 61)
        self.assertTrue(self.answer.called)
        for each in (run, other):
            self.assertEqual((self.state(each), self.record(each, "execution.late_answer")), (RunState.UNKNOWN, []))

    def test_echo_in_silence(self) -> None:
        """Where nothing was answered, but the credential came back meanwhile, that is on record; the doubt remains."""
        run = self.overdue()
        self.answer.callback(Outcome(fault=_OVER, classified=False, notes={"echoed": ["plain"]}))
        self.assertEqual(self.events(run)[-2:], ["secret.echoed", "execution.late_answer"])
        self.assertIs(self.state(run), RunState.UNKNOWN)

    def test_nothing_done(self) -> None:
        """A connector that has no answer by then, and says that nothing was done, settles the run by that."""
        for outcome in (Outcome(fault=_OVER), Outcome(fault=_OVER, sent=False, classified=False)):
            run = self.overdue()
            self.answer.callback(outcome)
            (event,) = self.record(run, "execution.late_answer")
            self.assertEqual((self.state(run), event.payload["happened"]), (RunState.FAILED, False))

    def test_answered_before_it_is_found(self) -> None:
        """What was answered is not looked for."""
        self.overdue("sent")
        self.answer.callback(_DONE)
        self.clock.pump([1.0] * 400)
        self.assertEqual(self.connector.looks, [])

    def test_earlier_attempt_in_doubt(self) -> None:
        """A late refusal of a second attempt says nothing of the first one, which may have happened; a success does."""
        self.offer("open", step("put"), gated=False)
        lost = evolve(_BROKEN, fault=Fault("external_api_error", "reset", "external", retriable=True))
        for outcome, state in ((_REFUSED, RunState.UNKNOWN), (_DONE, RunState.COMPLETED)):
            self.answer = Deferred()
            self.connector.script.extend([lost, self.answer])
            run = self.submit("open")
            self.clock.pump([1.0, 30.0])
            self.answer.callback(outcome)
            self.assertIs(self.state(run), state)

    def test_several_steps(self) -> None:
        """The last step settles the run; an earlier one is noted, and the rest is not begun."""
        run = self.overdue("second", Outcome({"a": 1}))
        self.answer.callback(_DONE)
        self.assertEqual(self.now(run).result, {"output": {"ts": "9"}, "steps": {"one": {"a": 1}, "two": {"ts": "9"}}})
        run = self.overdue("first")
        self.answer.callback(_DONE)
        found = self.now(run)
        assert found.fault is not None
        self.assertIs(found.state, RunState.UNKNOWN)
        self.assertEqual(found.fault.details["found"], {"step": "one", "happened": True})
        self.assertEqual([row.step_id for row in self.sync(self.runner.submission.history(run.id))[0]], ["one"])
        self.assertEqual(self.connector.script, [])

    def test_shorter_times(self) -> None:
        """The time of the action, or the operation's, bounds the wait where that is shorter."""
        operations = self.connector.description.operations
        quick = {**operations, "put": evolve(operations["put"], timeout_seconds=5.0)}
        self.connector.description = evolve(self.connector.description, operations=quick)
        self.offer("short", step("post"), gated=False, top="timeout_seconds = 5")
        self.offer("quick", step("put"), gated=False)
        for action in ("short", "quick"):
            self.answer = self.unanswered()
            run = self.submit(action)
            self.clock.advance(5.0)
            self.assertIs(self.state(run), RunState.UNKNOWN)
            self.answer.callback(_DONE)
            self.assertIs(self.state(run), RunState.COMPLETED)

    def test_no_time_left(self) -> None:
        """A step that would begin when the action's time is over is not sent, and the run says so."""
        steps = (step("post", "one"), step("post", "two"))
        self.offer("short", *steps, gated=False, top="timeout_seconds = 5")
        self.connector.script.append(self.answer)
        run = self.submit("short")
        self.pool.hold()
        self.answer.callback(_DONE)
        self.clock.advance(5.0)
        self.pool.release()
        found = self.now(run)
        assert found.fault is not None
        self.assertEqual((found.state, len(self.connector.sendings)), (RunState.FAILED, 1))
        self.assertEqual(found.fault.details["steps_done"], ["one"])


class NotThereYetTests(LateCase):
    """Looks for what is still listened for."""

    def test_not_settled(self) -> None:
        """That it is not there settles nothing while its answer may come, and does when nobody listens any more."""
        self.connector.findings.extend([Finding(False)] * 2)
        run = self.overdue("sent")
        self.clock.advance(2.0)
        self.assertIs(self.state(run), RunState.UNKNOWN)
        (event,) = self.record(run)
        self.assertIsNone(event.payload["happened"])
        self.answer.callback(_BROKEN)
        self.clock.advance(8.0)
        self.assertIs(self.state(run), RunState.FAILED)

    def test_happens_after_the_look(self) -> None:
        """A call that is done after it was looked for in vain is not called failed."""
        self.connector.findings.append(Finding(False))
        run = self.overdue("sent")
        self.clock.advance(2.0)
        self.answer.callback(_DONE)
        self.assertIs(self.state(run), RunState.COMPLETED)


class CrowdTests(LateCase):
    """How many listen, and for how long at most."""

    def test_oldest_dropped(self) -> None:
        """At most 64 are listened for; beyond that the oldest is dropped."""
        answers = [Deferred[Outcome]() for _ in range(65)]
        self.connector.script.extend(answers)
        runs = [self.submit("open", session=f"session-{number // 20}") for number in range(65)]
        self.clock.advance(30.0)
        self.assertEqual([answer.called for answer in answers], [True] + [False] * 64)
        answers[1].callback(_DONE)
        self.assertIs(self.now(runs[0]).state, RunState.UNKNOWN)
        self.assertIs(self.now(runs[1]).state, RunState.COMPLETED)

    def test_interrupted(self) -> None:
        """What a connector tells of a call that is cancelled is recorded with its attempt."""
        api: dict[str, JSON] = {"requests": 3}
        self.connector.script.append(Deferred(lambda asked: asked.errback(Interrupted({"api": api}))))
        run = self.submit("open")
        stopped = self.later(self.runner.stop(1.0))
        self.clock.advance(1.0)
        self.successResultOf(stopped)
        (attempt,) = cast("list[dict[str, JSON]]", self.record(run, "execution.unknown")[0].payload["attempts"])
        self.assertEqual((self.state(run), attempt["api"]), (RunState.UNKNOWN, api))

    def test_echo_before_it_is_dropped(self) -> None:
        """That the credential came back is on record as well where the answer is not waited for to its end."""
        for end in ("hold", "stop"):
            run = self.overdue(answer=Deferred(lambda asked: asked.errback(Interrupted({"echoed": ["plain"]}))))
            self.sync(self.runner.limits.hold() if end == "hold" else self.runner.stop(20.0))
            self.restart()
            self.assertEqual(self.events(run)[-2:], ["secret.echoed", "execution.late_answer"])
            self.assertIs(self.state(run), RunState.UNKNOWN)

    def test_stop_and_hold(self) -> None:
        """Neither a stop nor a lock waits for late answers: the connections are dropped at once."""
        for end in ("hold", "stop"):
            run = self.overdue()
            self.sync(self.runner.limits.hold() if end == "hold" else self.runner.stop(20.0))
            self.assertTrue(self.answer.called)
            self.assertIs(self.state(run), RunState.UNKNOWN)
            self.restart()

    def test_overdue_while_held(self) -> None:
        """What is overdue once the vault is about to be locked is not listened for at all."""
        self.connector.script.append(self.answer)
        run = self.submit("open")
        held = self.later(self.runner.limits.hold())
        self.assertNoResult(held)
        self.clock.advance(30.0)
        self.successResultOf(held)
        self.assertEqual((self.answer.called, self.state(run)), (True, RunState.UNKNOWN))

    def test_stop_before_the_doubt_is_written(self) -> None:
        """Where the doubt cannot be written, a stop drops the connection all the same."""
        self.connector.script.append(self.answer)
        self.submit("open")
        self.pool.hold()
        self.clock.advance(30.0)
        stopped = self.later(self.runner.stop(1.0))
        self.clock.advance(1.0)
        self.assertTrue(self.answer.called)
        self.pool.release()
        self.clock.pump([1.0] * 6)
        self.successResultOf(stopped)

    def test_before_the_doubt_is_written(self) -> None:
        """An answer that comes while the doubt is being written settles it right after."""
        self.connector.script.append(self.answer)
        run = self.submit("open")
        self.pool.hold()
        self.clock.advance(30.0)
        self.answer.callback(_DONE)
        self.pool.release()
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(self.events(run)[-2:], ["execution.unknown", "execution.late_answer"])
