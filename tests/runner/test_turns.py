"""Two who act on one run at the same moment."""

from __future__ import annotations

from aileron.errors import Conflict
from aileron.values import Decision, RunState

from .kit import OPERATOR, RunnerCase


class TurnsTests(RunnerCase):
    """Whoever was told yes keeps it."""

    def test_denied_while_approved(self) -> None:
        """A denial that comes while an approval is being written does not undo the approval that was confirmed."""
        run = self.submit()
        shown = self.sync(self.runner.decisions.approval(run.id))
        self.pool.hold()
        yes = self.later(self.runner.decisions.decide(run.id, Decision(True, shown.digest, OPERATOR.id)))
        self.pool.step()  # it has looked, and is about to be written
        self.clock.advance(1.0)
        no = self.later(self.runner.decisions.decide(run.id, Decision(False, shown.digest, OPERATOR.id)))
        self.pool.todo.rotate(1)  # whoever reads may be faster than the one who writes
        self.pool.release()
        self.assertTrue(self.successResultOf(yes).approved)
        self.failureResultOf(no, Conflict)
        self.assertIs(self.now(run).state, RunState.COMPLETED)
        self.assertNotIn("tamper.detected", self.events(run))
