"""6. Everything is on record, and the record proves that nothing was changed, or cut off before the last seal."""

from __future__ import annotations

import sqlite3

from attrs import evolve

from aileron.audit import check_chain
from aileron.values import Actor, Decision, Record, utc

from .case import OPERATOR, REFUSED, PromiseCase


class RecordedTests(PromiseCase):
    """Every change, in the transaction that made it."""

    def test_life(self) -> None:
        """From the question to the end each step of a run is there, in order, and says who."""
        run = self.submit()
        self.approve(run)
        told = ["approval.requested", "approval.approved", "execution.started", "execution.succeeded"]
        self.assertEqual(self.events(run), told)
        actors = [record.event.actor.type for record in self.records() if record.event.run_id == run.id]
        self.assertEqual(actors, ["agent", "human", "service", "service"])

    def test_ends(self) -> None:
        """Whatever ends a run is there."""
        denied, withdrawn, failed = self.submit(), self.submit(), self.submit("gated", {"text": "failed"})
        self.approve(denied, approved=False, reason="no")
        self.sync(self.runner.submission.withdraw(withdrawn.id, OPERATOR, None))
        self.connector.script.append(REFUSED)
        self.approve(failed)
        ends = {run.id: self.events(run)[-1] for run in (denied, withdrawn, failed)}
        self.assertEqual(list(ends.values()), ["approval.denied", "run.cancelled", "execution.failed"])

    def test_together(self) -> None:
        """No change is kept without its event: where the record cannot be written, nothing is changed."""
        run = self.submit()
        yes = self.yes(run)
        self.sql("CREATE TRIGGER refuse BEFORE INSERT ON audit_events BEGIN SELECT RAISE(ABORT, 'full'); END")
        failed: list[object] = []
        self.later(self.runner.decisions.decide(run.id, yes)).addErrback(failed.append)
        self.assertEqual((len(failed), self.state(run), self.sent), (1, "pending_approval", 0))
        self.sql("DROP TRIGGER refuse")
        self.flushLoggedErrors()

    def test_answers_name_it(self) -> None:
        """What a run's answer names as its record is the event of its end."""
        run = self.submit("open")
        self.assertEqual(self.now(run).audit_id, self.records()[-1].event.id)

    def test_untouchable(self) -> None:
        """The database lets nobody change or remove an event by accident."""
        self.submit()
        for statement in ("UPDATE audit_events SET type = 'other'", "DELETE FROM audit_events"):
            with self.assertRaises(sqlite3.DatabaseError):
                self.sql(statement)


class ChainTests(PromiseCase):
    """What another program did to the record shows."""

    def setUp(self) -> None:
        """Some records."""
        super().setUp()
        for _ in range(3):
            self.approve(self.submit())
        self.sound = self.records()

    def broken_at(self, records: tuple[Record, ...]) -> int | None:
        """The first that does not hold."""
        return check_chain(records)

    def test_sound(self) -> None:
        """What nobody touched holds."""
        self.assertIsNone(self.broken_at(self.sound))

    def test_altered(self) -> None:
        """Whatever of an event is altered, its hash holds no more."""
        third = self.sound[2]
        for changed in (
            evolve(third.event, type="approval.denied"),
            evolve(third.event, actor=Actor("human", "other")),
            evolve(third.event, payload={}),
            evolve(third.event, run_id="other"),
        ):
            forged = (*self.sound[:2], evolve(third, event=changed), *self.sound[3:])
            self.assertEqual(self.broken_at(forged), 3)

    def test_link_altered(self) -> None:
        """So does its link to the one before."""
        forged = (*self.sound[:2], evolve(self.sound[2], previous_hash="sha256:00"), *self.sound[3:])
        self.assertEqual(self.broken_at(forged), 3)

    def test_begun_later(self) -> None:
        """A record that begins later than it did is not whole."""
        self.assertEqual(check_chain(self.sound[2:], self.sound[1].hash), 1)

    def test_removed(self) -> None:
        """One that is gone leaves a gap."""
        self.assertEqual(self.broken_at((*self.sound[:4], *self.sound[5:])), 5)

    def test_reordered(self) -> None:
        """Two that changed places hold in neither."""
        swapped = (*self.sound[:3], self.sound[4], self.sound[3], *self.sound[5:])
        self.assertEqual(self.broken_at(swapped), 4)

    def test_inserted(self) -> None:
        """One that was put between has no place."""
        self.assertEqual(self.broken_at((*self.sound[:3], self.sound[2], *self.sound[3:])), 4)


class PutBackTests(PromiseCase):
    """A database that is put back to what it was is found by what the vault sealed."""

    def test_effect_is_sealed(self) -> None:
        """Before a gated effect leaves, the vault has sealed how far the record had come."""
        answer = self.unanswered()
        self.approve(self.submit())
        sealed = self.control.sealed()
        assert sealed is not None
        self.assertEqual((sealed[0], self.sent), (len(self.records()), 1))
        answer.callback(self.connector.usual)

    def test_found(self) -> None:
        """A database from before an effect brings no decision back: what it calls approved is asked anew."""
        run = self.held()
        copy = self.copied()
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("completed", 1))
        self.put_back(copy)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))
        types = [record.event.type for record in self.records() if record.event.run_id is None]
        self.assertIn("tamper.detected", types)

    def test_waiting(self) -> None:
        """Nor does it bring back a decision that was still to begin, and may have been taken back since."""
        run = self.submit()
        shown = self.shown(run).digest
        tomorrow = utc(self.clock.seconds() + 86_400)
        self.sync(self.runner.decisions.decide(run.id, Decision(True, shown, OPERATOR.id, not_before=tomorrow)))
        copy = self.copied()
        self.approve(self.submit())
        self.put_back(copy)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))

    def test_nothing_found(self) -> None:
        """Where nothing was put back, nothing is found."""
        self.approve(self.submit())
        self.put_back(self.copied())
        self.restart()
        self.assertNotIn("tamper.detected", [record.event.type for record in self.records()])
        self.assert_sound()
