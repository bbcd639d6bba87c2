"""Who may approve, by the rule of the action file; it is checked in the transaction that records the decision."""

from __future__ import annotations

from typing import Any

from aileron.base.json import utc
from aileron.model.audit import Actor
from aileron.model.authority import NewGrant
from aileron.model.deciders import combine_rules
from aileron.model.errors import Forbidden
from aileron.model.people import AccountLogin, ApproverRule, OperatorRule, PersonAccount, Role
from aileron.model.queries import AuditQuery
from aileron.model.runs import Decision, Run, RunState

from .kit import OPERATOR, RunnerCase, step


class ApproversCase(RunnerCase):
    """An action with a rule, a person, and the operator."""

    def setUp(self) -> None:
        """An approver and an administrator."""
        super().setUp()
        self.people = {name: self.add(name, role) for name, role in _PEOPLE.items()}

    def add(self, name: str, role: Role, *groups: str) -> AccountLogin:
        """Add an account."""
        account = PersonAccount(f"per_{name}", name, role, 1, utc(self.clock.seconds()), groups=groups)
        self.assertTrue(self.sync(self.store.people.add(account, ())))
        self.accounts[account.id] = account.digest
        return account.login

    def ask(self, rule: str) -> Run:
        """A request of an agent for an action with this rule."""
        self.offer("ruled", step("post"), expires=f'cool_down = "0s"\n{rule}')
        return self.submit("ruled")

    def word(self, run: Run, name: str, approved: bool = True) -> Decision:
        """A decision of a person, or of the operator."""
        digest = self.shown(run).digest
        if name == "operator":
            return Decision(approved, digest, OPERATOR.id)
        return Decision(approved, digest, f"{name}.ab12", account=self.people[name])


class RuleTests(ApproversCase):
    """Who may approve."""

    def test_groups(self) -> None:
        """A rule names groups of accounts."""
        self.people["fin"] = self.add("fin", Role.APPROVER, "finance")
        run = self.ask('by = ["group:finance", "root"]')
        self.fails(self.runner.decisions.decide(run.id, self.word(run, "alice")), Forbidden)
        self.assertTrue(self.sync(self.runner.decisions.decide(run.id, self.word(run, "fin"))).approved)

    def may(self, rule: str, *names: str) -> None:
        """Check that exactly these may approve what has this rule."""
        for name in ("operator", *_PEOPLE):
            run = self.ask(rule)
            work = self.runner.decisions.decide(run.id, self.word(run, name))
            if name in names:
                self.assertTrue(self.sync(work).approved, (rule, name))
                self.assertIs(self.state(run), RunState.COMPLETED)
            else:
                error = self.fails(work, Forbidden)
                self.assertIn("Nothing was decided", error.message)
                self.assertIs(self.state(run), RunState.PENDING, (rule, name))
                self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))

    def test_none(self) -> None:
        """Without a rule everybody who may decide may approve."""
        self.may("", "operator", "alice", "root")

    def test_named(self) -> None:
        """A rule names accounts and roles; the operator is one of the administrators."""
        self.may('by = ["alice"]', "alice")
        self.may('by = ["administrator"]', "operator", "root")
        self.may('by = ["approver"]', "alice")
        self.may('by = ["operator"]', "operator")
        self.may('by = ["nobody"]')

    def test_not_requester(self) -> None:
        """Agents' sessions are the operator's: somebody else approves. Both parts of a rule hold."""
        self.may("not_requester = true", "alice", "root")
        self.may('by = ["administrator"]\nnot_requester = true', "root")

    def test_denial(self) -> None:
        """A denial has no effect, so everybody who may decide may deny."""
        run = self.ask('by = ["root"]')
        self.sync(self.runner.decisions.decide(run.id, self.word(run, "alice", approved=False)))
        self.assertIs(self.state(run), RunState.DENIED)

    def test_on_record(self) -> None:
        """The record names the person; what was refused is not on it."""
        run = self.ask('by = ["alice"]')
        self.fails(self.runner.decisions.decide(run.id, self.word(run, "root")), Forbidden)
        self.sync(self.runner.decisions.decide(run.id, self.word(run, "alice")))
        page = self.sync(self.store.audit.list(AuditQuery(types=("approval.approved",))))
        self.assertEqual([each.event.actor.person for each in page.items], ["alice"])

    def test_changed(self) -> None:
        """A rule that was changed after the request makes it stale: it is shown again, and the new rule holds."""
        run = self.ask('by = ["alice"]')
        before = self.word(run, "root")
        self.offer("ruled", step("post"), expires='by = ["root"]')
        self.assertNotEqual(self.shown(run).digest, before.digest)
        self.assertTrue(self.sync(self.runner.decisions.decide(run.id, self.word(run, "root"))).approved)


class GrantTests(ApproversCase):
    """Grants with an approval."""

    def grant(self, run: Run, name: str) -> Any:
        """Approve a request of this person with a grant."""
        wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
        return self.runner.decisions.approve_and_grant(run.id, self.word(run, name), wish)

    def issued(self) -> int:
        """The number of grants that were put in force."""
        return len(self.sync(self.store.audit.list(AuditQuery(types=("grant.issued",)))).items)

    def test_never_in_force(self) -> None:
        """Who may not approve has no grant in force, not even for a moment in which another call could use it."""
        for rule, name in (('by = ["alice"]', "root"), ("not_requester = true", "operator")):
            run = self.ask(rule)
            self.fails(self.grant(run, name), Forbidden)
            self.assertIs(self.state(run), RunState.PENDING)
            self.assertEqual((self.issued(), self.sync(self.runner.grants.grants())), (0, ()))
            self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        run = self.ask('by = ["alice"]')
        self.sync(self.grant(run, "alice"))
        self.assertEqual(self.issued(), 1)


class EditTests(ApproversCase):
    """Edits before an approval."""

    def edit(self, run: Run, actor: Actor) -> Any:
        """Replace the text of a request."""
        return self.runner.decisions.edit(run.id, {"text": "other"}, None, actor)

    def test_not_requester(self) -> None:
        """No account edits what its requester may not approve, and approves it then; the operator edits it."""
        alice = Actor("human", "alice.ab12")
        run = self.ask("not_requester = true")
        self.fails(self.edit(run, alice), Forbidden)
        self.assertIsNone(self.shown(run).run.asked)
        self.assertEqual(self.sync(self.edit(run, OPERATOR)).run.arguments, {"text": "other"})
        self.assertEqual(self.sync(self.edit(self.ask(""), alice)).run.arguments, {"text": "other"})


class StrictestTests(ApproversCase):
    """Rules of the operator beside those of action files."""

    def test_combined(self) -> None:
        """Of each part the stricter one holds, whichever of the rules has it."""
        mild, strict = ApproverRule((("a", "b"),)), ApproverRule((("b",),), not_requester=True, count=2)
        for rules in ((mild, strict), (strict, mild)):
            combined = combine_rules(rules)
            self.assertEqual(
                (set(combined.by), combined.not_requester, combined.count), ({("a", "b"), ("b",)}, True, 2)
            )
        self.assertEqual(combine_rules(()), ApproverRule())

    def test_beside(self) -> None:
        """The operator's rule holds beside that of the file; the person must satisfy both."""
        self.rules = (OperatorRule("rul*", ApproverRule((("administrator",),), not_requester=True)),)
        run = self.ask('by = ["alice", "root"]')
        for name in ("operator", "alice"):
            self.fails(self.runner.decisions.decide(run.id, self.word(run, name)), Forbidden)
        self.assertTrue(self.sync(self.runner.decisions.decide(run.id, self.word(run, "root"))).approved)

    def test_other_action(self) -> None:
        """A rule about other actions changes nothing."""
        self.rules = (OperatorRule("rule", ApproverRule(not_requester=True)),)
        run = self.ask("")
        self.assertTrue(self.sync(self.runner.decisions.decide(run.id, self.word(run, "operator"))).approved)


_PEOPLE = {"alice": Role.APPROVER, "root": Role.ADMINISTRATOR}
