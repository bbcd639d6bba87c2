"""A row is no decision: what another program writes into the database lets nothing run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from attrs import evolve

from aileron.base.json import utc
from aileron.model.audit import Event
from aileron.model.connectors import Outcome
from aileron.model.errors import ApprovalStale
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState
from aileron.model.vault import VaultState
from aileron.runner.decisions import APPROVAL_HOLDS, Decisions, GrantCheck, UndoWindow
from aileron.runner.runs import EventFactory
from aileron.runner.tasks import Timers

from .kit import OPERATOR, RunnerCase, manifest, step

_SET = "UPDATE approvals SET {} WHERE run_id = ?"
_of_run = EventFactory.of_run
_COPIED = "approved, decided_at, decided_by, not_before, not_after, decision_mark"


def _unnamed(*args: Any, decision_digest: object = None, **payload: Any) -> Event:
    """As events of decisions were, before they named them."""
    return _of_run(*args, **payload)


class DecidedCase(RunnerCase):
    """Ways to write into the database from outside, and to look at what came of it."""

    def found(self, run: Run) -> list[str]:
        """What was found of a run that somebody tampered with."""
        page = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, type="tamper.detected")))
        return [str(record.event.payload["found"]) for record in page.items]

    def refused(self, run: Run, *found: str) -> None:
        """Assert that in a new life the run is asked about anew, C{found} is on record, and nothing is sent."""
        sent = len(self.connector.sendings)
        self.restart()
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertEqual(len(self.connector.sendings), sent)
        self.assertEqual(self.found(run), list(found))
        shown = self.shown(run)
        self.assertEqual((shown.approved, shown.mark), (None, None))

    def given_way(self, run: Run) -> None:
        """Assert that it is asked about anew likewise, since its decision gave way.

        Where the record tells of the decision last, a crash may have come before the record: it is no tampering by
        itself.  Who altered the record is found out by its chain.
        """
        self.refused(run)
        self.assertEqual(self.events(run)[-1], "approval.stale")

    def others(self) -> Decisions:
        """Decisions as another life checks them."""
        events = EventFactory(self.clock, self.fresh_id)
        undo = UndoWindow(Timers(self.clock), events, self.monotonic)
        return Decisions(self.control, self.store.audit, events, undo, GrantCheck(self.grants, events))


class ForgedTests(DecidedCase):
    """Rows that no operator wrote."""

    def test_gated_flag(self) -> None:
        """A run that was called ungated is not begun without a decision, in this life or the next."""
        run = self.submit()
        self.sql("UPDATE runs SET gated = 0, state = 'awaiting_vault' WHERE id = ?", run.id)
        self.sync(self.runner._recovery.resume())
        self.assertEqual((self.state(run), self.found(run)), (RunState.PENDING, ["No decision is recorded."]))
        self.set_state(run)
        self.restart()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.CANCELLED, []))

    def test_approval_removed(self) -> None:
        """A run whose approval was removed is asked about anew."""
        run = self.held()
        self.sql("DELETE FROM approvals WHERE run_id = ?", run.id)
        self.refused(run, "No decision is recorded.")
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_given_up_unwritten(self) -> None:
        """What was given up while the vault could not be written counts no more in this life all the same."""
        run = self.held()
        approval = self.shown(run)
        decisions = self.others()
        decisions.check(run, approval)
        self.control.full = True
        self.sync(decisions.give_up(run))
        self.assertRaises(ApprovalStale, decisions.check, run, approval)

    def test_another_in_the_transaction(self) -> None:
        """Only the decision that will be used up, for what will leave, starts it: no other does, however sound."""
        run = self.held()
        approval = self.shown(run)
        decisions = self.others()
        decisions.verification(approval.digest, approval.mark)(approval.run, approval)
        for digest, mark in ((approval.digest, b"another"), ("sha256:another", approval.mark)):
            verify = decisions.verification(digest, mark)
            self.assertRaises(ApprovalStale, verify, approval.run, approval)

    def test_on_record(self) -> None:
        """A decision stays on record for the digest that it names, and one that was taken back stays so, for good."""
        run = self.held()
        approval, decisions = self.shown(run), self.others()
        found = [self.sync(decisions.is_recorded(run, evolve(approval, digest="sha256:another")))]
        for since in ((), ("approval.stale",)):
            self.append(run, *since, *["secret.echoed"] * 1001)
            found.append(self.sync(decisions.is_recorded(run, approval)))
        self.assertEqual(found, [False, True, False])

    def append(self, run: Run, *types: str) -> None:
        """Put events of a run on record."""
        now = utc(self.clock.seconds())
        self.sync(self.store.audit.append(*(Event(self.fresh_id(), each, now, OPERATOR, {}, run.id) for each in types)))


class UnderWayTests(DecidedCase):
    """A row that is changed while its run is carried out."""

    def test_end(self) -> None:
        """What came of it is on record all the same, though its row was changed, which lets nothing run, or removed."""
        for action, removed in (("gated", False), ("gated", True), ("open", True)):
            answer, sent = self.unanswered(), len(self.connector.sendings)
            run = self.submit(action, {"text": f"{action} {removed}"})
            if action == "gated":
                self.approve(run)
            self.set_state(run)
            for table in ("approvals", "run_steps", "run_attempts") if removed else ():
                self.sql(f"DELETE FROM {table} WHERE run_id = ?", run.id)
            if removed:
                self.sql("DELETE FROM runs WHERE id = ?", run.id)
            answer.callback(Outcome({"done": True}))
            self.assertEqual(self.events(run)[-3:], ["execution.started", "tamper.detected", "execution.succeeded"])
            self.restart()
            self.assertEqual(len(self.connector.sendings), sent + 1)
            if not removed:
                self.assertIs(self.state(run), RunState.PENDING)


class UsedTests(DecidedCase):
    """A decision is good for one use."""

    def put_back_row(self, run: Run, row: list[tuple[object, ...]]) -> None:
        """Put back what C{row} was, and call the run approved."""
        self.set_state(run)
        self.sql(f"UPDATE approvals SET (digest, {_COPIED}) = (?, ?, ?, ?, ?, ?, ?) WHERE run_id = ?", *row[0], run.id)

    def row(self, run: Run) -> list[tuple[object, ...]]:
        """The decision as it stands."""
        return self.sql(f"SELECT digest, {_COPIED} FROM approvals WHERE run_id = ?", run.id)

    def test_withdrawn_while_locked(self) -> None:
        """What was withdrawn while its decision could not be used up is on record as such, and does not run either."""
        run = self.approved_and_locked()
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.unlock_anew()
        self.set_state(run, "awaiting_vault")
        self.restart()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))
        self.assertEqual(self.found(run), ["The audit log has no such decision, or has something after it."])

    def test_asked_anew(self) -> None:
        """A decision that gave way to another question does not come back when its row does."""
        run = self.held()
        row, text = self.row(run), (self.directory / "gated.md").read_text()
        self.write("gated", manifest("gated", step("put")))
        self.restart()
        self.assertIs(self.state(run), RunState.PENDING)
        self.approve(run, approved=False)
        self.write("gated", text)
        self.put_back_row(run, row)
        self.refused(run, "The recorded decision was already withdrawn.")

    def test_interrupted(self) -> None:
        """A crash while an approved run is asked about anew, before that is on record, is no tampering."""
        run = self.held()
        head = self.sync(self.store.audit.head())
        assert head is not None
        self.control.outdate(run.id, utc(self.clock.seconds()) + timedelta(days=32), *head)
        self.given_way(run)

    def earlier_put_back(self) -> Run:
        """A run that was approved, asked anew, and approved again for the same; its row holds the first of both."""
        run = self.held()
        row, text = self.row(run), (self.directory / "gated.md").read_text()
        self.write("gated", manifest("gated", step("put")))
        self.restart()
        self.sync(self.runner.stop(1.0))
        self.write("gated", text)
        self.approve(run)
        self.assertEqual((self.state(run), self.row(run)[0][0]), (RunState.APPROVED, row[0][0]))
        self.put_back_row(run, row)
        return run

    def test_earlier(self) -> None:
        """An earlier decision for the same, put over the one that the record tells of last, is tampering."""
        self.refused(self.earlier_put_back(), "The recorded decision was already withdrawn.")

    def test_earlier_unnamed(self) -> None:
        """An older event, which does not say which decision it tells of, is one of any for its digest."""
        self.patch(EventFactory, "of_run", _unnamed)
        self.given_way(self.earlier_put_back())
        run = self.held()
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_made_older(self) -> None:
        """One whose contents were altered tells of no decision: it does not become an older one by that."""
        run = self.earlier_put_back()
        self.sql("UPDATE audit_payloads SET payload = json_remove(payload, '$.decision_digest')")
        self.refused(run, "The recorded decision was already withdrawn.")
        other = self.held()
        self.sql("UPDATE audit_payloads SET payload = json_remove(payload, '$.decision_digest')")
        self.refused(other, "The audit log has no such decision, or has something after it.")

    def cancel_as_ungated(self, run: Run) -> None:
        """A run that was called ungated is given up at a start."""
        self.sql("UPDATE runs SET gated = 0 WHERE id = ?", run.id)
        self.restart()
        self.assertIs(self.state(run), RunState.CANCELLED)

    def hide_mark(self, run: Run) -> None:
        """The row held no mark when its decision gave way."""
        self.sql(_SET.format("decision_mark = NULL"), run.id)
        self.restart()
        self.approve(run, approved=False)

    def deny(self, run: Run) -> None:
        """The operator denies it, whatever the row told of an earlier decision."""
        self.set_state(run, "pending_approval")
        self.clock.advance(1)
        self.approve(run, approved=False)

    def settle(self, run: Run) -> None:
        """A person settles it after a locked life, which could use nothing up."""
        self.set_state(run, "executing")
        self.unlock_anew(VaultState.LOCKED)
        self.restart()
        self.unlock_anew()
        self.restart()
        self.sync(self.runner.reconciliation.settle(run.id, True, "seen", OPERATOR))

    def doubt_as_ungated(self, run: Run) -> None:
        """A run in doubt is called ungated."""
        self.sql("UPDATE runs SET gated = 0, state = 'executing' WHERE id = ?", run.id)
        self.restart()

    def withdraw_from_a_lost_vault(self, run: Run) -> None:
        """It is taken back in a life in which the vault is gone for a while."""
        self.restart_held()
        self.vault._state = VaultState.LOST
        self.runner.check_changes()
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.vault._state = VaultState.UNLOCKED
        self.runner.check_changes()

    def restart_held(self) -> None:
        """Begin a life that begins no effect."""
        self.runner = self.build()
        self.runner._recovery._effects.hold()
        self.sync(self.runner.start())
        self.runner._recovery._effects._held = False

    def test_given_way(self) -> None:
        """However a decision gave way, it does not come back when its row and the record of before do."""
        for give_way in (
            UsedTests.cancel_as_ungated,
            UsedTests.hide_mark,
            UsedTests.deny,
            UsedTests.settle,
            UsedTests.doubt_as_ungated,
            UsedTests.withdraw_from_a_lost_vault,
        ):
            self.setUp()
            run = self.held()
            row = self.row(run)
            give_way(self, run)
            self.sql("UPDATE runs SET gated = 1 WHERE id = ?", run.id)
            self.put_back_row(run, row)
            self.forget(run)
            self.given_way(run)

    def forget(self, run: Run) -> None:
        """Let the record end with the newest approval of a run, as whoever writes into the database can."""
        self.sql("DROP TRIGGER IF EXISTS audit_events_stay")
        newest = "SELECT max(seq) FROM audit_events WHERE run_id = ?1 AND type = 'approval.approved'"
        self.sql(f"UPDATE audit_events SET run_id = NULL WHERE run_id = ?1 AND seq > ({newest})", run.id)


class NotUsableTests(DecidedCase):
    """A vault that cannot be written, or was locked at the last moment."""

    def begin(self, trouble: Callable[[], None]) -> None:
        """Begin a life in which there is trouble when the vault has been opened for an effect."""
        self.runner = self.build(lambda point: trouble() if point == "opened" else None)
        self.sync(self.runner.start())

    def fill(self) -> None:
        """The disk is full."""
        self.control.full = True

    def test_at_the_last_moment(self) -> None:
        """Where the disk is full or the vault locked when the decision is used, the run fails and nothing is sent."""
        for trouble, kind in ((self.vault.lock, "vault_locked"), (self.fill, "store_unavailable")):
            self.begin(trouble)
            run = self.submit()
            self.approve(run)
            self.assertEqual((self.state(run), self.fault(run).kind), (RunState.FAILED, kind))
            _, (attempt,) = self.sync(self.runner.submission.history(run.id))
            self.assertEqual((attempt.state, attempt.sent, self.connector.sendings), ("failed", False, []))
            self.unlock_anew()

    def test_failed_for_good(self) -> None:
        """What has failed so does not begin by the unused decision later, whatever its row is set to."""
        self.begin(self.fill)
        run = self.submit()
        shown = self.approve(run)
        self.control.full = False
        self.runner.check_changes()
        self.set_state(run)
        self.sql("DROP TRIGGER audit_events_stay")
        self.sql("UPDATE audit_events SET run_id = NULL WHERE type LIKE 'execution.%'")
        self.assertIsNotNone(shown.mark)
        self.given_way(run)


class EndsTests(DecidedCase):
    """Decisions that end by themselves alarm nobody."""

    def test_holds(self) -> None:
        """It holds for 24 hours to the microsecond, whatever the rest of the row says."""
        run = self.submit()
        self.sync(self.runner.limits.hold())
        approval = self.approve(run)
        self.assertEqual(approval.not_after, utc(self.clock.seconds()) + APPROVAL_HOLDS)
        decisions = self.others()
        self.clock.advance(APPROVAL_HOLDS.total_seconds())
        decisions.check(approval.run, approval)
        self.clock.advance(timedelta(microseconds=100).total_seconds())
        self.assertRaises(ApprovalStale, decisions.check, approval.run, approval)

    def test_locked_while_it_waits(self) -> None:
        """What waits for the vault is checked when that is open, not before."""
        run = self.approved_and_locked()
        self.unlock_anew(VaultState.LOCKED)
        self.restart()
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        self.unlock_anew()
        self.control.change_key()
        self.refused(run)
