"""Approvals that an administrator forces, alone and with a reason, although others had to approve."""

from __future__ import annotations

from attrs import evolve

from aileron.base.json import utc
from aileron.model.authority import NewGrant, decision_item, is_decision
from aileron.model.errors import Conflict, Forbidden
from aileron.model.runs import Decision, RunState

from .test_votes import TWO, VotesCase


class ForcedTests(VotesCase):
    """Who forces, and what is recorded."""

    def test_forced(self) -> None:
        """An administrator, and the operator, approve alone, also their own request; that is an event of its own."""
        for rule, name in ((TWO, "root"), ("count = 3\nnot_requester = true", "operator"), ('by = ["alice"]', "root")):
            run = self.ask(rule)
            self.say(run, name, forced=True, reason="The site is down.")
            self.assertIs(self.state(run), RunState.COMPLETED)
            [event] = self.recorded("approval.forced", run)
            self.assertEqual(event.payload["reason"], "The site is down.")
            self.assertTrue(self.recorded("approval.approved", run)[0].payload["forced"])

    def test_role(self) -> None:
        """An approver forces nothing, even with an earlier approval of another."""
        run = self.ask(TWO)
        self.say(run, "bob")
        self.refused(run, "alice", Forbidden, forced=True, reason="The site is down.")

    def test_reason(self) -> None:
        """Without a reason that can be read nothing is forced; one with hostile text is only text."""
        run = self.ask(TWO)
        for reason in (None, "", "  \n", "\u202e\u200b", "…!"):
            self.refused(run, "root", Forbidden, forced=True, reason=reason)
        self.say(run, "root", forced=True, reason="<script>alert(1)</script>\u202e")
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_denial(self) -> None:
        """A denial is a denial, forced or not."""
        run = self.ask(TWO)
        word = evolve(self.word(run, "alice", approved=False), forced=True)
        self.sync(self.runner.decisions.decide(run.id, word))
        self.assertEqual((self.state(run), self.recorded("approval.forced", run)), (RunState.DENIED, []))
        self.assertNotIn("forced", self.recorded("approval.denied", run)[0].payload)

    def test_grant(self) -> None:
        """No grant is issued with a forced approval, also where it would be the last one that is needed."""
        for rule, earlier in ((TWO, ()), (TWO, ("alice",)), ("", ())):
            run = self.ask(rule)
            for name in earlier:
                self.say(run, name)
            wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
            word = evolve(self.word(run, "root"), forced=True, reason="The site is down.")
            error = self.fails(self.runner.decisions.approve_and_grant(run.id, word, wish), Conflict)
            self.assertIn("A forced approval issues no grant", error.message)
            self.assertEqual((self.state(run), self.grants.all()), (RunState.PENDING, ()))


class SignedTests(VotesCase):
    """What is signed."""

    def test_verdict(self) -> None:
        """A signature for one approval of several is none for a forced one, and the other way round."""
        plain = Decision(True, "sha256:0", "ops_1", "fine")
        forced = Decision(True, "sha256:0", "ops_1", "fine", forced=True)
        for signed, sent in ((plain, forced), (forced, plain)):
            self.assertTrue(is_decision(decision_item("run", signed, None), "run", signed, None))
            self.assertFalse(is_decision(decision_item("run", signed, None), "run", sent, None))
