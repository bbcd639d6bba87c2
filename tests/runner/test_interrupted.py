"""Callers that leave, a database that refuses, a daemon that stops: at the worst moment."""

from __future__ import annotations

from datetime import timedelta

from twisted.internet.defer import CancelledError, Deferred

from aileron.model.connectors import Outcome
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import RunQuery
from aileron.model.runs import Decision, Run, RunState
from aileron.model.vault import VaultState

from .kit import OPERATOR, RunnerCase, manifest, step


class TroubledCase(RunnerCase):
    """Ways to make trouble."""

    def approve_up_to_the_start(self, run: Run) -> None:
        """Approve, and hold what follows from it."""
        decision = self.yes(run)
        self.pool.hold()
        deciding = self.later(self.runner.decisions.decide(run.id, decision))
        self.step_until_writing()
        self.pool.step()
        self.successResultOf(deciding)

    def approve_but_refuse_the_start(self, run: Run) -> None:
        """Approve, and refuse what follows from it."""
        self.approve_up_to_the_start(run)
        self.refuse()
        self.pool.release()

    def leave(self, waiting: Deferred[object]) -> None:
        """Cancel a call whose write is under way, and then let the write be done."""
        waiting.cancel()
        self.pool.release()
        self.failureResultOf(waiting, CancelledError)

    def step_until_writing(self) -> None:
        """Do all that is only read, up to the first write."""
        while not self.store._writer._writing:
            self.pool.step()


class CallersLeaveTests(TroubledCase):
    """A client that hangs up ends its wait and nothing else."""

    def test_withdrawal(self) -> None:
        """Who waits for a run is told of its withdrawal, also if whoever withdrew it has gone."""
        run = self.submit()
        waiting = self.later(self.runner.submission.wait(run.id, 60.0))
        self.pool.hold()
        withdrawing: Deferred[object] = self.later(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.step_until_writing()
        self.leave(withdrawing)
        self.assertIs(self.successResultOf(waiting).state, RunState.CANCELLED)

    def test_begun(self) -> None:
        """What was committed goes on: a run begins, one expires as its action says, an action is off."""
        self.offer("gated", step("post"), expires='expires_after = "1h"')
        for action in ("open", "gated"):
            call = self.call(action)
            self.pool.hold()
            self.leave(self.later(self.runner.submission.submit(call)))
        self.assertEqual(len(self.connector.sendings), 1)
        self.clock.advance(3600.0)
        self.assertEqual(self.sync(self.runner.decisions.pending("session-1")), 0)
        self.pool.hold()
        self.leave(self.later(self.runner.trust.set_enabled("open", False, OPERATOR)))
        self.assertFalse(self.runner.submission.offering().offers["open"].enabled)


class DatabaseRefusesTests(TroubledCase):
    """Nothing is left where it stood because the disk was full for a moment."""

    def test_approved_run_begins_later(self) -> None:
        """A run whose start could not be committed starts when it can be, in the same life."""
        run = self.submit()
        self.approve_but_refuse_the_start(run)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.relent()
        self.clock.advance(1.0)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_withdrawn_meanwhile(self) -> None:
        """Who waits for an approved run that cannot begin is told at once when it is withdrawn."""
        run = self.submit()
        self.approve_but_refuse_the_start(run)
        waiting = self.later(self.runner.submission.wait(run.id, 60.0))
        self.relent()
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.assertIs(self.successResultOf(waiting).state, RunState.CANCELLED)
        late = self.later(self.runner.submission.wait(run.id, 60.0))
        self.assertIs(self.successResultOf(late).state, RunState.CANCELLED)
        self.clock.advance(1.0)
        self.assertEqual(self.connector.sendings, [])

    def test_between_steps(self) -> None:
        """A run of several steps goes on when the end of one can be written."""
        self.offer("open", step("post", "one"), step("post", "two"), gated=False)
        first: Deferred[Outcome] = Deferred()
        self.connector.script.append(first)
        run = self.submit("open")
        self.refuse()
        first.callback(Outcome({"done": True}))
        self.assertEqual(len(self.connector.sendings), 1)
        self.relent()
        self.clock.advance(1.0)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 2)

    def test_expiry(self) -> None:
        """A wait that is over ends as soon as that can be written."""
        self.offer("gated", step("post"), expires='expires_after = "1h"')
        run = self.submit()
        self.refuse()
        self.clock.advance(3600.0)
        self.assertIs(self.state(run), RunState.PENDING)
        self.relent()
        self.clock.advance(5.0)
        self.assertIs(self.state(run), RunState.EXPIRED)

    def test_looking(self) -> None:
        """What waits can be looked at while nothing can be written; what has changed is marked."""
        changed, same = self.submit(), self.submit("gated", {"text": "other"}, session="session-2")
        self.offer("other", step("post"))
        untouched = self.submit("other")
        self.write("gated", manifest("gated", step("put")))
        self.refuse()
        self.addCleanup(self.relent)
        page = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertEqual([each.run.id for each in page], [changed.id, same.id, untouched.id])
        self.assertEqual([bool(each.stale) for each in page], [True, True, False])
        one = self.shown(changed)
        self.assertIn("cannot be updated", one.stale or "")
        self.fails(self.runner.decisions.decide(changed.id, Decision(True, one.digest, OPERATOR.id)), StoreUnavailable)

    def test_stop(self) -> None:
        """A daemon whose database refuses for good stops all the same."""
        self.unanswered()
        run = self.submit("open")
        self.refuse()
        self.addCleanup(self.relent)
        stopped = self.later(self.runner.stop(20.0))
        self.clock.pump([20.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        self.successResultOf(stopped)
        self.assertIs(self.state(run), RunState.EXECUTING)


class LostVaultTests(TroubledCase):
    """Somebody moves the vault's file away, and back."""

    def met(self) -> Run:
        """A run that was approved and met the file's absence."""
        self.runner.check_changes()
        run = self.submit()
        self.approve_up_to_the_start(run)
        self.vault._state = VaultState.LOST
        self.pool.release()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.AWAITING_VAULT, []))
        return run

    def test_goes_on(self) -> None:
        """It goes on once, in the same life, when the file is there again, whether or not a look met its absence."""
        for looks in (0, 1):
            run, sent = self.met(), len(self.connector.sendings)
            for _ in range(looks):
                self.runner.check_changes()
            self.vault._state = VaultState.UNLOCKED
            self.assertIs(self.state(run), RunState.AWAITING_VAULT)
            self.runner.check_changes()
            self.runner.check_changes()
            self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, sent + 1))
            self.connector.sendings.clear()

    def test_compared_later(self) -> None:
        """Where it cannot be told at that look whether something was put back, a later one tells, and goes on."""
        run = self.met()
        self.runner.check_changes()
        self.vault._state = VaultState.UNLOCKED
        self.control.seal(10_000, "sha256:of another record")
        self.refuse()
        self.runner.check_changes()
        self.relent()
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.PENDING)


class AskedAnewTests(TroubledCase):
    """An approved run that goes back to be asked about."""

    def test_expires(self) -> None:
        """It waits as long as its action says, from then on, and then ends."""
        self.offer("gated", step("post"), expires='expires_after = "1h"')
        run = self.submit()
        self.clock.advance(3000.0)
        self.approve_up_to_the_start(run)
        self.write("gated", manifest("gated", step("put"), expires='expires_after = "1h"'))
        self.pool.release()
        asked = self.shown(run)
        self.assertEqual(asked.expires_at, asked.requested_at + timedelta(hours=1))
        self.clock.advance(3599.0)
        self.assertIs(self.state(run), RunState.PENDING)
        self.clock.advance(1.0)
        self.assertIs(self.state(run), RunState.EXPIRED)

    def test_many_look(self) -> None:
        """However many look at a changed approval at once, it is asked anew once."""
        run = self.submit()
        self.write("gated", manifest("gated", step("put")))
        self.pool.hold()
        looks = [self.later(self.runner.decisions.approval(run.id)) for _ in range(5)]
        self.pool.release()
        shown = {self.successResultOf(look).digest for look in looks}
        self.assertEqual(len(shown), 1)
        self.assertEqual(self.events(run), ["approval.requested", "approval.stale"])


class StopsTests(TroubledCase):
    """What comes while the daemon stops, or the vault is about to be locked."""

    def test_refused(self) -> None:
        """An ungated call that comes while the daemon stops is refused, and nothing is kept of it."""
        self.sync(self.runner.stop(20.0))
        self.fails(self.runner.submission.submit(self.call("open")), StoreUnavailable)
        self.assertEqual((self.connector.sendings, self.sync(self.store.runs.unfinished())), ([], ()))

    def test_in_flight(self) -> None:
        """Who holds or stops waits for a call whose commit is under way: no effect begins after the answer."""
        for sent, end in enumerate(("hold", "stop"), 1):
            call = self.call("open")
            self.pool.hold()
            submitting = self.later(self.runner.submission.submit(call))
            ended = self.later(self.runner.limits.hold() if end == "hold" else self.runner.stop(20.0))
            self.assertNoResult(ended)
            self.pool.release()
            self.successResultOf(ended)
            self.assertEqual(len(self.connector.sendings), sent)
            self.assertIs(self.now(self.successResultOf(submitting)).state, RunState.COMPLETED)
            self.restart()


class RestartTests(RunnerCase):
    """Nothing is lost and nothing happens twice."""

    def test_executing(self) -> None:
        """A run that was under way is in doubt, which is told once: it is not run again, and not called failed."""
        self.unanswered()
        run = self.submit()
        self.approve(run)
        for _ in range(2):
            self.restart()
        self.assertEqual((self.state(run), self.fault(run).kind), (RunState.UNKNOWN, "outcome_unknown"))
        self.assertEqual(len(self.connector.sendings), 1)
        self.assertEqual(self.events(run)[-2:], ["execution.started", "execution.unknown"])
        _, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([attempt.state for attempt in attempts], ["unknown"])

    def test_done_steps_are_told(self) -> None:
        """Of several steps the record says which were done."""
        self.offer("open", step("post", "one"), step("post", "two"), gated=False)
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.extend([Outcome(), answer])
        run = self.submit("open")
        self.restart()
        fault = self.fault(run)
        self.assertEqual(fault.details["steps_done"], ["one"])

    def test_damaged_row(self) -> None:
        """A pending run whose question is gone keeps nobody from the others, and can be withdrawn."""
        damaged, whole = self.submit(), self.submit("gated", {"text": "other"})
        self.sql("DELETE FROM approvals WHERE run_id = ?", damaged.id)
        self.restart()
        self.approve(whole)
        self.assertIs(self.state(whole), RunState.COMPLETED)
        self.assertIs(self.sync(self.runner.submission.withdraw(damaged.id, OPERATOR, None)).state, RunState.CANCELLED)

    def test_stop_waits_for_effects(self) -> None:
        """Stopping lets an effect finish and records it."""
        answer = self.unanswered()
        run = self.submit("open")
        stopped = self.later(self.runner.stop(20.0))
        self.assertNoResult(stopped)
        answer.callback(Outcome({"done": True}))
        self.successResultOf(stopped)
        self.assertIs(self.state(run), RunState.COMPLETED)
