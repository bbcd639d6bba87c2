"""Votes, and whose a run or a session is, are read as they were stored; a vote is checked in its transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.authority import PendingLimits
from aileron.model.errors import Conflict, Forbidden, StateConflict
from aileron.model.people import ApproverRule, Owner, PersonAccount, Role
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Approval, Decision, Run, RunState, Transition, Vote
from aileron.model.signing import KeyKind, SignedDecisions
from aileron.runner.votes import VotesChanged, require_votes
from aileron.testing import example_ask, example_event, example_run, example_session, example_transition
from aileron.testing._examples import NOON

from .case import DatabaseCase

ALICE = PersonAccount("per_1", "alice", Role.APPROVER, 1, NOON, groups=("board", "finance"))
BOB = PersonAccount("per_2", "bob", Role.APPROVER, 1, NOON)
TWO = ApproverRule((("group:finance", "bob", "operator"),), count=2)
SIGNED = SignedDecisions(KeyKind.BROWSER, "ab", "{}", "cd")
OWNER = Owner("per_1", "alice")


def vote_of(account: PersonAccount | None, run_id: str = "run-1", **more: Any) -> Vote:
    """The vote of an account, or of the operator."""
    person, name = ("operator", "ops_1") if account is None else (account.id, f"{account.name}.ab")
    login = None if account is None else account.login
    days = NOON + timedelta(days=7)
    vote = Vote(run_id, person, example_ask().digest, name, NOON, days, mark=b"\x00\xff", account=login)
    return evolve(vote, **more)


class VotesCase(DatabaseCase):
    """A pending run, and two accounts."""

    def setUp(self) -> None:
        super().setUp()
        self.store = self.opened()
        for account in (ALICE, BOB):
            self.do(self.store.people.add(account, ()))
        self.pending = self.receive(example_run())

    def receive(self, run: Run) -> Run:
        """A run that waits."""
        asked = example_transition(run, RunState.PENDING, ask=example_ask())
        return self.do(self.store.runs.receive(run, (asked,), PendingLimits()))[0]

    def approval(self, run_id: str = "run-1") -> Approval:
        """The approval as it is stored."""
        found = self.do(self.store.runs.approval(run_id))
        assert found is not None
        return found

    def step(self, end: RunState = RunState.PENDING, **more: Any) -> Transition:
        """A change of the run, recorded as a vote."""
        return example_transition(self.pending, end, "approval.voted", **{"approvers": TWO, **more})

    def vote(self, vote: Vote, **more: Any) -> None:
        """Store a vote."""
        self.do(self.store.runs.apply(self.step(vote=vote, **more)))

    def refuse(self, kind: type[Exception], transition: Transition) -> None:
        """Check that a change is refused, and that nothing of it is stored."""
        before = self.approval(), self.recorded()
        told = Deferred.fromCoroutine(self.store.runs.apply(transition))
        self.finish()
        self.failureResultOf(told, kind)
        self.assertEqual((self.approval(), self.recorded()), before)

    def recorded(self) -> int:
        """The number of votes on record."""
        return len(self.do(self.store.audit.list(AuditQuery(types=("approval.voted",)))).items)


class VotesTests(VotesCase):
    """The rows of votes."""

    def test_whole(self) -> None:
        """Each part of a vote is read as it was stored, the oldest first, after a restart too; the run still waits."""
        later = NOON + timedelta(seconds=1, microseconds=5)
        full = vote_of(ALICE, reason="seen\u202e\n", not_before=later, signed=SIGNED, decided_at=later)
        for vote in (full, vote_of(BOB, mark=None)):
            self.vote(vote)
        self.assertEqual(self.approval().votes, (vote_of(BOB, mark=None), full))
        self.assertEqual((self.approval().run.state, self.recorded()), (RunState.PENDING, 2))
        self.store = self.opened()
        self.assertEqual(self.approval().votes, (vote_of(BOB, mark=None), full))

    def test_one_each(self) -> None:
        """A person has one vote on a run, which the next one replaces; the operator and other runs have their own."""
        self.receive(example_run("run-2"))
        for reason in ("one", "two"):
            self.vote(vote_of(ALICE, reason=reason))
        self.vote(evolve(vote_of(None), decided_at=NOON + timedelta(seconds=1)))
        self.assertEqual(
            [(each.person, each.reason) for each in self.approval().votes], [("per_1", "two"), ("operator", None)]
        )
        self.assertEqual(self.approval("run-2").votes, ())

    def test_listed(self) -> None:
        """They are read with the approvals of a list too."""
        self.vote(vote_of(ALICE))
        page = self.do(self.store.runs.approvals(RunQuery(states=(RunState.PENDING,))))
        self.assertEqual([[vote.name for vote in each.votes] for each in page.items], [["alice"]])

    def test_lapsed(self) -> None:
        """The vote of an account that is removed or changed is marked; that of another is not, nor the operator's."""
        for vote in (vote_of(ALICE), vote_of(BOB), vote_of(None)):
            self.vote(vote)
        changed = evolve(ALICE, revision=2, groups=())
        self.do(self.store.people.change(changed, 1, ()))
        self.assertEqual(self.lapsed(), ["alice"])
        self.do(self.store.people.remove(BOB, ()))
        self.assertEqual(self.lapsed(), ["alice", "bob"])

    def lapsed(self) -> list[str]:
        """Whose votes are marked so."""
        return sorted(each.name for each in self.approval().votes if each.has_lapsed)


class VotingTests(VotesCase):
    """What the transaction of a vote checks."""

    def test_voter(self) -> None:
        """The account must be in force as at the login, and one whom the rule lets approve."""
        viewer = evolve(BOB, role=Role.VIEWER)
        for vote in (
            vote_of(evolve(ALICE, revision=2)),
            vote_of(evolve(ALICE, id="per_3")),
            vote_of(viewer),
            vote_of(None, person="per_1", decided_by="alice.ab"),
        ):
            self.refuse(Forbidden, self.step(vote=vote))
        alone = ApproverRule((("alice",),), count=2)
        for vote in (vote_of(BOB), vote_of(None)):
            self.refuse(Forbidden, self.step(vote=vote, approvers=alone))
        self.vote(vote_of(ALICE), approvers=alone)

    def test_at_once(self) -> None:
        """A vote is stored only beside those that were read: not if one was added, replaced or lapsed since."""
        seen = self.approval().votes
        self.vote(vote_of(ALICE), verify=require_votes(seen))
        self.refuse(VotesChanged, self.step(vote=vote_of(BOB), verify=require_votes(seen)))
        seen = self.approval().votes
        self.vote(vote_of(ALICE, reason="again"))
        self.refuse(Conflict, self.step(vote=vote_of(BOB), verify=require_votes(seen)))
        seen = self.approval().votes
        self.do(self.store.people.remove(ALICE, ()))
        self.refuse(VotesChanged, self.step(vote=vote_of(BOB), verify=require_votes(seen)))
        self.vote(vote_of(BOB), verify=require_votes(self.approval().votes))

    def test_last(self) -> None:
        """The last vote is stored with the decision, what it counts, and the rule; a second one finds it decided."""
        self.vote(vote_of(ALICE))
        counted = (vote_of(ALICE).mark_digest, "sha256:1")
        decision = Decision(
            True, example_ask().digest, "bob.ab", account=BOB.login, approvers_digest=TWO.digest, counted=counted
        )
        self.do(self.store.runs.apply(self.step(RunState.APPROVED, vote=vote_of(BOB), decision=decision)))
        found = self.approval()
        self.assertEqual((found.counted, found.approvers_digest, found.forced), (counted, TWO.digest, False))
        self.assertEqual(([each.name for each in found.votes], found.run.state), (["alice", "bob"], RunState.APPROVED))
        self.refuse(StateConflict, self.step(vote=vote_of(None)))

    def test_forced(self) -> None:
        """A forced approval is stored as one, by an administrator with a reason alone."""
        root = PersonAccount("per_9", "root", Role.ADMINISTRATOR, 1, NOON)
        self.do(self.store.people.add(root, ()))
        for account, reason, may in (
            (ALICE, "down", False),
            (root, None, False),
            (root, "\u200b ", False),
            (root, "down", True),
        ):
            decision = Decision(
                True, example_ask().digest, f"{account.name}.ab", reason, account=account.login, forced=True
            )
            transition = self.step(RunState.APPROVED, decision=decision)
            if not may:
                self.refuse(Forbidden, transition)
        self.do(self.store.runs.apply(transition))
        self.assertEqual((self.approval().forced, self.approval().votes), (True, ()))


class OwnerTests(DatabaseCase):
    """Whose runs and sessions are."""

    def test_run(self) -> None:
        """A run has the owner with which it was received, for good, and is listed with it; the operator's has none."""
        store = self.opened()
        for run_id, owner in (("run-1", OWNER), ("run-2", None), ("run-3", Owner("per_2", "alice"))):
            run = example_run(run_id, owner=owner)
            asked = example_transition(run, RunState.PENDING, ask=example_ask())
            received, _ = self.do(store.runs.receive(run, (asked,), PendingLimits()))
            self.do(store.runs.apply(example_transition(evolve(received, owner=None), RunState.CANCELLED)))
        store = self.opened()
        owners = [self.do(store.runs.get(each)) for each in ("run-1", "run-2", "run-3")]
        self.assertEqual([each and each.owner for each in owners], [OWNER, None, Owner("per_2", "alice")])
        listed = self.do(store.runs.list(RunQuery())).items
        self.assertEqual({each.id: each.owner for each in listed}["run-1"], OWNER)

    def test_session(self) -> None:
        """So has a session, by its ID, by its token, and in the list; also one that has ended."""
        store = self.opened()
        for number, owner in enumerate((OWNER, None)):
            session = evolve(example_session(f"s-{number}"), owner=owner)
            self.do(store.sessions.open(session, bytes([number]) * 32, bytes([8 + number]) * 32, (example_event(),)))
        store = self.opened()
        found = [self.do(store.sessions.get(f"s-{number}")) for number in (0, 1)]
        found += [self.do(store.sessions.by_token(bytes([number]) * 32)) for number in (0, 1)]
        self.assertEqual([each and each.owner for each in found], [OWNER, None, OWNER, None])
        self.do(store.sessions.end("s-0", None, ()))
        listed = self.do(store.sessions.list(False, 10, None)).items
        self.assertEqual({each.id: each.owner for each in listed}, {"s-0": OWNER, "s-1": None})
