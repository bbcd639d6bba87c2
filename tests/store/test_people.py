"""Accounts are stored with their events, and change only from the revision that the change was made from."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.audit import DAEMON
from aileron.model.authority import PendingLimits
from aileron.model.errors import Forbidden
from aileron.model.people import (
    AccountLogin,
    AccountPasskey,
    Invitation,
    PasskeyUse,
    PersonAccount,
    Role,
    Verifier,
)
from aileron.model.queries import AuditQuery
from aileron.model.runs import Decision, Run, RunState
from aileron.store._people import MOST_PEOPLE
from aileron.testing import example_ask, example_event, example_run, example_transition
from aileron.testing._examples import NOON

from .case import DatabaseCase

ALICE = PersonAccount("per_1", "alice", Role.APPROVER, 1, NOON, invitation=Invitation("ab" * 32, NOON))
EVENT = (example_event("people.added"),)


class PeopleTests(DatabaseCase):
    """A store with one account."""

    def setUp(self) -> None:
        super().setUp()
        self.people = self.opened().people
        self.assertTrue(self.do(self.people.add(ALICE, EVENT)))

    def test_whole(self) -> None:
        """An account is read as it was stored, with and without its parts."""
        self.assertEqual(self.do(self.people.all()), (ALICE,))
        joined = evolve(ALICE, revision=2, verifier=Verifier("00", "01", 3, 65536, 4), invitation=None)
        self.assertTrue(self.do(self.people.change(joined, 1, ())))
        self.assertEqual(self.do(self.people.get("per_1")), joined)
        self.assertIsNone(self.do(self.people.get("per_2")))

    def test_name_taken(self) -> None:
        """A name belongs to one account, and nothing is recorded of another."""
        self.assertFalse(self.do(self.people.add(evolve(ALICE, id="per_2"), EVENT)))
        self.assertEqual(self.do(self.people.all()), (ALICE,))

    def test_raced(self) -> None:
        """Of two changes that were made from one revision the second is refused, a removal as well."""
        first, second = (evolve(ALICE, revision=2, role=role) for role in (Role.VIEWER, Role.ADMINISTRATOR))
        self.assertTrue(self.do(self.people.change(first, 1, ())))
        self.assertFalse(self.do(self.people.change(second, 1, ())))
        self.assertFalse(self.do(self.people.remove(ALICE, ())))
        self.assertEqual(self.do(self.people.all()), (first,))
        self.assertTrue(self.do(self.people.remove(first, ())))
        self.assertEqual(self.do(self.people.all()), ())

    def test_recorded(self) -> None:
        """What was refused is not on record."""
        store = self.opened()
        event = evolve(example_event("people.added"), id="01" * 13, actor=DAEMON)
        self.assertFalse(self.do(store.people.add(evolve(ALICE, id="per_2"), (event,))))
        kept = self.do(store.audit.list(AuditQuery(types=("people.added",))))
        self.assertEqual(len(kept.items), 1)

    def test_too_many(self) -> None:
        """There is a limit to the number of accounts."""
        for number in range(2, MOST_PEOPLE + 1):
            self.do(self.people.add(evolve(ALICE, id=f"per_{number}", name=f"a{number}"), ()))
        self.assertFalse(self.do(self.people.add(evolve(ALICE, id="per_x", name="x"), ())))


KEY = AccountPasskey("key-1", "Laptop", "AAAA", NOON, 0, "phone.example.org", True)
HOLDER = evolve(ALICE, revision=2, invitation=None, passkeys=(KEY,), login_revision=1)


class UseTests(DatabaseCase):
    """A store with one account that has a passkey."""

    def setUp(self) -> None:
        super().setUp()
        self.people = self.opened().people
        self.do(self.people.add(ALICE, ()))
        self.assertTrue(self.do(self.people.change(HOLDER, 1, EVENT)))

    def use(self, count: int, challenge: str, minutes: int = 0, account: PersonAccount = HOLDER) -> bool:
        """Use the passkey, and return whether that counts."""
        at = NOON + timedelta(minutes=minutes)
        use = PasskeyUse("key-1", count, at)
        return bool(self.do(self.people.use_passkey(account, use, challenge, at + timedelta(minutes=5))))

    def test_whole(self) -> None:
        """An account is read with its passkeys, and each passkey with its last use."""
        self.assertEqual(self.do(self.people.get("per_1")), HOLDER)
        self.assertEqual(self.do(self.people.list_uses("per_1")), {})
        self.assertTrue(self.use(3, "a", 1))
        expected = {"key-1": PasskeyUse("key-1", 3, NOON + timedelta(minutes=1))}
        self.assertEqual(self.do(self.people.list_uses("per_1")), expected)
        self.assertEqual(self.do(self.people.list_uses("per_2")), {})

    def test_once(self) -> None:
        """A challenge counts once, as long as it could be sent again; also without a counter."""
        self.assertTrue(self.use(0, "a"))
        self.assertFalse(self.use(0, "a"))
        self.assertFalse(self.use(0, "a", 4))
        self.assertTrue(self.use(0, "b", 6))
        self.assertEqual([tuple(row) for row in self.query("SELECT challenge FROM used_challenges")], [("b",)])

    def test_counter(self) -> None:
        """A counter grows, and one that counted once does not stop."""
        self.assertTrue(self.use(3, "a"))
        for number, count in enumerate((3, 2, 0)):
            self.assertFalse(self.use(count, f"b{number}"))
        self.assertTrue(self.use(4, "c"))

    def test_changed(self) -> None:
        """A passkey counts only while its account is as it was when the use was verified."""
        changed = evolve(HOLDER, revision=3, role=Role.VIEWER)
        self.do(self.people.change(changed, 2, ()))
        self.assertFalse(self.use(1, "a"))
        self.assertTrue(self.use(1, "a", account=changed))
        self.do(self.people.remove(changed, ()))
        self.assertFalse(self.use(2, "b", account=changed))

    def test_forgotten(self) -> None:
        """The use of a removed passkey is deleted, as are those of a removed account."""
        other = evolve(KEY, id="key-2")
        both = evolve(HOLDER, revision=3, passkeys=(KEY, other))
        self.do(self.people.change(both, 2, ()))
        self.use(1, "a", account=both)
        self.do(self.people.use_passkey(both, PasskeyUse("key-2", 1, NOON), "b", NOON + timedelta(minutes=5)))
        left = evolve(HOLDER, revision=4, passkeys=(other,))
        self.do(self.people.change(left, 3, ()))
        self.assertEqual([*self.do(self.people.list_uses("per_1"))], ["key-2"])
        self.do(self.people.remove(left, ()))
        self.assertEqual(self.do(self.people.list_uses("per_1")), {})


class DecisionTests(DatabaseCase):
    """A pending run, and a decision of a person."""

    def setUp(self) -> None:
        super().setUp()
        self.store = self.opened()
        self.do(self.store.people.add(ALICE, ()))
        run = example_run()
        asked = example_transition(run, RunState.PENDING, ask=example_ask())
        self.pending, _ = self.do(self.store.runs.receive(run, (asked,), PendingLimits()))

    def decide(self, login: AccountLogin | None, decided_by: str = "alice.ab") -> Deferred[Run]:
        """Approve the run."""
        decision = Decision(True, example_ask().digest, decided_by, account=login)
        return Deferred.fromCoroutine(
            self.store.runs.apply(example_transition(self.pending, RunState.APPROVED, decision=decision))
        )

    def refuse(self, login: AccountLogin | None, decided_by: str = "alice.ab") -> None:
        """Check that the decision is refused, and that nothing of it is stored."""
        told = self.decide(login, decided_by)
        self.finish()
        self.failureResultOf(told, Forbidden)
        run = self.do(self.store.runs.get(self.pending.id))
        assert run is not None
        self.assertIs(run.state, RunState.PENDING)

    def test_recorded(self) -> None:
        """A person with an account as at the login decides."""
        told = self.decide(ALICE.login)
        self.finish()
        self.assertIs(self.successResultOf(told).state, RunState.APPROVED)

    def test_removed(self) -> None:
        """An account that was removed or changed while the decision was on its way decides nothing."""
        login = ALICE.login
        self.do(self.store.people.change(evolve(ALICE, revision=2), 1, ()))
        self.refuse(login)
        self.do(self.store.people.remove(evolve(ALICE, revision=2), ()))
        self.refuse(login)

    def test_role(self) -> None:
        """A viewer decides nothing."""
        viewer = evolve(ALICE, role=Role.VIEWER, revision=2)
        self.do(self.store.people.change(viewer, 1, ()))
        self.refuse(viewer.login)

    def test_altered(self) -> None:
        """A row that a program gives another role or name, with the same revision, decides nothing."""
        for altered in (evolve(ALICE, role=Role.ADMINISTRATOR), evolve(ALICE, name="root")):
            self.do(self.store.people.remove(ALICE, ()))
            self.do(self.store.people.add(altered, ()))
            self.refuse(ALICE.login)
            self.do(self.store.people.remove(altered, ()))
            self.do(self.store.people.add(ALICE, ()))

    def test_unnamed(self) -> None:
        """A decision in a person's name without the account is refused; the operator's has none."""
        self.refuse(None)
        told = self.decide(None, "ops_1")
        self.finish()
        self.assertIs(self.successResultOf(told).state, RunState.APPROVED)
