"""An approved run can be put off, and taken back until it begins."""

from __future__ import annotations

from datetime import datetime, timedelta

from twisted.internet.defer import Deferred

from aileron.errors import Conflict, InvalidRequest
from aileron.runner.decisions import APPROVAL_HOLDS
from aileron.values import Approval, Decision, Run, RunState, VaultState, utc

from .kit import AGENT, OPERATOR, manifest, step
from .test_decisions import DecidedCase


class UndoCase(DecidedCase):
    """An action whose runs can be taken back for a minute."""

    def setUp(self) -> None:
        """The manifest, and a clock that nobody sets."""
        self.jumps = 0.0
        super().setUp()
        self.write("gated", manifest("gated", step("post"), expires="undo_seconds = 60"))
        self.offer("plain", step("post"))

    def monotonic(self) -> float:
        """The kit's clock, but for what a test has set it by."""
        return self.clock.seconds() - self.jumps

    def set_clock(self, seconds: float) -> None:
        """Set the wall clock forward or back, and let timers notice."""
        self.jumps += seconds
        if seconds > 0:
            self.clock.advance(seconds)
        else:
            self.clock.rightNow += seconds

    def in_seconds(self, seconds: float) -> datetime:
        """A moment from now."""
        return utc(self.clock.seconds() + seconds)

    def put_off(self, run: Run, seconds: float) -> Approval:
        """Approve a run for later."""
        shown = self.shown(run)
        decision = Decision(True, shown.digest, OPERATOR.id, not_before=self.in_seconds(seconds))
        return self.sync(self.runner.decisions.decide(run.id, decision))

    def nothing_sent(self, run: Run, state: RunState = RunState.APPROVED) -> None:
        """Assert that the run stands there and nothing has left."""
        self.assertEqual((self.state(run), self.connector.sendings), (state, []))


class UndoTests(UndoCase):
    """The seconds of C{undo_seconds}."""

    def test_clock_was_ahead(self) -> None:
        """What was asked anew while the clock was ahead, and approved when it is right, waits for its window alone."""
        run = self.submit("gated")
        self.set_clock(86_400)
        self.approve(run)
        self.write("gated", manifest("gated", step("post"), expires="undo_seconds = 30"))
        self.clock.advance(60)
        self.nothing_sent(run, RunState.PENDING)
        self.set_clock(-86_400)
        self.approve(run)
        self.clock.advance(29)
        self.nothing_sent(run)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_waits(self) -> None:
        """An approved run begins when its undo window is over, and not before."""
        run = self.submit()
        decided = self.approve(run)
        self.assertEqual((decided.not_before, decided.run.start_after), (self.in_seconds(60),) * 2)
        self.clock.advance(59.9)
        self.nothing_sent(run)
        self.clock.advance(0.1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_taken_back(self) -> None:
        """Until then it is cancelled by who asked, and nothing ever leaves."""
        run = self.submit()
        self.approve(run)
        self.sync(self.runner.submission.withdraw(run.id, AGENT, "a typo"))
        self.clock.advance(100_000)
        self.nothing_sent(run, RunState.CANCELLED)

    def test_too_late(self) -> None:
        """What began cannot be taken back."""
        run = self.submit()
        self.approve(run)
        self.clock.advance(60)
        self.fails(self.runner.submission.withdraw(run.id, AGENT, None), Conflict)

    def test_restart(self) -> None:
        """A restart waits for what is left of it, and then goes on."""
        run = self.submit()
        self.approve(run)
        self.clock.advance(30)
        self.next_life()
        self.clock.advance(29)
        self.nothing_sent(run)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_set_forward(self) -> None:
        """A clock that is set forward takes nothing from the window."""
        run = self.submit()
        self.approve(run)
        self.clock.advance(10)
        self.set_clock(3600)
        self.nothing_sent(run)
        self.clock.advance(49)
        self.nothing_sent(run)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_set_back(self) -> None:
        """A clock that is set back makes it wait longer, never less."""
        run = self.submit()
        self.approve(run)
        self.set_clock(-30)
        self.clock.advance(89)
        self.nothing_sent(run)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_locked_meanwhile(self) -> None:
        """It stays approved while the vault is locked, and waits for the vault when its time has come."""
        run = self.submit()
        self.approve(run)
        self.vault.lock()
        self.nothing_sent(run)
        self.clock.advance(60)
        self.nothing_sent(run, RunState.AWAITING_VAULT)
        self.unlock_anew(VaultState.UNLOCKED)
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_denied(self) -> None:
        """A denial has no window."""
        run = self.submit()
        self.assertIsNone(self.approve(run, approved=False).not_before)

    def test_cancel_at_every_moment(self) -> None:
        """Taken back while the alarm rings, it is cancelled and nothing leaves, or done; never both, never twice."""
        ends = set()
        for turn in range(12):
            sent = len(self.connector.sendings)
            run = self.submit("gated", {"text": f"number {turn} of many"})
            self.approve(run)
            self.pool.hold()
            self.clock.advance(60)
            taken: Deferred[Run] | None = None
            for moment in range(40):
                if moment == turn:
                    taken = self.later(self.runner.submission.withdraw(run.id, AGENT, None))
                if self.pool.todo:
                    self.pool.step()
            self.pool.release()
            assert taken is not None
            taken.addErrback(lambda failure: failure.trap(Conflict))
            done = len(self.connector.sendings) - sent
            self.assertEqual({RunState.CANCELLED: 0, RunState.COMPLETED: 1}[self.state(run)], done)
            ends.add(self.state(run))
        self.assertEqual(ends, {RunState.CANCELLED, RunState.COMPLETED})


class ScheduleTests(UndoCase):
    """C{not_before} of a decision."""

    def test_later(self) -> None:
        """It begins at the later of both times, however long that is, and its approval holds until a day after."""
        run = self.submit()
        decided = self.put_off(run, 200_000)
        self.assertEqual(decided.not_after, self.in_seconds(200_000) + APPROVAL_HOLDS)
        self.clock.pump([3600.0] * 55)
        self.nothing_sent(run)
        self.clock.pump([3600.0])
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_sooner(self) -> None:
        """The undo window stands whatever the operator asks for."""
        run = self.submit()
        self.put_off(run, 10)
        self.clock.advance(59)
        self.nothing_sent(run)

    def test_past(self) -> None:
        """A moment that has passed puts nothing off."""
        run = self.submit("plain")
        self.assertIsNone(self.put_off(run, -10).not_before)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_too_far(self) -> None:
        """More than thirty days ahead is refused, and decides nothing."""
        run = self.submit()
        shown = self.shown(run)
        decision = Decision(True, shown.digest, OPERATOR.id, not_before=self.in_seconds(30 * 86_400 + 1))
        self.fails(self.runner.decisions.decide(run.id, decision), InvalidRequest)
        self.nothing_sent(run, RunState.PENDING)

    def test_changed_meanwhile(self) -> None:
        """What is no longer what was approved when its time comes is asked anew, without a time."""
        run = self.submit()
        self.put_off(run, 7200)
        self.write("gated", manifest("gated", step("post"), body="Says another thing."))
        self.clock.pump([3600.0] * 2)
        self.nothing_sent(run, RunState.PENDING)
        self.assertIsNone(self.now(run).start_after)

    def test_set_forward(self) -> None:
        """A moment is the wall clock's: where that is set forward beyond it, it has come."""
        run = self.submit("plain")
        self.put_off(run, 7200)
        self.set_clock(3600)
        self.nothing_sent(run)
        self.set_clock(3600)
        self.assertIs(self.state(run), RunState.COMPLETED)


class ForgedTests(UndoCase):
    """Rows that another program wrote."""

    def forge(self, run: Run, *statements: str) -> None:
        """Write into the rows of a run while the daemon is down, and start it."""
        self.sync(self.runner.stop(1.0))
        for statement in statements:
            self.sql(statement, run.id)
        self.restart()

    def test_start_after(self) -> None:
        """Without its C{start_after} a run begins no sooner: the decision's mark says when."""
        run = self.submit()
        self.put_off(run, 3000)
        self.forge(run, "UPDATE runs SET start_after = NULL WHERE id = ?")
        self.clock.advance(2999)
        self.nothing_sent(run)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_not_before(self) -> None:
        """Nor without the decision's own time, which is then no decision."""
        run = self.submit()
        self.put_off(run, 3000)
        self.forge(
            run,
            "UPDATE runs SET start_after = NULL WHERE id = ?",
            "UPDATE approvals SET not_before = NULL WHERE run_id = ?",
        )
        self.nothing_sent(run, RunState.PENDING)
        self.assertEqual(self.found(run), ["The mark under the decision on record does not hold."])

    def test_taken_back_for_good(self) -> None:
        """What was taken back stays so when its row is put back, days later and at its time."""
        run = self.submit()
        self.put_off(run, 10 * 86_400)
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.clock.advance(5 * 86_400)
        self.forge(run, "UPDATE runs SET state = 'approved' WHERE id = ?")
        self.clock.pump([3600.0] * 24 * 5)
        self.nothing_sent(run, RunState.PENDING)

    def test_outdated_alone(self) -> None:
        """The vault alone remembers it for as long as the decision would have held."""
        run = self.submit()
        decided = self.put_off(run, 10 * 86_400)
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.clock.advance(10 * 86_400 + 1)
        self.assertTrue(self.runner._recovery._decisions._is_outdated(run, decided))

    def test_asked_again(self) -> None:
        """A decision after that is dated when it was taken."""
        run = self.submit()
        self.put_off(run, 3000)
        self.write("gated", manifest("gated", step("post"), body="Says another thing."))
        self.clock.advance(3000)
        self.assertIs(self.state(run), RunState.PENDING)
        decided = self.approve(run)
        assert decided.decided_at is not None
        self.assertLess(decided.decided_at - self.in_seconds(0), timedelta(seconds=1))
        self.assertIs(self.state(run), RunState.COMPLETED)
