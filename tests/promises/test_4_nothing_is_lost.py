"""4. Nothing is lost: what was asked and what was decided outlives every end of the daemon."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.errors import Conflict, StoreUnavailable
from aileron.model.queries import RunQuery
from aileron.model.runs import Approval, Run, RunState

from .case import Killed, PromiseCase


class KeptTests(PromiseCase):
    """Durable before it is confirmed."""

    def test_asked(self) -> None:
        """A call that was answered is there in the next life, as it was asked."""
        run = self.submit("gated", {"text": "mine"})
        self.restart()
        self.assertEqual(self.now(run), run)

    def test_late_decision(self) -> None:
        """An approval that waited through ends of the daemon is the same, and a late yes is done."""
        run = self.submit()
        yes = self.yes(run)
        for _ in range(3):
            self.clock.advance(86_400 * 10)
            self.restart()
        self.sync(self.runner.decisions.decide(run.id, yes))
        self.assertEqual((self.state(run), self.sent), ("completed", 1))

    def test_decided(self) -> None:
        """A yes that was confirmed is done by the next life."""
        run = self.held()
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("completed", 1))

    def test_confirmed_late(self) -> None:
        """Neither a call nor a decision is answered before it is in the database."""
        call = self.call()
        self.pool.hold()
        asked = self.later(self.runner.submission.submit(call))
        self.assertNoResult(asked)
        self.pool.release()
        run: Run = self.successResultOf(asked)
        yes = self.yes(run)
        self.pool.hold()
        decided = self.later(self.runner.decisions.decide(run.id, yes))
        self.pool.step()
        self.assertNoResult(decided)
        self.pool.release()
        self.successResultOf(decided)

    def test_refused(self) -> None:
        """What cannot be kept is not confirmed, and nothing of it is done."""
        run = self.submit()
        yes = self.yes(run)
        self.refuse()
        self.fails(self.runner.submission.submit(self.call()), StoreUnavailable)
        self.fails(self.runner.submission.submit(self.call("open")), StoreUnavailable)
        self.fails(self.runner.decisions.decide(run.id, yes), StoreUnavailable)
        self.relent()
        self.flushLoggedErrors(StoreUnavailable)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))
        self.sync(self.runner.decisions.decide(run.id, yes))
        self.assertEqual(self.state(run), "completed")

    def test_caller_leaves(self) -> None:
        """Who asked, or who decided, may go: the run does not."""
        call = self.call()
        self.pool.hold()
        asked = self.later(self.runner.submission.submit(call))
        asked.addErrback(lambda failure: None)
        asked.cancel()
        self.pool.release()
        (approval,) = self.pending()
        yes = self.yes(approval)
        self.pool.hold()
        decided = self.later(self.runner.decisions.decide(approval.id, yes))
        decided.addErrback(lambda failure: None)
        decided.cancel()
        self.pool.release()
        self.assertEqual((self.state(approval), self.sent), ("completed", 1))

    def pending(self) -> list[Run]:
        """What waits for a decision."""
        return [approval.run for approval in self.sync(self.runner.decisions.approvals(RunQuery())).items]

    def test_waits_for_the_vault(self) -> None:
        """What was approved and met a locked vault is done once it is open."""
        run = self.approved_and_locked()
        self.restart()
        self.assertEqual(self.state(run), "awaiting_vault")
        self.unlock_anew()
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("completed", 1))

    def test_end_is_written(self) -> None:
        """An effect that was answered while the database refused is on record as soon as it does not."""
        answer = self.unanswered()
        run = self.submit("open")
        self.refuse()
        answer.callback(self.connector.usual)
        self.relent()
        self.clock.advance(1.0)
        self.assertEqual((self.state(run), self.sent), ("completed", 1))
        self.flushLoggedErrors(StoreUnavailable)

    def test_key(self) -> None:
        """A call that is asked again under its key is the same run: waiting, ended, and in the next life."""
        asked = self.submit(key="g")
        self.assertEqual(self.submit(key="g").id, asked.id)
        self.approve(asked)
        again = self.submit(key="g")
        self.assertEqual((again.id, again.state, self.sent), (asked.id, "completed", 1))
        run = self.submit("open", key="k")
        self.restart()
        self.assertEqual((self.submit("open", key="k").id, self.sent), (run.id, 2))
        self.fails(self.runner.submission.submit(self.call("open", {"text": "other"}, "k")), Conflict)

    def test_key_twice_at_once(self) -> None:
        """Two calls under one key that come at the same moment are one run."""
        call = self.call("open", key="k")
        self.pool.hold()
        told = [self.later(self.runner.submission.submit(call)) for _ in range(2)]
        self.pool.release()
        self.assertEqual(len({self.successResultOf(each).id for each in told}), 1)
        self.assertEqual(self.sent, 1)

    def test_confirmed_against_denied(self) -> None:
        """A yes that was confirmed is not undone by a no that came at the same moment and was refused."""
        for steps in range(6):
            run = self.submit()
            yes = self.yes(run)
            self.pool.hold()
            told = [self.later(self.runner.decisions.decide(run.id, yes))]
            for _ in range(steps):
                if self.pool.todo:
                    self.pool.step()
            self.clock.advance(1.0)
            told.append(self.later(self.runner.decisions.decide(run.id, evolve(yes, approved=False))))
            while self.pool.todo:
                self.pool.todo.rotate(1)  # who reads may be faster than who writes
                self.pool.step()
            self.pool.release()
            ends = [self.outcome(each) for each in told]
            self.assertIn((*ends, self.state(run)), ((True, False, "completed"), (False, True, "denied")))
            self.assertNotIn("tamper.detected", self.events(run))
            self.clock.advance(3600.0)  # so that what was denied may be asked again

    def outcome(self, decided: Deferred[Approval]) -> bool:
        """Whether a decision was confirmed."""
        told: list[Any] = []
        decided.addBoth(told.append)
        return isinstance(told[0], Approval)

    def test_waiter(self) -> None:
        """Who waits for a run is told of its end, whenever it comes."""
        run = self.submit()
        waiter = self.later(self.runner.submission.wait(run.id, 1e9))
        self.assertNoResult(waiter)
        self.approve(run)
        self.assertEqual(self.successResultOf(waiter).state.value, "completed")

    def test_not_begun(self) -> None:
        """An ungated call that was kept and had not begun is told to whoever asked: nothing was sent."""
        known = self.submit("open")
        kept = evolve(known, id=self.fresh_id(), effect_key=self.fresh_id(), state=RunState.RECEIVED)
        run, _ = self.sync(self.store.runs.receive(kept, [], self.limits))
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("cancelled", 1))
        self.assertNotIn("tamper.detected", self.events(run))

    def test_killed_before_it_begins(self) -> None:
        """A life that ends between the decision and the effect leaves the effect to the next."""
        run = self.submit()
        yes = self.yes(run)

        def die() -> None:
            raise Killed

        self.when("before runs.apply executing", die)
        self.restart()
        self.later(self.runner.decisions.decide(run.id, yes)).addErrback(lambda failure: failure.trap(Killed))
        self.flushLoggedErrors(Killed)
        self.assertEqual((self.state(run), self.sent), ("approved", 0))
        self.store = self.open_store()
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("completed", 1))
