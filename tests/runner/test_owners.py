"""Requests of accounts: whose they are, who approves them, and what becomes of them once the account is removed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from aileron.base.converter import to_json
from aileron.base.json import JSON
from aileron.model.connectors import Outcome
from aileron.model.errors import ApprovalStale, Forbidden
from aileron.model.people import Owner, Role
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState

from .kit import OPERATOR, manifest, step
from .test_approvers import ApproversCase
from .test_inverse import BACK, UNDO
from .test_reconciling import DoubtCase

ALICE = Owner("per_alice", "alice")


class OwnersCase(ApproversCase):
    """Agents of alice and of bob, who are approvers, and an administrator."""

    def setUp(self) -> None:
        super().setUp()
        self.people["bob"] = self.add("bob", Role.APPROVER)
        self.session("of-alice", ALICE)
        self.session("of-bob", Owner("per_bob", "bob"))

    def ask_of(self, session: str | None, rule: str = "") -> Run:
        """A request of this session's agent."""
        self.offer("ruled", step("post"), expires=f'cool_down = "0s"\n{rule}')
        return self.submit("ruled", session=session)


class OwnerTests(OwnersCase):
    """Who may approve what another person's agent requested."""

    def may_approve(self, session: str, rule: str, *names: str) -> None:
        """Check that exactly these people approve a request of this session with this rule."""
        for name in ("operator", *self.people):
            run = self.ask_of(session, rule)
            work = self.runner.decisions.decide(run.id, self.word(run, name))
            if name in names:
                self.assertTrue(self.sync(work).approved, (rule, name))
            else:
                self.fails(work, Forbidden)
                self.assertIs(self.state(run), RunState.PENDING, (rule, name))
                self.assertEqual(self.connector.sendings, [])
                self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
            self.connector.sendings.clear()

    def test_default(self) -> None:
        """The person whose agent it is approves; so do administrators and the operator; another approver does not."""
        self.may_approve("of-alice", "", "operator", "alice", "root")
        self.may_approve("of-bob", "", "operator", "bob", "root")
        self.may_approve("session-1", "", "operator", "alice", "bob", "root")

    def test_rule(self) -> None:
        """A rule may name others, and the person is then one of them or not."""
        self.may_approve("of-alice", 'by = ["bob"]', "bob")
        self.may_approve("of-alice", 'by = ["approver"]', "alice", "bob")
        self.may_approve("of-alice", 'by = ["administrator"]', "operator", "root")

    def test_not_requester(self) -> None:
        """The requester is the person whose agent it is: neither the operator, nor an administrator."""
        self.may_approve("of-alice", "not_requester = true", "operator", "root")
        self.may_approve("of-alice", 'by = ["approver"]\nnot_requester = true', "bob")

    def test_denial(self) -> None:
        """Everybody who may decide may deny: nothing happens then."""
        run = self.ask_of("of-alice")
        self.sync(self.runner.decisions.decide(run.id, self.word(run, "bob", approved=False)))
        self.assertIs(self.state(run), RunState.DENIED)

    def test_name_given_again(self) -> None:
        """Another account of the same name does not own what the earlier one requested."""
        run = self.ask_of("of-alice")
        earlier = self.sync(self.store.people.get("per_alice"))
        assert earlier is not None
        self.sync(self.store.people.remove(earlier, ()))
        login = self.add("alice", Role.APPROVER)
        self.people["alice"] = type(login)("per_other", login.name, login.role, login.digest)
        self.fails(self.runner.decisions.decide(run.id, self.word(run, "alice")), Forbidden)


class EditTests(OwnersCase):
    """Edits of what may not be approved by its requester."""

    def test_not_requester(self) -> None:
        """Only the person whose agent it is edits, who cannot approve: neither the operator nor an administrator."""
        run = self.ask_of("of-alice", "not_requester = true")
        for editor in ("operator-1", "root.ab12", "bob.ab12"):
            actor = type(OPERATOR)("human", editor)
            self.fails(self.runner.decisions.edit(run.id, {"text": "other"}, None, actor), Forbidden)
        alice = type(OPERATOR)("human", "alice.ab12")
        edited = self.sync(self.runner.decisions.edit(run.id, {"text": "other"}, None, alice))
        self.assertEqual((edited.run.arguments, edited.run.owner), ({"text": "other"}, ALICE))
        self.fails(self.runner.decisions.decide(run.id, self.word(run, "alice")), Forbidden)


class DigestTests(OwnersCase):
    """What is approved covers whose it is."""

    def test_owner(self) -> None:
        """A row that a program gives to another account after the approval is asked anew, and nothing is sent."""
        self.offer("ruled", step("post"), expires="undo_seconds = 60")
        run = self.submit("ruled", session="of-alice")
        self.approve(run)
        self.sync(self.runner.stop(1.0))
        other = json.dumps(to_json(Owner("per_bob", "bob")))
        self.sql("UPDATE runs SET owner = ? WHERE id = ?", other, run.id)
        self.clock.advance(120)
        self.restart()
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))

    def test_recorded(self) -> None:
        """Each event of a run names the account."""
        run = self.ask_of("of-alice")
        self.approve(run)
        self.assertEqual({json.dumps(each) for each in self.list_owners(run)}, {json.dumps(to_json(ALICE))})

    def list_owners(self, run: Run) -> Iterator[JSON]:
        """The owners that the events of a run name."""
        for record in self.sync(self.store.audit.list(AuditQuery(run_id=run.id))).items:
            yield record.event.payload.get("owner")

    def test_operator(self) -> None:
        """A run of the operator has no owner, in its events neither."""
        run = self.ask_of("session-1")
        self.assertIsNone(run.owner)
        self.assertEqual(set(self.list_owners(run)), {None})


class RepeatedTests(OwnersCase):
    """C{on_repeat = "replace"}."""

    def test_owner(self) -> None:
        """A request replaces the older ones of the same person, not those of somebody else."""
        self.offer("job", step("post"), expires='on_repeat = "replace"')
        first, other = self.submit("job", session="of-alice"), self.submit("job", session="of-bob")
        self.clock.advance(1)
        second = self.submit("job", session="of-alice")
        states = [self.state(each) for each in (first, other, second)]
        self.assertEqual(states, [RunState.CANCELLED, RunState.PENDING, RunState.PENDING])


class InheritedTests(OwnersCase):
    """Runs that come from another run."""

    def test_undo(self) -> None:
        """What undoes a run has the run's owner, whoever asks for it."""
        self.write("open", manifest("open", step("post"), UNDO, gated=False))
        self.offer("take-back", BACK, gated=False)
        self.connector.script.append(Outcome({"ts": "17.4"}))
        run = self.submit("open", {"text": "hello", "times": 2}, session="of-alice")
        undoing = self.sync(self.runner.submission.undo(run.id, OPERATOR))
        self.assertEqual((undoing.owner, undoing.session_id), (ALICE, None))
        self.fails(self.runner.decisions.decide(undoing.id, self.word(undoing, "bob")), Forbidden)


class AgainTests(DoubtCase):
    """Runs of unknown outcome."""

    def test_again(self) -> None:
        """A run that repeats one of unknown outcome has its owner."""
        self.session("session-1", ALICE)
        parent = self.doubtful()
        child = self.sync(self.runner.reconciliation.run_again(parent.id, "Once more.", OPERATOR))
        self.assertEqual((parent.owner, child.owner), (ALICE, ALICE))


class RemovedTests(OwnersCase):
    """The account was removed."""

    def test_pending(self) -> None:
        """Nobody approves what a removed account's agent requested."""
        run = self.ask_of("of-alice")
        self.removed = frozenset({"per_alice"})
        for name in ("operator", "root"):
            error = self.fails(self.runner.decisions.decide(run.id, self.word(run, name)), ApprovalStale)
            self.assertIn("was removed", error.message)
        self.assertEqual(self.connector.sendings, [])

    def test_approved(self) -> None:
        """What was approved and has not begun is asked anew instead, and sends nothing."""
        self.offer("ruled", step("post"), expires="undo_seconds = 60")
        run = self.submit("ruled", session="of-alice")
        self.approve(run)
        self.removed = frozenset({"per_alice"})
        self.clock.advance(120)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))

    def test_ungated(self) -> None:
        """A call that needs no approval is refused."""
        self.removed = frozenset({"per_alice"})
        self.fails(self.runner.submission.submit(self.call("open", session="of-alice")), Forbidden)
        self.assertEqual(self.connector.sendings, [])
