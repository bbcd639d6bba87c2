"""The vault file: its states, its bindings, and how it is written."""

from __future__ import annotations

import errno
import os
import stat

import attrs
from twisted.internet.defer import Deferred

from aileron.model.audit import LockedPeriod
from aileron.model.authority import PasskeyRule
from aileron.model.errors import Conflict, NoVault, StoreUnavailable, VaultDamaged, VaultLocked
from aileron.model.trust import Mark, TrustKind
from aileron.model.vault import VaultState
from aileron.testing import example_scope, new_binding, trusted_word
from aileron.vault import DataKey, Vault

from .case import NOON, FullCase, OpenCase, VaultCase


class LifeTests(FullCase):
    def test_next_life(self) -> None:
        """All that was kept is there in the daemon's next life, and used marks stay used."""
        mark = self.vault.sign({"run": "run-1"})
        again = self.unlocked()
        used = (True, (7, "head-7"), (LockedPeriod("one", b"1" * 32),))
        self.assertEqual(self.kept(again), ((self.made,), new_binding().secret, *used, *self.given))
        self.assertIs(again.verifier()({"run": "run-1"}, mark), Mark.SOUND)
        self.assertRaises(Conflict, again.spend, b"mark", NOON, 8, "head-8")

    def test_never_unlocked(self) -> None:
        """A life that never had the key lists the bindings, and knows nothing that only the key verifies."""
        locked = self.locked()
        self.assertEqual((locked.list(), locked.find(TrustKind.CONFIG, "config.yaml")), ((self.made,), None))
        self.assertEqual(self.verified(locked), ((), "()", (), (), (), PasskeyRule(), None))


class StateTests(VaultCase):
    def test_no_file(self) -> None:
        """Without a file and history there is no vault, with history it is lost; nothing can be set up in either."""
        self.path.unlink()
        for state, hint in ((VaultState.MISSING, "aileron vault init"), (VaultState.LOST, "aileron vault reset")):
            vault = Vault(self.path, self.clock, lambda state=state: state is VaultState.LOST)  # type: ignore[misc]
            self.assertEqual((vault.state(), vault.list()), (state, ()))
            failure = self.failureResultOf(Deferred.fromCoroutine(vault.set_up(new_binding())), VaultLocked)
            self.assertEqual(failure.value.details["state"], state.value)
            self.assertIn(hint, failure.value.message)

    def test_appears(self) -> None:
        """A vault that is made while the daemon runs is seen, locked."""
        content = self.path.read_bytes()
        self.path.unlink()
        vault = Vault(self.path, self.clock, lambda: False)
        self.path.write_bytes(content)
        self.assertEqual(vault.state(), VaultState.LOCKED)

    def test_vanishes(self) -> None:
        """A file that goes away while unlocked is lost; nothing opens or is written in its place until it is back."""
        vault = self.unlocked()
        content = self.path.read_bytes()
        self.path.unlink()
        self.assertEqual(vault.state(), VaultState.LOST)
        self.assertRaises(VaultLocked, vault.operator_key)
        self.failureResultOf(Deferred.fromCoroutine(vault.set_up(new_binding())), VaultLocked)
        self.assertRaises(VaultLocked, vault.spend, b"mark", NOON, 1, "head")
        self.assertFalse(self.path.exists())
        self.path.write_bytes(content)
        self.assertEqual((vault.state(), vault.sealed()), (VaultState.UNLOCKED, None))

    def test_foreign_key(self) -> None:
        """A key that is not this vault's, or without a file, does not start a daemon."""
        self.assertRaises(VaultDamaged, Vault, self.path, self.clock, lambda: True, DataKey(b"f" * 32))
        self.path.unlink()
        self.assertRaises(NoVault, Vault, self.path, self.clock, lambda: True, self.key())

    def test_lock_wipes(self) -> None:
        """Locking empties the key itself, wherever else it is held."""
        key = self.key()
        vault = Vault(self.path, self.clock, lambda: True, key)
        vault.lock()
        self.assertEqual(bytes(key._secret), b"")
        self.assertRaises(VaultLocked, vault.operator_key)
        self.assertNotIn(self.secret.hex(), repr(vars(vault)))


class FileTests(OpenCase):
    def test_private_and_encrypted(self) -> None:
        """The file is for this user only and holds neither a secret nor a key in the clear."""
        self.set_up(new_binding())
        data = self.path.read_bytes()
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        for secret in (new_binding().secret, self.secret, self.secret.hex().encode()):
            self.assertNotIn(secret, data)

    def test_same_secret_twice(self) -> None:
        """One secret under two names makes two ciphertexts and two nonces."""
        self.set_up(new_binding("a"))
        self.set_up(new_binding("b"))
        one, other = self.content()["entries"]
        self.assertNotEqual(one["ciphertext"][:8], other["ciphertext"][:8])
        self.assertNotEqual(one["nonce"], other["nonce"])

    def test_full_disk(self) -> None:
        """A write that fails leaves the bindings as they were and the error to the caller."""
        made = self.set_up(new_binding())
        before = self.path.read_bytes()
        self.fill_disk()
        for change in (
            self.vault.set_up(new_binding("other")),
            self.vault.revoke(made.name),
            self.vault.rebind(made.name, example_scope()),
        ):
            self.failureResultOf(Deferred.fromCoroutine(change), StoreUnavailable)
        self.assertEqual((self.vault.list(), self.path.read_bytes()), ((made,), before))
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])

    def test_half_a_failure(self) -> None:
        """A write that fails after the file was replaced does not make the file a foreign one."""
        fsync, calls = os.fsync, []

        def fails_for_directory(descriptor: int) -> None:
            calls.append(descriptor)
            if len(calls) == 2:
                raise OSError(errno.EIO, "Input/output error")
            fsync(descriptor)

        self.patch(os, "fsync", fails_for_directory)
        self.assertRaises(StoreUnavailable, self.vault.spend, b"mark", NOON, 1, "head")
        self.assertTrue(self.vault.spent(b"mark"))
        self.vault.seal(2, "head")
        self.assertEqual(self.unlocked().sealed(), (2, "head"))

    def test_too_large(self) -> None:
        """What could never be read again is not written."""
        word = attrs.evolve(trusted_word(), name="x" * 17 * 1024 * 1024)
        self.assertRaises(StoreUnavailable, self.vault.put, [word])
        self.assertEqual(self.unlocked().trusted(), ())

    def test_revisions(self) -> None:
        """Every write gives the file the next revision; several words are one, and to say the same again is none."""
        for revision, write in (
            (2, lambda: self.set_up(new_binding())),
            (3, lambda: self.rebind("api_key/slack/me", example_scope())),
            (4, lambda: self.vault.put([trusted_word("a"), trusted_word("b")])),
            (4, lambda: self.vault.put([trusted_word("a")])),
            (4, lambda: self.vault.put([])),
            (4, lambda: self.vault.remove(TrustKind.ACTION, "c")),
            (5, lambda: self.vault.seal(1, "head")),
            (5, lambda: self.vault.seal(1, "head")),
        ):
            write()
            self.assertEqual((self.vault.revision()[1], self.content()["revision"]), (revision, revision))

    def test_link(self) -> None:
        """A link in the file's place is refused."""
        elsewhere = self.path.with_suffix(".elsewhere")
        self.path.rename(elsewhere)
        self.path.symlink_to(elsewhere.absolute())
        self.assertRaises(VaultDamaged, self.locked)
        self.assertRaises(VaultDamaged, self.vault.list)
