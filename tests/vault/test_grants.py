"""Standing grants, as they lie in the vault's file."""

from __future__ import annotations

import json

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.testing import GrantsContract, MemoryControl, MemoryGrants, MemoryVault, example_grant
from aileron.values import Predicate, PredicateKind, VaultState
from aileron.vault import Vault, VaultDamaged, keys
from aileron.vault._grants import FileGrants

from .case import PASSPHRASE, OpenCase

_NEW = "Another battery staple 43"


class FileGrantsTests(OpenCase, GrantsContract):
    """The vault's file as a keeper of grants."""

    def make_grants(self) -> FileGrants:
        """Those of the vault that is open."""
        return self.vault.grants

    def make_control(self) -> Vault:
        """Its control key."""
        return self.vault

    def test_another_life(self) -> None:
        """What was granted and used is so in the next life, once the vault is open, and unknown while it never was."""
        predicates = (Predicate("text", PredicateKind.ONE_OF, [1, 1.0, True, "x", None, {"a": [2.0]}]),)
        self.vault.grants.put(example_grant(predicates=predicates))
        used = self.vault.grants.use("grant-1", 1, "head")
        (again,) = self.unlocked().grants.all()
        self.assertEqual((again, self.locked().grants.all()), (used, ()))
        self.assertEqual(repr(again), repr(used))

    def test_types_are_under_the_mac(self) -> None:
        """Who makes 1 of a 1.0 in the file changes nothing that is in force, and leaves no vault to the next life."""
        self.vault.grants.put(example_grant())
        content = self.content()
        content["grants"][0]["exact"] = content["grants"][0]["exact"].replace("1.0", "1")
        self.rewrite(content)
        self.assertRaises(VaultDamaged, self.unlocked)
        self.assertIs(type(self.vault.grants.use("grant-1", 1, "head").exact["share"]), float)
        self.assertIs(type(self.unlocked().grants.all()[0].exact["share"]), float)

    def test_altered(self) -> None:
        """A grant that another program wrote is none: uses cannot be had back."""
        self.vault.grants.put(example_grant())
        before = self.path.read_bytes()
        self.vault.grants.use("grant-1", 1, "head")
        self.put_back(before)
        self.assertRaises(VaultDamaged, self.vault.grants.use, "grant-1", 1, "head")
        self.assertEqual(self.vault.grants.all()[0].used, 1)

    def test_no_grant(self) -> None:
        """What is written there and is no grant is no vault."""
        self.vault.grants.put(example_grant())
        whole = self.content()
        for name, value in (("exact", "[]"), ("exact", "{"), ("bound", {"a": 1}), ("uses", "3"), ("more", 1)):
            content = json.loads(json.dumps(whole))
            content["grants"][0][name] = value
            self.rewrite(content)
            self.assertRaises(VaultDamaged, self.unlocked)
        self.rewrite({**whole, "grants": whole["grants"] * 2})
        self.assertRaises(VaultDamaged, self.unlocked)

    def test_another_passphrase(self) -> None:
        """A change of the passphrase keeps them."""
        self.vault.grants.put(example_grant())
        again = Vault(self.path, self.clock, lambda: True, keys.change_passphrase(self.path, PASSPHRASE, _NEW))
        self.assertEqual(again.grants.all(), (example_grant(),))


class MemoryGrantsTests(GrantsContract, SynchronousTestCase):
    """The double."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.vault = MemoryVault()
        self.control = MemoryControl(self.vault)
        self.grants = MemoryGrants(self.vault, self.control, self.clock)

    def make_grants(self) -> MemoryGrants:
        """None yet."""
        return self.grants

    def make_control(self) -> MemoryControl:
        """Of the same vault."""
        return self.control

    def lock(self) -> None:
        """Lock it."""
        self.vault.lock()

    def break_disk(self) -> None:
        """Fill it."""
        self.grants.full = True

    def test_never_unlocked(self) -> None:
        """None is known of a vault that was never unlocked."""
        locked = MemoryVault(VaultState.LOCKED)
        self.assertEqual(MemoryGrants(locked, MemoryControl(locked), self.clock).all(), ())
