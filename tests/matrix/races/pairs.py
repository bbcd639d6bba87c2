"""What two that act at once do to a run."""

from __future__ import annotations

from aileron.model.runs import Decision, Run
from tests.promises.case import OPERATOR

from .orders import Act, Home


class Pairs:
    """What the two do; each begins with a fresh home, and keeps the run that it is about."""

    run: Run

    def approve(self, home: Home) -> Act:
        """Say yes to what is shown now."""
        yes = home.yes(self.run)
        return lambda: home.runner.decisions.decide(self.run.id, yes)

    def deny(self, home: Home) -> Act:
        """Say no to it."""
        digest = home.yes(self.run).digest
        home.clock.advance(1.0)
        return lambda: home.runner.decisions.decide(self.run.id, Decision(False, digest, OPERATOR.id))

    def withdraw(self, home: Home) -> Act:
        """Take it back."""
        return lambda: home.runner.submission.withdraw(self.run.id, OPERATOR, None)

    def settle(self, home: Home, happened: bool) -> Act:
        """Say what became of it."""
        return lambda: home.runner.reconciliation.settle(self.run.id, happened, "", OPERATOR)
