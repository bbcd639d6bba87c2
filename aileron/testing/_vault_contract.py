"""The tests that every implementation of L{IVault} and L{IBindings} must pass."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.converter import to_json
from aileron.credentials import DEFAULT_KIND
from aileron.model.errors import AileronError, BindingFailed, Conflict, InvalidRequest, NotFound, VaultLocked
from aileron.model.interfaces.vault import IBindings, ICredential, IVault
from aileron.model.people import Owner
from aileron.model.vault import Binding, NewBinding, Scope, VaultState

from ._case import MixedIn

CANARY = b"canary-7Qx2-secret"


def example_scope() -> Scope:
    """Return the scope of L{new_binding}."""
    return Scope(("slack.com:443",), "https://slack.com", "Authorization", "Bearer {key}")


def new_binding(identity: str = "me", secret: bytes = CANARY, connector: str = "builtin://slack") -> NewBinding:
    """Return a valid new binding."""
    return NewBinding(DEFAULT_KIND, "slack", identity, connector, secret, scope=example_scope())


def opened(case: SynchronousTestCase, credential: ICredential) -> bytes:
    """Return the secret of C{credential}, which must be available at once.

    :raises AileronError: if it cannot be revealed.
    """
    secret: bytes = case.successResultOf(Deferred.fromCoroutine(credential.reveal()))
    return secret


def does_not_open(case: SynchronousTestCase, credential: ICredential, kind: type[AileronError]) -> AileronError:
    """Check that revealing C{credential} fails with C{kind}, and return the error."""
    failure = case.failureResultOf(Deferred.fromCoroutine(credential.reveal()), kind)
    assert isinstance(failure.value, AileronError)
    return failure.value


class VaultContract(MixedIn):
    """Tests of L{IVault}.  Mix into a test case whose L{make_vault} returns an unlocked vault."""

    def make_vault(self) -> IVault:
        """Return an unlocked vault."""
        raise NotImplementedError

    def make_locked(self) -> IVault:
        """Return a vault that was not unlocked in this process."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{IVault}."""
        self.assertTrue(verifyObject(IVault, self.make_vault()))

    def test_unlocked(self) -> None:
        """An unlocked vault reports that it is unlocked, and that it was unlocked in this process."""
        vault = self.make_vault()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.UNLOCKED, True))

    def test_never_unlocked(self) -> None:
        """A vault that starts locked reports its state, and C{locked} returns a Deferred that has fired."""
        vault = self.make_locked()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.LOCKED, False))
        self.assertIsNone(self.successResultOf(vault.locked()))

    def test_lock(self) -> None:
        """A lock is reported and recorded. Locking is idempotent."""
        vault = self.make_vault()
        vault.lock()
        vault.lock()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.LOCKED, True))

    def test_told(self) -> None:
        """Each caller of C{locked} gets its own Deferred, which fires when the vault is locked and not before."""
        vault = self.make_vault()
        one, other = vault.locked(), vault.locked()
        self.assertNoResult(one)
        self.assertIsNot(one, other)
        vault.lock()
        self.assertIsNone(self.successResultOf(one))
        self.assertIsNone(self.successResultOf(other))
        self.assertIsNone(self.successResultOf(vault.locked()))

    def test_seen_by_the_told(self) -> None:
        """A caller of C{locked} finds the vault locked when its Deferred fires."""
        vault = self.make_vault()
        seen: list[VaultState] = []
        vault.locked().addCallback(lambda _: seen.append(vault.state()))
        vault.lock()
        self.assertEqual(seen, [VaultState.LOCKED])

    def test_cancelled(self) -> None:
        """If one caller of C{locked} cancels its Deferred, those of the others still fire."""
        vault = self.make_vault()
        one, other = vault.locked(), vault.locked()
        one.cancel()
        self.failureResultOf(one, CancelledError)
        vault.lock()
        self.assertIsNone(self.successResultOf(other))


class BindingsContract(MixedIn):
    """Tests of L{IBindings}.

    Mix into a test case whose L{make_bindings} returns empty bindings of an unlocked vault.
    """

    def make_bindings(self) -> IBindings:
        """Return empty bindings."""
        raise NotImplementedError

    def lock(self) -> None:
        """Lock the vault of the bindings."""
        raise NotImplementedError

    def set_up(self, bindings: IBindings, new: NewBinding) -> Binding:
        """Set up a binding and return it."""
        return self.successResultOf(Deferred.fromCoroutine(bindings.set_up(new)))

    def revoke(self, bindings: IBindings, name: str) -> Binding:
        """Revoke a binding and return it."""
        return self.successResultOf(Deferred.fromCoroutine(bindings.revoke(name)))

    def rebinding(self, bindings: IBindings, name: str, scope: Scope, base_url: str | None = None) -> Deferred[Binding]:
        """Start to encrypt the credential of a binding for another scope. The Deferred fires with the new binding."""
        return Deferred.fromCoroutine(bindings.rebind(name, scope, base_url))

    def rebind(self, bindings: IBindings, name: str, scope: Scope) -> Binding:
        """Encrypt the credential of a binding for another scope and base URL, and return the new binding."""
        return self.successResultOf(self.rebinding(bindings, name, scope, "https://slack.com/x"))

    def refuses(self, bindings: IBindings, new: NewBinding, error: type[Exception]) -> str:
        """Check that a set-up fails and changes nothing, and return the error's text."""
        before = bindings.list()
        failure = self.failureResultOf(Deferred.fromCoroutine(bindings.set_up(new)), error)
        self.assertEqual(bindings.list(), before)
        return f"{failure.value!r} {failure.value}"

    def test_provides(self) -> None:
        """The bindings provide IBindings, and their credentials ICredential."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.assertTrue(verifyObject(IBindings, bindings))
        self.assertTrue(verifyObject(ICredential, bindings.credential(made, example_scope())))

    def test_set_up(self) -> None:
        """A binding is found by its name and its connector, and its credential can be revealed."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.assertEqual((made.name, made.connector), (f"{DEFAULT_KIND}/slack/me", "builtin://slack"))
        self.assertEqual(bindings.get(f"{DEFAULT_KIND}/slack/me"), made)
        self.assertEqual(bindings.for_connector("builtin://slack"), (made,))
        self.assertEqual(bindings.for_connector("builtin://other"), ())
        self.assertEqual(opened(self, bindings.credential(made, example_scope())), CANARY)

    def test_owner(self) -> None:
        """A binding stores the account whose agents alone use it, and its credential opens for that binding alone."""
        bindings, owner = self.make_bindings(), Owner("per_1", "alice")
        made = self.set_up(bindings, attrs.evolve(new_binding(), owner=owner))
        (listed,) = bindings.list()
        self.assertEqual((made.owner, listed), (owner, made))
        self.assertEqual(opened(self, bindings.credential(made, example_scope())), CANARY)

    def test_unknown(self) -> None:
        """An unknown name returns None and cannot be revoked."""
        bindings = self.make_bindings()
        self.assertIsNone(bindings.get(f"{DEFAULT_KIND}/slack/me"))
        self.failureResultOf(Deferred.fromCoroutine(bindings.revoke(f"{DEFAULT_KIND}/slack/me")), NotFound)

    def test_by_name(self) -> None:
        """Bindings are listed in the order of their names."""
        bindings = self.make_bindings()
        for identity in ("b", "c", "a"):
            self.set_up(bindings, new_binding(identity))
        self.assertEqual([each.identity for each in bindings.list()], ["a", "b", "c"])

    def test_twice(self) -> None:
        """A second binding with the same name is refused, and the first secret stays."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.refuses(bindings, new_binding(secret=b"other"), Conflict)
        self.assertEqual(opened(self, bindings.credential(made, example_scope())), CANARY)

    def test_malformed(self) -> None:
        """A malformed part is refused, and the message contains no secret."""
        bindings, good = self.make_bindings(), new_binding()
        for change in (
            {"kind": "oauth2"},
            {"service": "Slack/x"},
            {"identity": ""},
            {"identity": "a\nb"},
            {"connector": "slack"},
            {"base_url": "http://example.com"},
            {"account": ""},
            {"scope": attrs.evolve(example_scope(), hosts=("slack.com:443\n",))},
            {"scope": attrs.evolve(example_scope(), base_url="")},
            {"scope": attrs.evolve(example_scope(), header="X Y")},
            {"scope": attrs.evolve(example_scope(), format="Bearer")},
            {"scope": attrs.evolve(example_scope(), settings={"query": "key\n"})},
            {"secret": b""},
            {"secret": CANARY + b"\r\nX-Evil: 1"},
        ):
            self.assertNotIn("canary", self.refuses(bindings, attrs.evolve(good, **change), InvalidRequest))

    def test_revoked(self) -> None:
        """A revoked binding is removed, and its credential fails."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made, example_scope())
        self.assertEqual(self.revoke(bindings, made.name), made)
        self.assertEqual(bindings.list(), ())
        does_not_open(self, credential, BindingFailed)

    def test_new_revision(self) -> None:
        """A new binding with an old name is another binding, which the old credential does not reveal."""
        bindings = self.make_bindings()
        old = self.set_up(bindings, new_binding())
        self.revoke(bindings, old.name)
        new = self.set_up(bindings, new_binding(secret=b"other"))
        self.assertGreater(new.revision, old.revision)
        does_not_open(self, bindings.credential(old, example_scope()), BindingFailed)
        self.assertEqual(opened(self, bindings.credential(new, example_scope())), b"other")

    def test_other_scope(self) -> None:
        """A credential is revealed only for the exact scope that it was encrypted for."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        for change in (
            {"hosts": ("slack.com:443", "evil.example:443")},
            {"base_url": "https://evil.example"},
            {"header": "X-Debug"},
            {"format": "{key}"},
            {"settings": {"query": "key"}},
        ):
            other = bindings.credential(made, attrs.evolve(example_scope(), **change))
            error = does_not_open(self, other, BindingFailed)
            self.assertNotIn("canary", f"{error}{error.details}")
            self.assertEqual(error.details["sealed_for"], to_json(example_scope()))

    def test_no_scope(self) -> None:
        """A credential stored without a scope cannot be revealed."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, attrs.evolve(new_binding(), scope=None))
        does_not_open(self, bindings.credential(made, example_scope()), BindingFailed)

    def test_rebound(self) -> None:
        """A rebound credential is revealed only for the new scope, and has a new revision."""
        bindings, scope = self.make_bindings(), attrs.evolve(example_scope(), header="X-Key")
        old = self.set_up(bindings, new_binding())
        new = self.rebind(bindings, old.name, scope)
        self.assertEqual(new, attrs.evolve(old, scope=scope, base_url="https://slack.com/x", revision=new.revision))
        self.assertGreater(new.revision, old.revision)
        self.assertEqual(bindings.list(), (new,))
        self.assertEqual(opened(self, bindings.credential(new, scope)), CANARY)
        for binding, wanted in ((old, example_scope()), (old, scope), (new, example_scope())):
            does_not_open(self, bindings.credential(binding, wanted), BindingFailed)

    def test_not_rebound(self) -> None:
        """Rebinding an unknown binding, or with malformed parts, is refused and changes nothing."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.failureResultOf(self.rebinding(bindings, f"{DEFAULT_KIND}/slack/you", example_scope()), NotFound)
        self.failureResultOf(self.rebinding(bindings, made.name, example_scope(), "http://example.com"), InvalidRequest)
        self.failureResultOf(
            self.rebinding(bindings, made.name, attrs.evolve(example_scope(), format="")), InvalidRequest
        )
        self.assertEqual(bindings.list(), (made,))

    def test_locked(self) -> None:
        """While locked, bindings are listed, but cannot be revealed, added or removed."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made, example_scope())
        self.lock()
        self.assertEqual(bindings.list(), (made,))
        does_not_open(self, credential, VaultLocked)
        self.refuses(bindings, new_binding("other"), VaultLocked)
        self.failureResultOf(Deferred.fromCoroutine(bindings.revoke(made.name)), VaultLocked)
        self.failureResultOf(self.rebinding(bindings, made.name, example_scope()), VaultLocked)
        self.assertEqual(bindings.list(), (made,))

    def test_quiet(self) -> None:
        """No secret is visible in the repr of a binding, a new binding or a credential."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made, example_scope())
        kind: Any = type(credential)
        inside = [getattr(credential, each.name) for each in attrs.fields(kind)]
        shown = repr((new_binding(), made, bindings, credential, inside))
        self.assertNotIn("canary", shown)
