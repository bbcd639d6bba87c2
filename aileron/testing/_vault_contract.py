"""What every vault and every set of bindings must do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from twisted.internet.defer import CancelledError, Deferred
from zope.interface.verify import verifyObject

from aileron.errors import BindingFailed, Conflict, InvalidRequest, NotFound, VaultLocked
from aileron.interfaces import IBindings, ICredential, IVault
from aileron.values import Binding, NewBinding, VaultState

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase as _Case
else:
    _Case = object

CANARY = b"canary-7Qx2-secret"


def new_binding(identity: str = "me", secret: bytes = CANARY, connector: str = "builtin://slack") -> NewBinding:
    """A binding that nothing is wrong with."""
    return NewBinding("api_key", "slack", identity, connector, secret)


class VaultContract(_Case):
    """Mix into a test case whose L{make_vault} makes an unlocked vault."""

    def make_vault(self) -> IVault:
        """An unlocked vault."""
        raise NotImplementedError

    def make_locked(self) -> IVault:
        """A vault that has not been unlocked in this life."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """It provides IVault."""
        self.assertTrue(verifyObject(IVault, self.make_vault()))

    def test_unlocked(self) -> None:
        """Unlocked it says so, and that it was."""
        vault = self.make_vault()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.UNLOCKED, True))

    def test_never_unlocked(self) -> None:
        """Started locked it says so, and who waits for that waits no longer."""
        vault = self.make_locked()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.LOCKED, False))
        self.assertIsNone(self.successResultOf(vault.locked()))

    def test_lock(self) -> None:
        """Locking is seen, remembered, and safe twice."""
        vault = self.make_vault()
        vault.lock()
        vault.lock()
        self.assertEqual((vault.state(), vault.ever_unlocked()), (VaultState.LOCKED, True))

    def test_told(self) -> None:
        """Everyone who waits has a Deferred of his own, which fires when it is locked and not before."""
        vault = self.make_vault()
        one, other = vault.locked(), vault.locked()
        self.assertNoResult(one)
        self.assertIsNot(one, other)
        vault.lock()
        self.assertIsNone(self.successResultOf(one))
        self.assertIsNone(self.successResultOf(other))
        self.assertIsNone(self.successResultOf(vault.locked()))

    def test_seen_by_the_told(self) -> None:
        """Who is told sees a locked vault."""
        vault = self.make_vault()
        seen: list[VaultState] = []
        vault.locked().addCallback(lambda _: seen.append(vault.state()))
        vault.lock()
        self.assertEqual(seen, [VaultState.LOCKED])

    def test_cancelled(self) -> None:
        """One who waits no longer does not keep the others from being told."""
        vault = self.make_vault()
        one, other = vault.locked(), vault.locked()
        one.cancel()
        self.failureResultOf(one, CancelledError)
        vault.lock()
        self.assertIsNone(self.successResultOf(other))


class BindingsContract(_Case):
    """Mix into a test case whose L{make_bindings} makes empty bindings of an unlocked vault."""

    def make_bindings(self) -> IBindings:
        """Empty bindings."""
        raise NotImplementedError

    def lock(self) -> None:
        """Lock the vault that they lie in."""
        raise NotImplementedError

    def set_up(self, bindings: IBindings, new: NewBinding) -> Binding:
        """Set one up."""
        return self.successResultOf(Deferred.fromCoroutine(bindings.set_up(new)))

    def revoke(self, bindings: IBindings, name: str) -> Binding:
        """Revoke one."""
        return self.successResultOf(Deferred.fromCoroutine(bindings.revoke(name)))

    def refuses(self, bindings: IBindings, new: NewBinding, error: type[Exception]) -> str:
        """The error's text of a set-up that fails and leaves nothing."""
        before = bindings.list()
        failure = self.failureResultOf(Deferred.fromCoroutine(bindings.set_up(new)), error)
        self.assertEqual(bindings.list(), before)
        return f"{failure.value!r} {failure.value}"

    def test_provides(self) -> None:
        """They provide IBindings, and their credentials ICredential."""
        bindings = self.make_bindings()
        self.assertTrue(verifyObject(IBindings, bindings))
        self.assertTrue(verifyObject(ICredential, bindings.credential(self.set_up(bindings, new_binding()))))

    def test_set_up(self) -> None:
        """A binding is found by its name and its connector, and its credential opens."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.assertEqual((made.name, made.connector), ("api_key/slack/me", "builtin://slack"))
        self.assertEqual(bindings.get("api_key/slack/me"), made)
        self.assertEqual(bindings.for_connector("builtin://slack"), (made,))
        self.assertEqual(bindings.for_connector("builtin://other"), ())
        self.assertEqual(bindings.credential(made).reveal(), CANARY)

    def test_unknown(self) -> None:
        """A name that nobody gave is None, and cannot be revoked."""
        bindings = self.make_bindings()
        self.assertIsNone(bindings.get("api_key/slack/me"))
        self.failureResultOf(Deferred.fromCoroutine(bindings.revoke("api_key/slack/me")), NotFound)

    def test_by_name(self) -> None:
        """The list is in the order of names."""
        bindings = self.make_bindings()
        for identity in ("b", "c", "a"):
            self.set_up(bindings, new_binding(identity))
        self.assertEqual([each.identity for each in bindings.list()], ["a", "b", "c"])

    def test_twice(self) -> None:
        """A name is given once; the first secret stays."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.refuses(bindings, new_binding(secret=b"other"), Conflict)
        self.assertEqual(bindings.credential(made).reveal(), CANARY)

    def test_malformed(self) -> None:
        """A malformed part is refused, and the message tells no secret."""
        bindings, good = self.make_bindings(), new_binding()
        for change in (
            {"kind": "oauth2"},
            {"service": "Slack/x"},
            {"identity": ""},
            {"identity": "a\nb"},
            {"connector": "slack"},
            {"base_url": "http://example.com"},
            {"account": ""},
            {"secret": b""},
            {"secret": CANARY + b"\r\nX-Evil: 1"},
        ):
            self.assertNotIn("canary", self.refuses(bindings, attrs.evolve(good, **change), InvalidRequest))

    def test_revoked(self) -> None:
        """A revoked binding is gone, and its credential fails."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made)
        self.assertEqual(self.revoke(bindings, made.name), made)
        self.assertEqual(bindings.list(), ())
        self.assertRaises(BindingFailed, credential.reveal)

    def test_new_revision(self) -> None:
        """A binding made anew under an old name is another: the old one's credential does not open it."""
        bindings = self.make_bindings()
        old = self.set_up(bindings, new_binding())
        self.revoke(bindings, old.name)
        new = self.set_up(bindings, new_binding(secret=b"other"))
        self.assertGreater(new.revision, old.revision)
        self.assertRaises(BindingFailed, bindings.credential(old).reveal)
        self.assertEqual(bindings.credential(new).reveal(), b"other")

    def test_locked(self) -> None:
        """While locked they are listed, but none opens, comes or goes."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made)
        self.lock()
        self.assertEqual(bindings.list(), (made,))
        self.assertRaises(VaultLocked, credential.reveal)
        self.refuses(bindings, new_binding("other"), VaultLocked)
        self.failureResultOf(Deferred.fromCoroutine(bindings.revoke(made.name)), VaultLocked)
        self.assertEqual(bindings.list(), (made,))

    def test_quiet(self) -> None:
        """No secret shows in a repr."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        shown = repr((new_binding(), made, bindings, bindings.credential(made), vars(bindings.credential(made))))
        self.assertNotIn("canary", shown)
