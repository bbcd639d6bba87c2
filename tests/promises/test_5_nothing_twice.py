"""5. Nothing runs twice, and nothing is called failed that may have happened."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.model.connectors import Outcome
from aileron.model.errors import Conflict
from aileron.model.runs import Run
from tests.runner.kit import step

from .case import NEVER_SENT, NO_ANSWER, OPERATOR, REFUSED, Killed, PromiseCase

_POINTS = {"opened": 0, "spent": 0, "executing": 0, "answered": 1}
"""Where a life ends, and how much was sent by then."""


class DoubtTests(PromiseCase):
    """What may have happened is in doubt until somebody knows."""

    def test_killed(self) -> None:
        """Wherever the process ends between beginning and end, the run is in doubt and is not done again."""
        for point, sent in _POINTS.items():
            before = self.sent
            self.die_at(point)
            run = self.submit()
            yes = self.yes(run)
            self.later(self.runner.decisions.decide(run.id, yes)).addErrback(lambda failure: failure.trap(Killed))
            self.flushLoggedErrors(Killed)
            for _ in range(2):
                self.restart()
                self.clock.advance(60)
            self.assertEqual((self.state(run), self.sent - before), ("unknown", sent), point)

    def test_no_answer(self) -> None:
        """A write that was sent and not answered as declared is in doubt, and is not tried again."""
        self.connector.script.append(NO_ANSWER)
        run = self.submit("open")
        self.clock.pump([1.0] * 30)
        self.assertEqual((self.state(run), self.sent), ("unknown", 1))

    def test_broken_connector(self) -> None:
        """So is one whose connector raised what it must not."""
        self.connector.script.append(ValueError("a bug"))
        run = self.submit("open")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual((self.state(run), self.sent), ("unknown", 1))

    def test_stopped(self) -> None:
        """So is one that the daemon could not wait for when it stopped."""
        self.unanswered()
        run = self.submit("open")
        self.stop_late(20.0)
        self.assertEqual((self.state(run), self.sent), ("unknown", 1))

    def test_refused(self) -> None:
        """What the service says did not happen has failed, with its reason, and is not in doubt."""
        self.connector.script.append(REFUSED)
        run = self.submit("open")
        fault = self.fault(run)
        self.assertEqual((self.state(run), self.sent), ("failed", 1))
        self.assertEqual((fault.kind, fault.message, fault.details["retried"]), ("external_api_error", "Reset.", 0))

    def test_doubt_stays(self) -> None:
        """An attempt in doubt is not made certain by a later one that was refused."""
        self.offer("open", step("put"), gated=False)
        self.connector.script.extend([NO_ANSWER, REFUSED])
        run = self.submit("open")
        self.clock.pump([1.0] * 30)
        self.assertEqual((self.state(run), self.sent), ("unknown", 2))

    def test_settled(self) -> None:
        """A person says what came of it, once; nothing is sent by that, and no life begins it again."""
        for sent, (happened, end) in enumerate(((True, "completed"), (False, "failed")), 1):
            self.connector.script.append(NO_ANSWER)
            run = self.submit()
            self.approve(run)
            self.sync(self.runner.reconciliation.settle(run.id, happened, "seen", OPERATOR))
            self.fails(self.runner.reconciliation.settle(run.id, not happened, "", OPERATOR), Conflict)
            self.assertEqual(self.events(run)[-1], "run.settled")
            self.restart()
            self.assertEqual((self.state(run), self.sent), (end, sent))

    def test_only_doubt_is_settled(self) -> None:
        """What has ended stays as it ended, and what has not begun is not settled."""
        ended, waiting = self.submit("open"), self.submit()
        for run in (ended, waiting):
            self.fails(self.runner.reconciliation.settle(run.id, False, "", OPERATOR), Conflict)
        self.assertEqual((self.state(ended), self.state(waiting)), ("completed", "pending_approval"))

    def test_settled_and_put_back(self) -> None:
        """A run in doubt that is called approved again is not begun by its old decision."""
        run = self.held()
        self.set_state(run, "executing")
        self.restart()
        self.set_state(run)
        self.forge_record(run, self.shown(run).digest)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))


class OnceTests(PromiseCase):
    """One effect a run."""

    def again(self, operation: str, *answers: Outcome) -> Run:
        """A run whose step met these answers, and then a good one."""
        self.offer("open", step(operation), gated=False)
        self.connector.script.extend(answers)
        run = self.submit("open")
        self.clock.pump([1.0] * 30)
        return run

    def test_idempotent(self) -> None:
        """What may be repeated is tried again, and each attempt carries the same effect key."""
        run = self.again("put", NO_ANSWER, NO_ANSWER)
        self.assertEqual((self.state(run), self.sent), ("completed", 3))
        self.assertEqual({sending.effect_key for sending in self.connector.sendings}, {f"{run.effect_key}.only"})

    def test_never_sent(self) -> None:
        """What never left may be tried again, whatever it is."""
        run = self.again("post", NEVER_SENT)
        self.assertEqual((self.state(run), self.sent), ("completed", 2))

    def test_narrowed(self) -> None:
        """An action may say of a step that it must not be repeated."""
        once = step("put").replace("[[execute]]", "[[execute]]\nidempotent = false")
        self.offer("open", once, gated=False)
        self.connector.script.append(NO_ANSWER)
        run = self.submit("open")
        self.clock.pump([1.0] * 30)
        self.assertEqual((self.state(run), self.sent), ("unknown", 1))

    def test_attempts_end(self) -> None:
        """A service that is never there is not asked for ever."""
        run = self.again("post", *[NEVER_SENT] * 10)
        self.assertEqual((self.state(run), self.sent), ("failed", 4))

    def test_steps(self) -> None:
        """A run of several steps that failed in one says which were done, and the next does not begin."""
        self.offer("open", step("put", "one"), step("post", "two"), step("put", "three"), gated=False)
        self.connector.script.extend([self.connector.usual, REFUSED])
        run = self.submit("open")
        fault = self.fault(run)
        self.assertEqual((self.state(run), self.sent, fault.details["steps_done"]), ("failed", 2, ["one"]))

    def test_under_way(self) -> None:
        """A run that is under way can neither be taken back nor decided again."""
        answer: Deferred[Outcome] = self.unanswered()
        run = self.submit()
        yes = self.yes(run)
        self.sync(self.runner.decisions.decide(run.id, yes))
        self.fails(self.runner.decisions.decide(run.id, yes), Conflict)
        self.fails(self.runner.submission.withdraw(run.id, OPERATOR, None), Conflict)
        answer.callback(self.connector.usual)
        self.assertEqual((self.state(run), self.sent), ("completed", 1))

    def test_taken_back_while_it_begins(self) -> None:
        """A run that is called cancelled at the moment when it would begin does not begin."""
        run = self.held()
        self.when("before runs.apply executing", lambda: self.set_state(run, "cancelled"))
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("cancelled", 0))

    def test_start_twice(self) -> None:
        """A life that looks again and again begins an approved run once."""
        run = self.held()
        self.restart()
        for _ in range(3):
            self.runner.check_changes()
            self.clock.advance(1.0)
        self.assertEqual((self.state(run), self.sent), ("completed", 1))
