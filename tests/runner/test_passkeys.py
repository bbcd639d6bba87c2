"""The runner's decision door, where an approval needs a passkey."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from aileron.base.json import utc
from aileron.model.authority import NewGrant, PasskeyRule, decision_item
from aileron.model.errors import Forbidden
from aileron.model.runs import Assertion, Decision, Run, RunState
from aileron.testing import SoftwareAuthenticator

from .kit import OPERATOR_URL, RunnerCase


class PasskeyTests(RunnerCase):
    """A gated action that needs one."""

    def setUp(self) -> None:
        """Have a passkey, and ask for it."""
        super().setUp()
        self.person = SoftwareAuthenticator(OPERATOR_URL)
        self.passkeys.confirm(self.passkeys.propose("Mine", self.person.create(self.passkeys.offer())))
        self.passkeys.require(PasskeyRule(False, ("gated",)))

    def signed(self, run: Run, decision: Decision, wish: NewGrant | None = None) -> Decision:
        """The same, with the passkey used for it."""
        nonce, options = self.approvers.ask(run.id, decision, wish)
        statement = self.approvers.write(nonce, [decision_item(run.id, decision, wish)])
        return evolve(decision, assertion=Assertion(statement, credential=self.person.get(options)))

    def refused(self, run: Run, decision: Decision) -> None:
        """It is not taken, and nothing comes of it."""
        self.fails(self.runner.decisions.decide(run.id, decision), Forbidden)
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertEqual(self.connector.sendings, [])

    def wish(self) -> NewGrant:
        """A grant of more like it."""
        return NewGrant((), 5, utc(self.clock.seconds()) + timedelta(hours=1), session=False)

    def test_needed(self) -> None:
        """Without it the run stays where it is; with it it is done."""
        run = self.submit()
        self.refused(run, self.yes(run))
        self.sync(self.runner.decisions.decide(run.id, self.signed(run, self.yes(run))))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_for_this(self) -> None:
        """What was signed for another run, digest or time is nothing here."""
        run, other = self.submit(), self.submit("gated", {"text": "other"})
        decision = self.yes(run)
        self.refused(run, evolve(decision, assertion=self.signed(other, self.yes(other)).assertion))
        later = evolve(decision, not_before=utc(self.clock.seconds() + 60))
        self.refused(run, evolve(later, assertion=self.signed(run, decision).assertion))
        self.refused(run, evolve(decision, reason="other", assertion=self.signed(run, decision).assertion))

    def test_grant(self) -> None:
        """A grant needs it as well, for exactly that grant; a refused one was never in force."""
        run, wish = self.submit(), self.wish()
        plain = self.yes(run)
        for decision in (plain, self.signed(run, plain), self.signed(run, plain, evolve(wish, uses=6))):
            self.fails(self.runner.decisions.approve_and_grant(run.id, decision, wish), Forbidden)
            self.assertEqual(self.grants.all(), ())
        _approved, grant = self.sync(
            self.runner.decisions.approve_and_grant(run.id, self.signed(run, plain, wish), wish)
        )
        self.assertEqual(grant.uses, 5)

    def test_called_otherwise(self) -> None:
        """By the name of an action that needs none, written into the row for a moment, nothing is approved."""
        run = self.submit()
        plain, admit = self.yes(run), self.approvers.admit

        def meanwhile(action: str, run_id: str, decision: Decision, wish: NewGrant | None) -> Decision:
            self.call_it("gated")
            return admit(action, run_id, decision, wish)

        self.patch(self.approvers, "admit", meanwhile)
        for decision in (plain, evolve(plain, assertion=Assertion("made-up", credential={}))):
            self.call_it("open")
            self.refused(run, decision)
            self.call_it("open")
            self.fails(self.runner.decisions.approve_and_grant(run.id, decision, self.wish()), Forbidden)
        self.assertEqual(self.grants.all(), ())

    def call_it(self, action: str) -> None:
        """Write another action's name into every row, as another program would."""
        self.sql("UPDATE runs SET action = ?", action)

    def test_none_needed(self) -> None:
        """To say no needs none, nor do actions that the rule does not name."""
        run = self.submit()
        self.approve(run, approved=False)
        self.assertIs(self.state(run), RunState.DENIED)
        self.passkeys.reset()
        self.passkeys.confirm(self.passkeys.propose("Mine", self.person.create(self.passkeys.offer())))
        self.passkeys.require(PasskeyRule(False, ("another", "gate-*")))
        run = self.submit("gated", {"text": "other"})
        self.approve(run)
        self.assertIs(self.state(run), RunState.COMPLETED)
