"""Accounts of people for whom a sign-in provider vouches."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.errors import Conflict, Forbidden, NotFound
from aileron.model.people import AccountLogin, PersonAccount, Role

from .case import OPERATOR, PASSPHRASE, PeopleCase

ID = "oidc_" + "a" * 32


class ProvidedTests(PeopleCase):
    """An account whose ID follows from the provider's subject."""

    def vouch(self, role: Role = Role.APPROVER, name: str = "alice-aaaa") -> AccountLogin:
        """Sign in, as the provider's answer has it."""
        login: AccountLogin = self.now(self.accounts.sign_in(ID, name, role, {"issuer": "https://a.example"}))
        return login

    def fails(self, kind: type[Exception], work: object) -> None:
        """Check that a coroutine fails."""
        self.failureResultOf(Deferred.fromCoroutine(work), kind)  # type: ignore[arg-type]

    def test_made(self) -> None:
        """The account is made once, is in force, and has the role of the last sign-in."""
        first = self.vouch()
        self.assertEqual(self.vouch(name="other"), first)
        self.assertIs(self.now(self.accounts.find_role(first)), Role.APPROVER)
        second = self.vouch(Role.VIEWER)
        self.assertIsNone(self.now(self.accounts.find_role(first)))
        self.assertIs(self.now(self.accounts.find_role(second)), Role.VIEWER)
        self.assertEqual([each.name for each in self.now(self.accounts.list())], ["alice-aaaa"])
        self.assertEqual(self.people.describe(self.account("alice-aaaa")), "active")

    def test_no_passphrase(self) -> None:
        """The operator gives it neither a passphrase nor a role, and no passphrase opens it."""
        login = self.vouch()
        self.fails(Conflict, self.accounts.invite("alice-aaaa", OPERATOR))
        self.fails(Conflict, self.accounts.change_role("alice-aaaa", Role.ADMINISTRATOR, OPERATOR))
        self.assertIsNone(self.now(self.accounts.check("alice-aaaa", PASSPHRASE)))
        self.assertIs(self.now(self.accounts.find_role(login)), Role.APPROVER)

    def test_removed(self) -> None:
        """A removed person does not come back until the operator allows it, and the earlier login stays ended."""
        login = self.vouch()
        self.now(self.accounts.remove("alice-aaaa", OPERATOR))
        self.assertIsNone(self.now(self.accounts.find_role(login)))
        self.fails(Forbidden, self.accounts.sign_in(ID, "alice-aaaa", Role.APPROVER, {}))
        self.assertEqual(self.accounts.list_removed(), {ID: "alice-aaaa"})
        self.fails(NotFound, self.accounts.allow("bob"))
        self.now(self.accounts.allow("alice-aaaa"))
        self.clock.advance(1)
        self.vouch()
        self.assertIsNone(self.now(self.accounts.find_role(login)))

    def test_removed_by_passphrase(self) -> None:
        """An account with a passphrase that is removed leaves nothing behind."""
        self.joined("bob")
        self.now(self.accounts.remove("bob", OPERATOR))
        self.assertEqual((self.accounts.list_removed(), self.book.people()), ({}, {}))

    def test_forged(self) -> None:
        """A row that something else wrote, or raised, lets nobody in and is not put in force."""
        row = PersonAccount(ID, "alice-aaaa", Role.ADMINISTRATOR, 1, self.accounts._now())
        self.now(self.store.people.add(row, ()))
        self.fails(Conflict, self.accounts.sign_in(ID, "alice-aaaa", Role.ADMINISTRATOR, {}))
        self.fails(Conflict, self.accounts.sign_in(ID, "alice-aaaa", Role.VIEWER, {}))
        self.assertEqual(self.book.people(), {})

    def test_raised(self) -> None:
        """A row whose role something else has raised is refused."""
        self.vouch()
        account = self.account("alice-aaaa")
        raised = evolve(account, role=Role.ADMINISTRATOR, revision=2)
        self.now(self.store.people.change(raised, 1, ()))
        self.fails(Conflict, self.accounts.sign_in(ID, "alice-aaaa", Role.ADMINISTRATOR, {}))

    def test_name_taken(self) -> None:
        """A name that another account has is not shared."""
        self.add("alice-aaaa")
        self.fails(Conflict, self.accounts.sign_in(ID, "alice-aaaa", Role.APPROVER, {}))
