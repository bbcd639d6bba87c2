"""Lives of the daemon: what one leaves, the next takes up."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.values import Outcome, Run, RunState, utc

from .kit import OPERATOR, RunnerCase, step


class RestartTests(RunnerCase):
    """Nothing is lost and nothing happens twice."""

    def test_executing(self) -> None:
        """A run that was under way is in doubt: it is not run again, and not called failed."""
        self.unanswered()
        run = self.submit()
        self.approve(run)
        self.restart()
        found = self.now(run)
        assert found.fault is not None
        self.assertEqual((found.state, found.fault.kind), (RunState.UNKNOWN, "outcome_unknown"))
        self.assertEqual(len(self.connector.sendings), 1)
        self.assertEqual(self.events(run)[-1], "execution.unknown")
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

    def test_ungated_not_begun(self) -> None:
        """An ungated run that had not begun is cancelled: nothing was sent, and whoever asked may ask again."""
        self.vault.lock()  # so that nothing can start while the row is made
        run = self.make_received(gated=False)
        self.unlock_anew()
        self.restart()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.CANCELLED, []))
        self.assertNotIn("tamper.detected", self.events(run))

    def test_asked_about_and_ungated(self) -> None:
        """A run that was asked about, and whose row says that it had not to be, is cancelled, and seen on record."""
        for state in ("received", "approved", "awaiting_vault"):
            run = self.submit("gated", {"text": state})
            self.sql("UPDATE runs SET gated = 0, state = ? WHERE id = ?", state, run.id)
            self.restart()
            self.assertEqual((self.state(run), self.connector.sendings), (RunState.CANCELLED, []))
            self.assertEqual(self.events(run)[-2:], ["tamper.detected", "run.cancelled"])

    def test_damaged_row(self) -> None:
        """A pending run whose question is gone keeps nobody from the others, and can be withdrawn."""
        damaged, whole = self.submit(), self.submit("gated", {"text": "other"})
        self.sql("DELETE FROM approvals WHERE run_id = ?", damaged.id)
        self.restart()
        self.approve(whole)
        self.assertIs(self.state(whole), RunState.COMPLETED)
        self.assertIs(self.sync(self.runner.submission.withdraw(damaged.id, OPERATOR, None)).state, RunState.CANCELLED)

    def test_settled_stay(self) -> None:
        """What was settled stays as it is."""
        run = self.submit()
        self.approve(run)
        before = self.now(run)
        self.restart()
        self.assertEqual(self.now(run), before)

    def test_twice(self) -> None:
        """Another restart changes nothing more."""
        self.unanswered()
        run = self.submit()
        self.approve(run)
        self.restart()
        count = len(self.events(run))
        self.restart()
        self.assertEqual(len(self.events(run)), count)

    def test_stop_waits_for_effects(self) -> None:
        """Stopping lets an effect finish and records it."""
        answer = self.unanswered()
        run = self.submit("open")
        stopped = self.later(self.runner.stop(20.0))
        self.assertNoResult(stopped)
        answer.callback(Outcome({"done": True}))
        self.successResultOf(stopped)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def make_received(self, gated: bool) -> Run:
        """A row that was received and nothing more."""
        now = utc(self.clock.seconds())
        action = self.catalogue.current().actions["gated" if gated else "open"]
        run = Run(
            id=self.fresh_id(),
            action=action.name,
            action_version=action.version,
            manifest_digest=action.digest,
            arguments={"text": "hello"},
            state=RunState.RECEIVED,
            gated=gated,
            effect_key=self.fresh_id(),
            received_at=now,
            changed_at=now,
        )
        return self.sync(self.store.runs.receive(run, [], self.limits))[0]
