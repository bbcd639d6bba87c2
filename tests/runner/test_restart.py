"""Lives of the daemon: what one leaves, the next takes up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from twisted.internet.defer import Deferred

from aileron.audit import check_chain
from aileron.values import AuditQuery, Decision, Outcome, Run, RunState, utc

from .kit import OPERATOR, RunnerCase, manifest, step


class _Killed(BaseException):
    """Stands for the end of the process: nothing after it is run."""


class RestartTests(RunnerCase):
    """Nothing is lost and nothing happens twice."""

    def test_pending(self) -> None:
        """A pending approval is there after a restart, with the same digest, and a late decision runs."""
        run = self.submit()
        digest = self.sync(self.runner.decisions.approval(run.id)).digest
        self.restart()
        self.decide(run, digest)
        self.assertIs(self.now(run).state, RunState.COMPLETED)

    def test_approved(self) -> None:
        """A decision that was confirmed runs after a restart, if it had not begun."""
        run = self.submit()
        self.leave(run, RunState.APPROVED)
        self.restart()
        self.assertIs(self.now(run).state, RunState.COMPLETED)
        self.assertEqual(list(self.connector.effects().values()), [1])

    def test_approved_too_long_ago(self) -> None:
        """After 24 hours an approved run that had not started asks again."""
        run = self.submit()
        self.leave(run, RunState.APPROVED)
        self.clock.advance(24 * 3600.0 + 1)
        self.restart()
        self.assertIs(self.now(run).state, RunState.PENDING)
        self.assertIn("24 hours", self.sync(self.runner.decisions.approval(run.id)).stale or "")
        self.approve(run)
        self.assertIs(self.now(run).state, RunState.COMPLETED)

    def test_approved_but_changed(self) -> None:
        """An approved run whose action changed while the daemon was down asks again."""
        run = self.submit()
        self.leave(run, RunState.APPROVED)
        self.write("gated", manifest("gated", step("put")))
        self.restart()
        self.assertEqual((self.now(run).state, self.connector.sendings), (RunState.PENDING, []))

    def test_executing(self) -> None:
        """A run that was under way is in doubt: it is not run again, and not called failed."""
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
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
        self.write("open", manifest("open", step("post", "one"), step("post", "two"), gated=False))
        self.runner.look()
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.extend([Outcome(), answer])
        run = self.submit("open")
        self.restart()
        fault = self.now(run).fault
        assert fault is not None
        self.assertEqual(fault.details["steps_done"], ["one"])

    def test_ungated_not_begun(self) -> None:
        """An ungated run that had not begun is cancelled: nothing was sent, and whoever asked may ask again."""
        self.vault.lock()  # so that nothing can start while the row is made
        run = self.make_received(gated=False)
        self.unlock_anew()
        self.restart()
        self.assertEqual((self.now(run).state, self.connector.sendings), (RunState.CANCELLED, []))
        self.assertNotIn("tamper.detected", self.events(run))

    def test_asked_about_and_ungated(self) -> None:
        """A run that was asked about, and whose row says that it had not to be, is cancelled, and seen on record."""
        for state in ("received", "approved", "awaiting_vault"):
            run = self.submit("gated", {"text": state})
            with sqlite3.connect(self.database) as database:
                database.execute("UPDATE runs SET gated = 0, state = ? WHERE id = ?", (state, run.id))
            database.close()
            self.restart()
            self.assertEqual((self.now(run).state, self.connector.sendings), (RunState.CANCELLED, []))
            self.assertEqual(self.events(run)[-2:], ["tamper.detected", "run.cancelled"])

    def test_damaged_row(self) -> None:
        """A pending run whose question is gone keeps nobody from the others, and can be withdrawn."""
        damaged, whole = self.submit(), self.submit("gated", {"text": "other"})
        with sqlite3.connect(self.database) as database:
            database.execute("DELETE FROM approvals WHERE run_id = ?", (damaged.id,))
        database.close()
        self.restart()
        self.approve(whole)
        self.assertIs(self.now(whole).state, RunState.COMPLETED)
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
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
        run = self.submit()
        self.approve(run)
        self.restart()
        count = len(self.events(run))
        self.restart()
        self.assertEqual(len(self.events(run)), count)

    def test_stop_waits_for_effects(self) -> None:
        """Stopping lets an effect finish and records it."""
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
        run = self.submit("open")
        stopped = self.later(self.runner.stop(20.0))
        self.assertNoResult(stopped)
        answer.callback(Outcome({"done": True}))
        self.successResultOf(stopped)
        self.assertIs(self.now(run).state, RunState.COMPLETED)

    def test_stop_records_what_it_cannot_wait_for(self) -> None:
        """An effect that does not end in time is dropped and recorded as in doubt."""
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
        run = self.submit("open")
        stopped = self.later(self.runner.stop(20.0))
        self.clock.advance(20.0)
        self.successResultOf(stopped)
        self.assertIs(self.now(run).state, RunState.UNKNOWN)

    def test_killed_at_each_point(self) -> None:
        """Wherever the process ends, no effect happens twice and none is called failed or lost."""
        for point in ("opened", "spent", "executing", "answered"):
            self.runner = self.build(self.killer(point))
            self.sync(self.runner.start())
            before = len(self.connector.sendings)
            run = self.submit()
            shown = self.sync(self.runner.decisions.approval(run.id))
            with_kill = self.later(self.runner.decisions.decide(run.id, self.yes(shown.digest)))
            with_kill.addErrback(lambda failure: failure.trap(_Killed))
            self.flushLoggedErrors(_Killed)
            self.restart()
            sent = len(self.connector.sendings) - before
            self.assertEqual(sent, 1 if point == "answered" else 0)
            self.assertIs(self.now(run).state, RunState.UNKNOWN)

    def killer(self, point: str) -> Callable[[str], None]:
        """A probe that ends the life at C{point}."""

        def probe(reached: str) -> None:
            if reached == point:
                raise _Killed

        return probe

    def yes(self, digest: str) -> Decision:
        """An approval."""
        return Decision(True, digest, "operator-1")

    def leave(self, run: Run, state: RunState) -> None:
        """Put the row where a crash right after the decision's commit would leave it."""
        self.sync(self.runner.stop(1.0))
        self.approve(run)
        self.assertIs(self.now(run).state, state)

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


class StoreTroubleTests(RunnerCase):
    """The database refuses for a while."""

    def test_end_is_written_when_it_can_be(self) -> None:
        """An effect that was answered while the disk was full is recorded as soon as there is room."""
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
        run = self.submit("open")
        self.store_refuses(True)
        answer.callback(Outcome({"done": True}))
        self.assertIs(self.now(run).state, RunState.EXECUTING)
        self.store_refuses(False)
        self.clock.advance(1.0)
        self.assertIs(self.now(run).state, RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 1)

    def store_refuses(self, refuses: bool) -> None:
        """Hold, or give back, the database's write lock from outside."""
        if refuses:
            self.other = sqlite3.connect(self.database, isolation_level=None)
            self.other.execute("BEGIN IMMEDIATE")
        else:
            self.other.execute("ROLLBACK")
            self.other.close()


class ChainTests(RunnerCase):
    """The record of all this."""

    def test_sound(self) -> None:
        """Whatever runs did, the chain of the record holds."""
        for index in range(4):
            run = self.submit("gated", {"text": f"number {index}"})
            self.approve(run, approved=index % 2 == 0)
            self.submit("open")
        records = self.sync(self.store.audit.list(AuditQuery(limit=500))).items
        self.assertGreater(len(records), 12)
        self.assertIsNone(check_chain(tuple(reversed(records))))
