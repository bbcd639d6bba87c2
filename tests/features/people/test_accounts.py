"""An account has rights only as Aileron stored it, and a link sets one passphrase."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.features.people._accounts import INVITED
from aileron.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable, Unauthorized, VaultLocked
from aileron.model.people import Role, Verifier
from aileron.vault import KdfParameters

from .case import OPERATOR, PASSPHRASE, PeopleCase, derive_fast


class JoinTests(PeopleCase):
    """A link sets the passphrase of an account once."""

    def refused(self, kind: type[Exception], work: Any) -> None:
        """Check that a coroutine fails so, at once."""
        self.failureResultOf(Deferred.fromCoroutine(work), kind)

    def test_joined(self) -> None:
        """Whoever has the link sets the passphrase, and signs in with it."""
        login = self.now(self.accounts.join(self.add(), PASSPHRASE))
        self.assertEqual(self.now(self.accounts.check("alice", PASSPHRASE)), login)
        self.assertIsNone(self.now(self.accounts.check("alice", PASSPHRASE + "x")))
        self.assertIsNone(self.now(self.accounts.check("bob", PASSPHRASE)))
        self.assertEqual(self.events()[-2:], ["people.added", "people.joined"])

    def test_once(self) -> None:
        """A link that was used sets nothing."""
        code = self.add()
        self.now(self.accounts.join(code, PASSPHRASE))
        self.refused(Unauthorized, self.accounts.join(code, "another " + PASSPHRASE))
        self.assertIsNotNone(self.now(self.accounts.check("alice", PASSPHRASE)))

    def test_late(self) -> None:
        """A link lasts three days."""
        code = self.add()
        self.clock.advance(INVITED.total_seconds())
        self.refused(Unauthorized, self.accounts.join(code, PASSPHRASE))

    def test_weak(self) -> None:
        """A weak passphrase is refused, and the link stays good."""
        code = self.add()
        self.refused(InvalidRequest, self.accounts.join(code, "password1234"))
        self.now(self.accounts.join(code, PASSPHRASE))

    def test_invited_again(self) -> None:
        """A new link ends the passphrase, the earlier link and the logins before."""
        code = self.add()
        login = self.now(self.accounts.join(code, PASSPHRASE))
        _, again = self.now(self.accounts.invite("alice", OPERATOR))
        self.assertIsNone(self.now(self.accounts.check("alice", PASSPHRASE)))
        self.assertIsNone(self.now(self.accounts.find_role(login)))
        self.now(self.accounts.join(again, PASSPHRASE))

    def test_without_passphrase(self) -> None:
        """An account that was invited only lets nobody in, with no passphrase either."""
        self.add()
        for passphrase in ("", PASSPHRASE, "\0" * 32):
            self.assertIsNone(self.now(self.accounts.check("alice", passphrase)))

    def test_codes_are_not_stored(self) -> None:
        """Neither the code nor the passphrase is in the database."""
        code = self.add()
        self.assertNotIn(code, repr(self.now(self.store.people.all())))
        self.now(self.accounts.join(code, PASSPHRASE))
        verifier = self.account().verifier
        assert verifier is not None
        self.assertNotIn(PASSPHRASE.encode().hex(), verifier.key + verifier.salt)


class AtOnceTests(PeopleCase):
    """Two people use one link at the same time."""

    async def derive(self, passphrase: str, parameters: KdfParameters) -> bytes:
        """Let the second one finish while the first one's key is derived."""
        if passphrase.startswith("first"):
            await self.accounts.join(self.code, PASSPHRASE)
        return await derive_fast(passphrase, parameters)

    def test_at_once(self) -> None:
        """One of them has the account, and the other is told so."""
        self.code = self.add()
        work = self.accounts.join(self.code, "first " + PASSPHRASE)
        self.failureResultOf(Deferred.fromCoroutine(work), Unauthorized)
        self.assertIsNotNone(self.now(self.accounts.check("alice", PASSPHRASE)))


class ForgedTests(PeopleCase):
    """Something else writes into the database."""

    def setUp(self) -> None:
        """An account that has joined."""
        super().setUp()
        self.login = self.now(self.accounts.join(self.add(), PASSPHRASE))
        self.before = self.account()

    def write(self, **changes: Any) -> None:
        """Change the row without Aileron."""
        account = self.account()
        self.assertTrue(self.now(self.store.people.change(evolve(account, **changes), account.revision, ())))

    def test_role(self) -> None:
        """A role that was written there gives no rights, and takes those that were there."""
        self.write(role=Role.ADMINISTRATOR)
        self.assertIsNone(self.now(self.accounts.find_role(self.login)))
        self.assertIsNone(self.now(self.accounts.check("alice", PASSPHRASE)))

    def test_passphrase(self) -> None:
        """A passphrase that was written there lets nobody in."""
        forged = Verifier("00" * 16, self.now(derive_fast("mine", KdfParameters(bytes(16)))).hex(), 3, 65536, 4)
        self.write(verifier=forged)
        self.assertIsNone(self.now(self.accounts.check("alice", "mine")))

    def test_changed(self) -> None:
        """An altered account is not put in force by a change. It can be removed."""
        self.write(role=Role.ADMINISTRATOR)
        for work in (
            self.accounts.change_role("alice", Role.VIEWER, OPERATOR),
            self.accounts.invite("alice", OPERATOR),
        ):
            self.failureResultOf(Deferred.fromCoroutine(work), Conflict)
        self.assertEqual(self.people.describe(self.account()), "altered")
        self.now(self.accounts.remove("alice", OPERATOR))
        self.assertEqual(self.now(self.accounts.list()), ())

    def test_back(self) -> None:
        """A row that was kept aside has no rights after a change or a removal."""
        self.now(self.accounts.change_role("alice", Role.VIEWER, OPERATOR))
        self.assertTrue(self.now(self.store.people.change(self.before, self.account().revision, ())))
        self.assertIsNone(self.now(self.accounts.find_role(self.login)))
        self.now(self.accounts.remove("alice", OPERATOR))
        self.assertTrue(self.now(self.store.people.add(self.before, ())))
        self.assertIsNone(self.now(self.accounts.find_role(self.login)))
        self.assertIsNone(self.now(self.accounts.check("alice", PASSPHRASE)))

    def test_same_name(self) -> None:
        """A login of a removed account is none of a new account with its name."""
        self.now(self.accounts.remove("alice", OPERATOR))
        self.add("alice", Role.ADMINISTRATOR)
        self.assertIsNone(self.now(self.accounts.find_role(self.login)))


class ChangeTests(PeopleCase):
    """Changes by the operator."""

    def test_role(self) -> None:
        """The record has both roles."""
        self.add()
        changed = self.now(self.accounts.change_role("alice", Role.VIEWER, OPERATOR))
        self.assertEqual((changed.role, changed.revision), (Role.VIEWER, 2))
        self.assertEqual(self.events()[-1], "people.role_changed")

    def test_unknown(self) -> None:
        """An account that does not exist is not changed."""
        for work in (
            self.accounts.change_role("bob", Role.VIEWER, OPERATOR),
            self.accounts.invite("bob", OPERATOR),
            self.accounts.remove("bob", OPERATOR),
        ):
            self.failureResultOf(Deferred.fromCoroutine(work), NotFound)

    def test_taken(self) -> None:
        """A name can be given once."""
        self.add()
        self.failureResultOf(Deferred.fromCoroutine(self.accounts.add("alice", Role.VIEWER, OPERATOR)), Conflict)

    def test_reserved(self) -> None:
        """No account has the name of a role, or a name of the operator in a rule or a history."""
        for name in ("operator", "you", "administrator", "approver", "viewer"):
            work = self.accounts.add(name, Role.VIEWER, OPERATOR)
            self.failureResultOf(Deferred.fromCoroutine(work), Conflict)
        self.assertEqual(self.now(self.accounts.list()), ())

    def test_locked(self) -> None:
        """While the vault is locked, no account comes into force, and none is removed by half."""
        login = self.now(self.accounts.join(self.add(), PASSPHRASE))
        self.vault.lock()
        self.failureResultOf(Deferred.fromCoroutine(self.accounts.add("bob", Role.VIEWER, OPERATOR)), VaultLocked)
        self.assertEqual(self.people.describe(self.account("bob")), "altered")
        self.failureResultOf(Deferred.fromCoroutine(self.accounts.remove("alice", OPERATOR)), VaultLocked)
        self.assertEqual(self.now(self.accounts.find_role(login)), Role.APPROVER)

    def test_caller_leaves(self) -> None:
        """A change completes if its caller leaves, so that database and vault agree."""
        held: Deferred[None] = Deferred()
        self.accounts._turns.run(lambda: held)
        work = Deferred.fromCoroutine(self.accounts.add("alice", Role.VIEWER, OPERATOR))
        work.addErrback(lambda _: None)
        work.cancel()
        held.callback(None)
        self.assertEqual(self.people.describe(self.account()), "invited")

    def test_store_fails(self) -> None:
        """If the database fails, nothing is in force."""

        async def fail(*_: object) -> bool:
            raise StoreUnavailable("full")

        object.__setattr__(self.accounts, "_store", type("Failing", (), {"add": staticmethod(fail)})())
        work = self.accounts.add("alice", Role.VIEWER, OPERATOR)
        self.failureResultOf(Deferred.fromCoroutine(work), StoreUnavailable)
        self.assertEqual(self.book.people(), {})
