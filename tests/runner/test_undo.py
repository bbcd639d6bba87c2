"""An approved run can be put off, and taken back until it begins."""

from __future__ import annotations

from datetime import datetime

from aileron.base.json import utc
from aileron.model.errors import Conflict, InvalidRequest
from aileron.model.runs import Approval, Decision, Run, RunState
from aileron.model.vault import VaultState
from aileron.runner.decisions import APPROVAL_HOLDS

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
        """An approved run begins when its undo window is over, and not before; a restart waits for what is left.

        A denial has no window.
        """
        run, taken, denied = (self.submit("gated", {"text": text}) for text in ("hello", "taken back", "denied"))
        self.assertIsNone(self.approve(denied, approved=False).not_before)
        decided = self.approve(run)
        self.assertEqual((decided.not_before, decided.run.start_after), (self.in_seconds(60),) * 2)
        self.approve(taken)
        self.sync(self.runner.submission.withdraw(taken.id, AGENT, "a typo"))
        self.clock.advance(30)
        self.next_life()
        self.clock.advance(29.9)
        self.nothing_sent(run)
        self.clock.advance(0.1)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.fails(self.runner.submission.withdraw(run.id, AGENT, None), Conflict)
        self.clock.advance(100_000)
        self.assertEqual((self.state(taken), len(self.connector.sendings)), (RunState.CANCELLED, 1))

    def test_clock_set(self) -> None:
        """A clock that is set forward takes nothing from the window; one that is set back makes it wait longer."""
        for jump, left in ((3600, 50), (-30, 80)):
            self.setUp()
            run = self.submit()
            self.approve(run)
            self.clock.advance(10)
            self.set_clock(jump)
            self.clock.advance(left - 1)
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


class ScheduleTests(UndoCase):
    """C{not_before} of a decision."""

    def test_later(self) -> None:
        """It begins at the later of both times, however long that is, and its approval holds until a day after.

        The undo window stands whatever the operator asks for; a moment that has passed puts nothing off.
        """
        run, soon, plain = self.submit(), self.submit("gated", {"text": "soon"}), self.submit("plain")
        self.assertIsNone(self.put_off(plain, -10).not_before)
        self.assertIs(self.state(plain), RunState.COMPLETED)
        self.put_off(soon, 10)
        decided = self.put_off(run, 200_000)
        self.assertEqual(decided.not_after, self.in_seconds(200_000) + APPROVAL_HOLDS)
        self.clock.advance(59)
        self.assertIs(self.state(soon), RunState.APPROVED)
        self.clock.pump([3600.0] * 55)
        self.assertEqual((self.state(soon), self.state(run)), (RunState.COMPLETED, RunState.APPROVED))
        self.clock.pump([3600.0])
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

    def test_times(self) -> None:
        """Without its C{start_after} a run begins no sooner; without the decision's own time there is no decision."""
        run = self.submit()
        self.put_off(run, 3000)
        self.forge(run, "UPDATE runs SET start_after = NULL WHERE id = ?")
        self.clock.advance(2999)
        self.nothing_sent(run)
        self.forge(run, "UPDATE approvals SET not_before = NULL WHERE run_id = ?")
        self.nothing_sent(run, RunState.PENDING)
        self.assertEqual(self.found(run), ["The signature of the recorded decision is invalid."])

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
