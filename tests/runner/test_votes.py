"""Approvals by several people: whose count, when they are enough, and what a program that writes rows gains."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from attrs import evolve

from aileron.base.json import compact, utc
from aileron.model.authority import NewGrant, PasskeyRule, decision_item
from aileron.model.deciders import find_objection, find_shortage
from aileron.model.errors import ApprovalStale, Conflict, Forbidden
from aileron.model.interfaces.store import IRuns
from aileron.model.people import AccountLogin, ApproverRule, OperatorRule, Owner, Role
from aileron.model.runs import Approval, Assertion, Decision, Run, RunState, Transition, Vote
from aileron.model.signing import NAMESPACE, write_file
from aileron.runner.decisions import TICK, NoDecision
from aileron.testing import MemorySshKeyBook, SoftwareAuthenticator, SoftwareSshKey
from aileron.vault import Approvers, SshKeys

from .kit import OPERATOR, OPERATOR_URL, step
from .test_approvers import ApproversCase

TWO = "count = 2"


class VotesCase(ApproversCase):
    """An action that needs two people."""

    def setUp(self) -> None:
        """Three more approvers, one of them in a group."""
        super().setUp()
        self.people["bob"] = self.add("bob", Role.APPROVER)
        self.people["eve"] = self.add("eve", Role.APPROVER)
        self.people["fin"] = self.add("fin", Role.APPROVER, "finance")

    def say(self, run: Run, name: str, **others: Any) -> Approval:
        """The approval after this person approved."""
        return self.sync(self.runner.decisions.decide(run.id, evolve(self.word(run, name), **others)))

    def refused(self, run: Run, name: str, kind: type[Exception], **others: Any) -> Any:
        """The error of this person's approval, after which the run is as it was."""
        before = self.now(run), self.events(run)
        error = self.fails(self.runner.decisions.decide(run.id, evolve(self.word(run, name), **others)), kind)
        self.assertEqual((self.now(run), self.events(run)), before)
        return error

    def names(self, run: Run) -> list[str]:
        """Whose approvals count."""
        return [vote.name for vote in self.shown(run).votes]

    def effects(self) -> int:
        """The number of requests that were sent."""
        return sum(each.method == "invoke" for each in self.connector.sendings)

    def change(self, name: str, **changes: Any) -> AccountLogin:
        """Change an account as Aileron does, in the database and in the vault."""
        account = self.sync(self.store.people.get(f"per_{name}"))
        assert account is not None
        changed = evolve(account, revision=account.revision + 1, **changes)
        self.assertTrue(self.sync(self.store.people.change(changed, account.revision, ())))
        self.accounts[changed.id] = changed.digest
        return changed.login

    def remove(self, name: str) -> None:
        """Remove an account as Aileron does."""
        account = self.sync(self.store.people.get(f"per_{name}"))
        assert account is not None
        del self.accounts[account.id]
        self.assertTrue(self.sync(self.store.people.remove(account, ())))


class CountTests(VotesCase):
    """Enough people."""

    def test_first(self) -> None:
        """The first of two approvals begins nothing; the second one does, once."""
        run = self.ask(TWO)
        first = self.say(run, "alice")
        self.assertIs(first.run.state, RunState.PENDING)
        self.assertEqual((self.names(run), self.effects()), (["alice"], 0))
        second = self.say(run, "bob")
        self.assertEqual([vote.name for vote in second.votes], ["alice", "bob"])
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual((self.effects(), self.names(run)), (1, ["alice", "bob"]))
        self.refused(run, "eve", Conflict)

    def test_three(self) -> None:
        """Three of three; the operator is one of them."""
        run = self.ask("count = 3")
        for name in ("operator", "fin"):
            self.assertIs(self.say(run, name).run.state, RunState.PENDING)
        self.say(run, "root")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))

    def test_twice(self) -> None:
        """One person counts once, also with another login and, for the operator, with another key."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.assertIn("1 of 2 approvals: alice", self.refused(run, "alice", Conflict).message)
        self.refused(run, "alice", Conflict, decided_by="alice.another")
        other = self.ask(TWO)
        self.say(other, "operator")
        self.refused(other, "operator", Conflict, decided_by="ops_2")
        self.assertEqual(self.effects(), 0)

    def test_recorded(self) -> None:
        """Each approval is an event of its person; the last one names all that were counted."""
        run = self.ask(TWO)
        self.say(run, "alice", reason="seen")
        self.say(run, "bob")
        [vote], [approved] = self.recorded("approval.voted", run), self.recorded("approval.approved", run)
        self.assertEqual((vote.actor.person, approved.actor.person), ("alice", "bob"))
        told = {name: vote.payload[name] for name in ("given", "needed", "person", "reason")}
        self.assertEqual(told, {"given": 1, "needed": 2, "person": "per_alice", "reason": "seen"})
        counted = approved.payload["votes"]
        assert isinstance(counted, (list, tuple))
        self.assertEqual((list(counted), approved.payload["needed"]), ([vote.payload["decision_digest"]], 2))

    def test_rule(self) -> None:
        """Each of the people must be one whom the rule lets approve."""
        run = self.ask(f'{TWO}\nby = ["group:finance", "bob"]')
        for name in ("alice", "operator"):
            self.refused(run, name, Forbidden)
        self.say(run, "fin")
        self.refused(run, "root", Forbidden)
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_denial(self) -> None:
        """One denial ends the request, whoever has approved it."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.sync(self.runner.decisions.decide(run.id, self.word(run, "bob", approved=False)))
        self.assertIs(self.state(run), RunState.DENIED)
        self.refused(run, "eve", Conflict)

    def test_latest_start(self) -> None:
        """The run begins at the latest of the times that the people chose."""
        run, at = self.ask(TWO), utc(self.clock.seconds() + 3600)
        self.say(run, "alice", not_before=at)
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.now(run).start_after), (RunState.APPROVED, at))
        self.clock.advance(3601)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_expired(self) -> None:
        """An approval counts for seven days; the request expires as its file says."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.clock.advance(7 * 86_400.0)
        self.assertEqual(self.names(run), [])
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.names(run)), (RunState.PENDING, ["bob"]))
        hourly = self.ask(f'{TWO}\nexpires_after = "1h"')
        self.say(hourly, "alice")
        self.clock.advance(3601)
        self.assertIs(self.state(hourly), RunState.EXPIRED)

    def test_restarted(self) -> None:
        """Approvals outlive a restart."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.next_life()
        self.assertEqual(self.names(run), ["alice"])
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))


class LapsedTests(VotesCase):
    """Accounts that are removed or changed while the run is pending."""

    def test_removed(self) -> None:
        """The approval of a removed account does not count, that of its successor of the same name does."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.remove("alice")
        self.assertEqual(self.names(run), [])
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.PENDING)
        self.say(run, "eve")
        self.assertEqual((self.state(run), self.names(run)), (RunState.COMPLETED, ["bob", "eve"]))

    def test_changed(self) -> None:
        """That of a changed account does not count either; its person approves again."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.people["alice"] = self.change("alice", groups=("finance",))
        self.assertEqual(self.names(run), [])
        self.say(run, "alice")
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_put_back(self) -> None:
        """A program that puts the row of a removed account back does not bring its approval back."""
        run = self.ask(TWO)
        account = self.sync(self.store.people.get("per_alice"))
        assert account is not None
        self.say(run, "alice")
        self.remove("alice")
        self.assertTrue(self.sync(self.store.people.add(account, ())))
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.names(run)), (RunState.PENDING, ["bob"]))

    def test_row_gone(self) -> None:
        """The approval of an account without a row does not count, although the vault known here still has it."""
        run = self.ask(TWO)
        self.say(run, "alice")
        account = self.sync(self.store.people.get("per_alice"))
        assert account is not None
        self.assertTrue(self.sync(self.store.people.remove(account, ())))
        self.assertEqual(self.names(run), [])

    def test_afterwards(self) -> None:
        """Once the run is approved, its approvals stay valid, as that of one person does."""
        run = self.ask(f"{TWO}\nundo_seconds = 60")
        self.say(run, "alice")
        self.say(run, "bob")
        self.remove("alice")
        self.clock.advance(61)
        self.assertIs(self.state(run), RunState.COMPLETED)


class KeyTests(VotesCase):
    """The approval of one person that a key has signed, which is removed while others are missing, or later."""

    def make_approvers(self) -> Approvers:
        """Approvers with an SSH key, whose signature may also be missing."""
        self.ssh_key = SoftwareSshKey()
        self.ssh_keys = SshKeys(MemorySshKeyBook(self.vault), self.clock)
        self.key_id = self.ssh_keys.add("mine", self.ssh_key.public_key).id
        return Approvers(
            self.passkeys, "life", lambda _: None, self.clock, ssh_keys=self.ssh_keys, needs_signatures=False
        )

    def sign(self, run: Run) -> None:
        """Approve with the operator's SSH key."""
        decision = Decision(True, self.shown(run).digest, self.key_id)
        statement = self.approvers.export("text\n", [decision_item(run.id, decision, None)])
        signature = self.ssh_key.sign(write_file("text\n", statement), NAMESPACE)
        assertion = Assertion(statement, signature, text="text\n")
        self.sync(self.runner.decisions.decide(run.id, evolve(decision, assertion=assertion)))

    def test_kept(self) -> None:
        """While the key is enrolled, it counts."""
        run = self.ask(TWO)
        self.sign(run)
        self.assertEqual(self.names(run), ["operator"])
        self.say(run, "alice")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))

    def test_removed(self) -> None:
        """What a removed key has signed does not count; its person approves again."""
        run = self.ask(TWO)
        self.sign(run)
        self.ssh_keys.remove(self.key_id)
        self.assertEqual(self.names(run), [])
        self.assertIs(self.say(run, "alice").run.state, RunState.PENDING)
        self.assertEqual((self.names(run), self.effects()), (["alice"], 0))
        self.say(run, "operator")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))

    def test_passkey_needed(self) -> None:
        """What was approved without a passkey does not count once the action needs one."""
        run = self.ask(TWO)
        self.sign(run)
        person = SoftwareAuthenticator(OPERATOR_URL)
        self.passkeys.confirm(self.passkeys.propose("Mine", person.create(self.passkeys.offer())))
        self.passkeys.require(PasskeyRule(everything=True))
        self.assertEqual(self.names(run), [])

    def test_removed_later(self) -> None:
        """A run that others approved last begins nothing if the key of an earlier approval was removed since."""
        run, at = self.ask(TWO), utc(self.clock.seconds() + 3600)
        self.sign(run)
        self.say(run, "alice", not_before=at)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.ssh_keys.remove(self.key_id)
        self.clock.advance(3601)
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, 0))
        self.assertIn("removed since", self.shown(run).stale or "")


class EditTests(VotesCase):
    """Edits void the approvals before them."""

    def edit(self, run: Run, text: str) -> None:
        """Replace the text of a request."""
        self.sync(self.runner.decisions.edit(run.id, {"text": text}, None, OPERATOR))

    def test_voided(self) -> None:
        """An edit voids the earlier approvals; what was approved is not what would run."""
        run = self.ask(TWO)
        before = self.word(run, "bob")
        self.say(run, "alice")
        self.edit(run, "other")
        self.assertEqual(self.names(run), [])
        self.fails(self.runner.decisions.decide(run.id, before), ApprovalStale)
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, 0))

    def test_back(self) -> None:
        """An edit back to what was approved does not bring the approval back."""
        run = self.ask(TWO)
        self.say(run, "alice")
        digest = self.shown(run).digest
        self.edit(run, "other")
        self.edit(run, "hello")
        self.assertEqual((self.shown(run).digest, self.names(run)), (digest, []))
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.PENDING)
        self.say(run, "alice")
        self.assertIs(self.state(run), RunState.COMPLETED)


class RuleTests(VotesCase):
    """Rules that change meanwhile."""

    def test_lowered(self) -> None:
        """A file with a lower count has to be trusted and is shown again; approvals of the earlier one are void."""
        run = self.ask("count = 3")
        self.say(run, "alice")
        self.offer("ruled", step("post"), expires=TWO)
        self.assertEqual(self.names(run), [])
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.PENDING)

    def test_changed(self) -> None:
        """A run that was approved under another rule of the operator's is asked about again, before it begins."""
        for before, after in (((), _need(2)), (_need(3), _need(2)), (_need(2), ())):
            self.rules = before
            run = self.ask("undo_seconds = 60")
            for name in ("alice", "bob", "eve")[: before[0].rule.count if before else 1]:
                self.say(run, name)
            self.assertIs(self.state(run), RunState.APPROVED)
            self.rules = after
            self.clock.advance(61)
            self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, 0))
            self.assertIn("Who may approve", self.shown(run).stale or "")

    def test_stricter(self) -> None:
        """An approval of somebody whom a newer rule of the operator's excludes does not count any more."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.rules = (OperatorRule("ruled", ApproverRule((("bob", "eve"),))),)
        self.assertEqual(self.names(run), [])
        self.say(run, "bob")
        self.say(run, "eve")
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_unknown(self) -> None:
        """While the operator's rules are not known, nothing is approved and nothing begins."""
        run = self.ask("undo_seconds = 60")
        held = self.ask("undo_seconds = 60")
        self.say(held, "alice")
        self.load_rules = self.load_nothing  # type: ignore[method-assign]
        self.next_life()
        self.fails(self.runner.decisions.decide(run.id, self.word(run, "alice")), ApprovalStale)
        self.clock.advance(61)
        self.assertEqual((self.state(held), self.effects()), (RunState.PENDING, 0))

    async def load_nothing(self) -> tuple[OperatorRule, ...]:
        """Rules that cannot be found out."""
        raise ApprovalStale("The rules are not known.")


class AtOnceTests(VotesCase):
    """Two daemons with one database."""

    def test_two_daemons(self) -> None:
        """Of two last approvals at once one begins the run; of two first ones, both count."""
        for first in ((), ("eve",)):
            run = self.ask(TWO)
            for name in first:
                self.say(run, name)
            alice, bob = self.word(run, "alice"), self.word(run, "bob")
            between = partial(self.runner.decisions.decide, run.id, alice)
            other = self.build(runs=cast("IRuns", _Between(self.store.runs, between)))
            before = self.effects()
            if first:
                self.fails(other.decisions.decide(run.id, bob), Conflict)
            else:
                self.assertEqual(len(self.sync(other.decisions.decide(run.id, bob)).votes), 2)
            self.assertEqual((self.state(run), self.effects() - before), (RunState.COMPLETED, 1))
            self.assertEqual(len(self.recorded("approval.approved", run)), 1)

    def test_withdrawn_meanwhile(self) -> None:
        """An earlier vote that another daemon withdraws, for a denial that then comes too late, begins nothing.

        The request is shown again, and that is not on record as tampering.
        """
        run = self.ask(TWO)
        self.say(run, "alice")
        self.clock.advance(1)
        bob, withdrawn = self.word(run, "bob"), utc(self.clock.seconds()) - TICK
        between = partial(self.runner.decisions._gate._decisions.outdate, run, withdrawn)
        other = self.build(runs=cast("IRuns", _Between(self.store.runs, between)))
        self.clock.advance(1)
        self.sync(other.decisions.decide(run.id, bob))
        self.assertEqual((self.state(run), self.effects(), self.names(run)), (RunState.PENDING, 0, []))
        self.assertEqual((len(self.recorded("approval.approved", run)), self.recorded("tamper.detected", run)), (1, []))
        self.assertIn("no longer counts", self.shown(run).stale or "")
        self.say(run, "alice")
        self.say(run, "bob")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))


class GrantTests(VotesCase):
    """Grants with an approval of several."""

    def grant(self, run: Run, name: str) -> Any:
        """Approve a request of this person with a grant."""
        wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
        return self.runner.decisions.approve_and_grant(run.id, self.word(run, name), wish)

    def test_last(self) -> None:
        """A grant is issued with the last approval alone; before, nothing is decided and no grant is in force."""
        run = self.ask(TWO)
        self.assertIn("0 of 2", self.fails(self.grant(run, "root"), Conflict).message)
        self.assertEqual((self.names(run), self.recorded("grant.issued"), self.grants.all()), ([], [], ()))
        self.say(run, "alice")
        self.sync(self.grant(run, "root"))
        self.assertEqual((self.state(run), len(self.recorded("grant.issued"))), (RunState.COMPLETED, 1))

    def test_used(self) -> None:
        """A call that the grant allows begins without anybody's approval, though the rule asks for two people."""
        run = self.ask(TWO)
        self.say(run, "alice")
        self.sync(self.grant(run, "root"))
        self.assertEqual((self.state(self.submit("ruled")), self.effects()), (RunState.COMPLETED, 2))

    def test_lapsed_meanwhile(self) -> None:
        """If an earlier approval lapses after the check that it would be the last one, it is refused, not a vote."""
        run = self.ask(TWO)
        self.say(run, "alice")
        gate = self.runner.decisions._gate
        word, before = self.word(run, "root"), self.events(run)
        self.remove("alice")
        error = self.fails(gate.decide(run.id, word, None, must_be_last=True), Conflict)
        self.assertIn("would not be the last", error.message)
        self.assertEqual((self.state(run), self.events(run), self.names(run)), (RunState.PENDING, before, []))


class ForgedTests(VotesCase):
    """What a program that can write to the database gains: nothing."""

    def voted(self, rule: str = TWO, *names: str) -> Run:
        """A run with the approvals of these people, by default of alice."""
        run = self.ask(rule)
        for name in names or ("alice",):
            self.say(run, name)
        return run

    def forge(self, run: Run, **columns: object) -> None:
        """Copy alice's vote, with other values in these columns."""
        names = [str(row[1]) for row in self.sql("PRAGMA table_info(votes)")]
        given = ", ".join("?" if name in columns else name for name in names)
        values = [columns[name] for name in names if name in columns]
        self.sql(f"INSERT OR REPLACE INTO votes SELECT {given} FROM votes WHERE person = 'per_alice'", *values)

    def begins_nothing(self, run: Run) -> None:
        """Check that bob's approval is the second one, and only then does the run begin."""
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, 0))

    def test_other_person(self) -> None:
        """A vote that is copied for another person does not count."""
        run = self.voted("count = 3")
        self.forge(run, person="per_bob")
        self.forge(run, person="operator", account=None, decided_by="ops_1")
        self.assertEqual(self.names(run), ["alice"])
        self.say(run, "eve")
        self.begins_nothing(run)

    def test_other_role(self) -> None:
        """A vote whose account got another role or group does not count."""
        run = self.voted(f'{TWO}\nby = ["approver", "administrator"]')
        for changes in ({"role": "administrator"}, {"groups": ["finance"]}):
            [[account]] = self.sql("SELECT account FROM votes")
            self.forge(run, account=compact({**json.loads(str(account)), **changes}))
            self.assertEqual(self.names(run), [])

    def test_other_digest(self) -> None:
        """A vote on something else, or on another run, does not count."""
        run = self.voted()
        other = self.ask(TWO)
        self.forge(other, run_id=other.id, digest=self.shown(other).digest)
        self.assertEqual(self.names(other), [])
        self.forge(run, digest="00" * 32)
        self.assertEqual(self.names(run), [])

    def test_written(self) -> None:
        """A run whose votes were replaced after it was approved does not begin; that is on record as tampering."""
        run = self.voted(f"{TWO}\nundo_seconds = 60", "alice", "bob")
        self.sql("UPDATE votes SET reason = 'other' WHERE person = 'per_alice'")
        self.clock.advance(61)
        self.begins_nothing(run)
        self.assertEqual(len(self.recorded("tamper.detected", run)), 1)

    def test_removed(self) -> None:
        """Nor does one whose votes are gone."""
        run = self.voted(f"{TWO}\nundo_seconds = 60", "alice", "bob")
        self.sql("DELETE FROM votes WHERE person = 'per_bob'")
        self.clock.advance(61)
        self.begins_nothing(run)

    def test_too_few(self) -> None:
        """Nor one whose row says that fewer were counted, or none, or that it was forced."""
        for column, written in (("counted", None), ("counted", "[]"), ("forced", 1), ("approvers_digest", None)):
            run = self.voted(f"{TWO}\nundo_seconds = 60", "alice", "bob")
            self.sql(f"UPDATE approvals SET {column} = ? WHERE run_id = ?", written, run.id)
            self.clock.advance(61)
            self.begins_nothing(run)

    def test_one_counted(self) -> None:
        """A decision that counts the sound approval of one person is not enough, whatever else was verified."""
        run, rule = self.voted(), ApproverRule(count=2)
        approval = self.sync(self.store.runs.approval(run.id))
        assert approval is not None
        one = evolve(approval, approvers_digest=rule.digest, counted=(approval.votes[0].mark_digest,))
        verify = self.runner.decisions._votes.verification(rule)
        self.assertRaises(NoDecision, verify, run, one)

    def test_state(self) -> None:
        """A run whose state a program sets to approved after the first approval does not begin."""
        run = self.voted()
        self.set_state(run)
        self.sql(
            "UPDATE approvals SET approved = 1, decided_by = v.decided_by, decided_at = v.decided_at,"
            " not_after = v.not_after, decision_mark = v.mark FROM votes v WHERE v.run_id = approvals.run_id"
        )
        self.restart()
        self.begins_nothing(run)

    def test_used(self) -> None:
        """A run that a program sets back after it was executed has no approval: both were used."""
        run = self.voted(TWO, "alice", "bob")
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, 1))
        self.set_state(run, "pending_approval")
        self.restart()
        self.assertEqual(self.names(run), [])
        self.say(run, "eve")
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, 1))

    def test_used_vote(self) -> None:
        """An approved run one of whose votes was used elsewhere does not begin."""
        run = self.voted(f"{TWO}\nundo_seconds = 60", "alice", "bob")
        [[mark]] = self.sql("SELECT mark FROM votes WHERE person = 'per_alice'")
        assert isinstance(mark, bytes)
        self.control._spent.add(mark)
        self.clock.advance(61)
        self.begins_nothing(run)

    def test_meanwhile(self) -> None:
        """A vote that is altered after the last look, before the transaction that begins the effect, begins nothing."""
        run = self.voted(f"{TWO}\nundo_seconds = 60", "alice", "bob")
        alter = partial(self.sql, "UPDATE votes SET reason = 'other' WHERE person = 'per_alice'")
        self.sync(self.runner.stop(1.0))
        runs = cast("IRuns", _Between(self.store.runs, partial(_call, alter)))
        self.runner = self.build(runs=runs)
        self.sync(self.runner.start())
        self.clock.advance(61)
        self.begins_nothing(run)

    def test_replayed(self) -> None:
        """A saved vote that is put back after an edit, or after a denial, does not count."""
        run = self.voted()
        saved = self.sql("SELECT * FROM votes")[0]
        digest = self.shown(run).digest
        for text in ("other", "hello"):
            self.sync(self.runner.decisions.edit(run.id, {"text": text}, None, OPERATOR))
        self.sql(f"INSERT OR REPLACE INTO votes VALUES ({', '.join('?' * len(saved))})", *saved)
        self.assertEqual((self.shown(run).digest, self.names(run)), (digest, []))


class ShortageTests(VotesCase):
    """The last check by itself."""

    def votes(self, *persons: str) -> list[Vote]:
        """Votes of these people."""
        now = utc(self.clock.seconds())
        return [Vote("run", f"per_{each}", "", "", now, now, account=self.people[each]) for each in persons]

    def test_same_person(self) -> None:
        """One person counts once; each of the people must be one whom the rule names."""
        two = ApproverRule(count=2)
        self.assertIsNone(find_shortage(self.votes("alice", "bob"), None, two))
        self.assertIn("2 people", find_shortage(self.votes("alice", "alice"), None, two) or "")
        named = ApproverRule((("alice", "group:finance"),), count=2)
        self.assertIsNone(find_shortage(self.votes("alice", "fin"), None, named))
        self.assertIn("group:finance", find_shortage(self.votes("alice", "bob"), None, named) or "")

    def test_owner(self) -> None:
        """A request of an account is approved by others too if several people are asked; the owner can be excepted."""
        owner = Owner("per_alice", "alice")
        self.assertIn("alice", find_objection(self.people["bob"], owner, ApproverRule()) or "")
        self.assertIsNone(find_shortage(self.votes("alice", "bob"), owner, ApproverRule(count=2)))
        excepted = ApproverRule(not_requester=True, count=2)
        self.assertIsNotNone(find_shortage(self.votes("alice", "bob"), owner, excepted))
        self.assertIsNone(find_shortage(self.votes("eve", "bob"), owner, excepted))


def _need(count: int) -> tuple[OperatorRule, ...]:
    return (OperatorRule("ruled", ApproverRule(count=count)),)


async def _call(work: Callable[[], object]) -> None:
    work()


class _Between:
    """The runs of a store; before the first change, something else happens."""

    def __init__(self, runs: Any, between: Callable[[], Awaitable[object]]) -> None:
        self._runs = runs
        self._between: Callable[[], Awaitable[object]] | None = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def apply(self, *transitions: Transition) -> Run:
        """Apply transitions, after what happens in between."""
        between, self._between = self._between, None
        if between is not None:
            await between()
        run: Run = await self._runs.apply(*transitions)
        return run
