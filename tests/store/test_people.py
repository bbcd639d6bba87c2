"""Accounts are stored with their events, and change only from the revision that the change was made from."""

from __future__ import annotations

from attrs import evolve

from aileron.model.audit import DAEMON
from aileron.model.people import Invitation, PersonAccount, Role, Verifier
from aileron.model.queries import AuditQuery
from aileron.store._people import MOST_PEOPLE
from aileron.testing import example_event
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
