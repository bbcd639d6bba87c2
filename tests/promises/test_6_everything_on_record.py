"""6. Everything is on record, and the record proves that nothing was changed, or cut off before the last seal."""

from __future__ import annotations

import sqlite3

from attrs import evolve

from aileron.base.json import utc
from aileron.model.audit import Actor
from aileron.model.runs import Decision
from aileron.testing import check_chain

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
        denied, withdrawn, failed = (self.submit("gated", {"text": each}) for each in ("no", "back", "failed"))
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
        last = self.records()[-1].event
        self.assertEqual((self.now(run).audit_id, last.type), (last.id, "execution.succeeded"))
        self.assertEqual((last.run_id, last.connector), (run.id, self.connector.description.name))

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

    def test_altered(self) -> None:
        """Whatever of an event or of its seal is altered, its hash holds no more; what nobody touched holds."""
        self.assertIsNone(check_chain(self.sound))
        self.assertIsNone(check_chain(self.sound[2:], self.sound[1].hash, 2))
        third = self.sound[2]
        for changed in (
            evolve(third, event=evolve(third.event, type="approval.denied")),
            evolve(third, event=evolve(third.event, actor=Actor("human", "other"))),
            evolve(third, event=evolve(third.event, payload={})),
            evolve(third, event=evolve(third.event, run_id="other")),
            evolve(third, salt="other"),
            evolve(third, hash="sha256:00"),
            evolve(third, payload_digest="sha256:00"),
            evolve(third, sequence=9),
        ):
            self.assertEqual(check_chain((*self.sound[:2], changed, *self.sound[3:])), 3)

    def test_link_altered(self) -> None:
        """So does its link to the one before; and one that is gone, moved or put in shows at its place."""
        one, two, three, *rest = self.sound
        for altered, place in (
            ([one, two, evolve(three, previous_hash="sha256:00"), *rest], 3),
            ([one, three, *rest], 2),
            ([one, three, two, *rest], 2),
            ([one, two, two, three, *rest], 3),
        ):
            self.assertEqual(check_chain(altered), place)

    def test_begun_later(self) -> None:
        """A record that begins later than it did is not whole."""
        self.assertEqual(check_chain(self.sound[2:], self.sound[1].hash), 1)


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
        """A database from before an effect brings no decision back: what it calls approved is asked anew.

        That is told once, and trust stays.
        """
        run = self.held()
        copy = self.copied()
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("completed", 1))
        self.put_back(copy)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))
        self.next_life()
        (alarm,) = [event for event in self.recorded("tamper.detected") if event.run_id is None]
        self.assertEqual(alarm.payload["found"], [self.shown(run).stale])
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated", "open"})

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
