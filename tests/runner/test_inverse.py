"""A completed run is undone by another action, as its own action's file says, once the operator approves that."""

from __future__ import annotations

from aileron.base.json import utc
from aileron.model.authority import NewGrant
from aileron.model.connectors import Outcome
from aileron.model.errors import CapabilityDenied, Conflict, InvalidRequest, NotFound, Paused
from aileron.model.runs import Run, RunState
from aileron.model.trust import TrustKind

from .kit import OPERATOR, RunnerCase, manifest, step

UNDO = """
[undo]
action = "take-back"
args = { text = "${steps.only.ts}", times = "${args.times}" }
"""
BACK = step("put", inputs='text = "${args.text}"')


class InverseCase(RunnerCase):
    """An action without approval, and the one that undoes it."""

    def setUp(self) -> None:
        """The service answers with what the inverse needs."""
        super().setUp()
        self.write("open", manifest("open", step("post"), UNDO, gated=False))
        self.offer("take-back", BACK, gated=False)
        self.connector.script.append(Outcome({"ts": "17.4"}))

    def done(self) -> Run:
        """A completed run."""
        run = self.submit("open", {"text": "hello", "times": 2})
        self.assertIs(self.state(run), RunState.COMPLETED)
        return run

    def undo(self, run: Run) -> Run:
        """Request what undoes it."""
        return self.sync(self.runner.submission.undo(run.id, OPERATOR))


class InverseTests(InverseCase):
    """C{[undo]}."""

    def test_approved(self) -> None:
        """It needs approval even where its action needs none, and gets arguments and answer of what it undoes."""
        run = self.done()
        self.connector.sendings.clear()
        undoing = self.undo(run)
        self.assertEqual((undoing.action, undoing.state, undoing.gated), ("take-back", RunState.PENDING, True))
        self.assertEqual((undoing.arguments, undoing.session_id), ({"text": "17.4", "times": 2}, None))
        self.assertEqual((undoing.parent_id, undoing.undoes, self.connector.sendings), (None, run.id, []))
        self.approve(undoing)
        self.assertIs(self.state(undoing), RunState.COMPLETED)
        (sent,) = self.connector.sendings
        self.assertEqual((sent.request.body, sent.effect_key), (b'{"text":"17.4"}', f"{undoing.effect_key}.only"))

    def test_once(self) -> None:
        """Requested again while it waits, or when it is done, it is the same run; after a denial it is another."""
        run = self.done()
        undoing = self.undo(run)
        self.assertEqual(self.undo(run).id, undoing.id)
        self.approve(undoing, approved=False)
        second = self.undo(run)
        self.assertNotEqual(second.id, undoing.id)
        self.sync(self.runner.submission.withdraw(second.id, OPERATOR, None))
        third = self.undo(run)
        self.assertEqual(len({undoing.id, second.id, third.id}), 3)
        self.approve(third)
        self.assertEqual((self.undo(run).id, self.state(third)), (third.id, RunState.COMPLETED))

    def test_weeks_later(self) -> None:
        """However long ago it was undone, it is not undone again."""
        run = self.done()
        undoing = self.undo(run)
        self.approve(undoing)
        self.clock.advance(30 * 86_400)
        self.next_life()
        self.assertEqual(self.undo(run).id, undoing.id)

    def test_half_done(self) -> None:
        """Of what failed after its first step, nothing is done again; what failed at once is requested anew."""
        self.offer("take-back", BACK, step("put", "second", 'text = "x"'), gated=False)
        run = self.done()
        self.connector.script += [Outcome(fault=InvalidRequest("No.").fault(), sent=True)]
        first = self.undo(run)
        self.approve(first)
        self.assertIs(self.state(first), RunState.FAILED)
        self.connector.script += [Outcome({}), Outcome(fault=InvalidRequest("No.").fault(), sent=True)]
        second = self.undo(run)
        self.approve(second)
        self.assertEqual((second.id == first.id, self.state(second)), (False, RunState.FAILED))
        self.assertEqual(self.undo(run).id, second.id)

    def test_grant(self) -> None:
        """No standing grant decides it, with a preview or without, in this life or the next."""
        run = self.done()
        other = self.submit("take-back", {"text": "17.4", "times": 2})
        self.offer("take-back", BACK)
        asked = self.submit("take-back", {"text": "17.4", "times": 2})
        wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
        self.sync(self.runner.decisions.approve_and_grant(asked.id, self.yes(asked), wish))
        self.assertIs(self.state(self.submit("take-back", {"text": "17.4", "times": 2})), RunState.COMPLETED)
        undoing = self.undo(run)
        self.assertIs(self.state(undoing), RunState.PENDING)
        self.next_life()
        self.assertIs(self.state(undoing), RunState.PENDING)
        self.assertIs(self.state(other), RunState.COMPLETED)

    def test_not_shown(self) -> None:
        """An inverse whose request nobody could see before is not requested."""
        later = step("put", "second", 'text = "${steps.only.ts}"')
        self.offer("take-back", BACK, later, gated=False)
        run = self.done()
        error = self.fails(self.runner.submission.undo(run.id, OPERATOR), CapabilityDenied)
        self.assertIn("cannot be shown", error.message)
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(1,)])

    def test_not_done(self) -> None:
        """A run that did not complete has nothing that could be undone."""
        pending = self.submit("gated")
        self.fails(self.runner.submission.undo(pending.id, OPERATOR), Conflict)
        self.fails(self.runner.submission.undo("nobody", OPERATOR), NotFound)

    def test_no_inverse(self) -> None:
        """An action that says nothing of it cannot be undone."""
        run = self.submit("gated")
        self.approve(run)
        self.fails(self.runner.submission.undo(run.id, OPERATOR), CapabilityDenied)

    def test_changed(self) -> None:
        """What a newer file says of undoing does not hold for runs of an older one."""
        run = self.done()
        self.write("open", manifest("open", step("post"), UNDO, gated=False, body="Says something else."))
        self.assertIn("changed", self.fails(self.runner.submission.undo(run.id, OPERATOR), Conflict).message)

    def test_not_trusted(self) -> None:
        """The action that undoes it must be trusted like any other."""
        run = self.done()
        self.trust.remove(TrustKind.ACTION, "take-back")
        error = self.fails(self.runner.submission.undo(run.id, OPERATOR), NotFound)
        self.assertIn("It is undone by the action take-back. ", error.message)

    def test_answer_without_it(self) -> None:
        """An answer that does not have what the inverse needs leaves nothing behind."""
        self.connector.script[:] = [Outcome({"id": 1})]
        run = self.done()
        error = self.fails(self.runner.submission.undo(run.id, OPERATOR), InvalidRequest)
        self.assertIn("/undo/args/text", error.message)
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(1,)])

    def test_paused(self) -> None:
        """While everything is paused, nothing is requested."""
        run = self.done()
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.fails(self.runner.submission.undo(run.id, OPERATOR), Paused)
