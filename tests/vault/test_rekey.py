"""Another passphrase, and another vault."""

from __future__ import annotations

import json
import os

from attrs import evolve

from aileron.audit import is_signed
from aileron.model.audit import NO_CHECKPOINT, Checkpoint
from aileron.model.errors import Conflict, NoVault, StoreUnavailable, VaultDamaged, WeakPassphrase, WrongPassphrase
from aileron.model.trust import Mark
from aileron.vault import DataKey, Vault, keys

from .case import NEW_PASSPHRASE, NOON, PASSPHRASE, FullCase


class RekeyCase(FullCase):
    """With that vault, closed."""

    def setUp(self) -> None:
        super().setUp()
        self.vault_id, self.revision = self.vault.revision()
        self.before, self.kept_before = self.path.read_bytes(), self.kept(self.vault)

    def opened_by(self, key: DataKey) -> Vault:
        return Vault(self.path, self.clock, lambda: True, key)

    def unchanged(self) -> None:
        """Check that nothing lies there but the file as it was."""
        self.assertEqual(self.path.read_bytes(), self.before)
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])


class ChangeTests(RekeyCase):
    def test_all_stays(self) -> None:
        """All is there under the new passphrase; marks of before are earlier ones, and the public key stays."""
        mark = self.vault.sign({"run": "run-1"})
        key = keys.change_passphrase(self.path, PASSPHRASE, NEW_PASSPHRASE)
        vault = self.opened_by(key)
        self.assertEqual(self.kept(vault), self.kept_before)
        self.assertEqual(vault.revision(), (self.vault_id, self.revision + 1))
        self.assertIs(vault.verifier()({"run": "run-1"}, mark), Mark.EARLIER)
        unsigned = Checkpoint("v", 1, "h", "t", NO_CHECKPOINT, str(vault.record_keys.public_key()))
        self.assertTrue(is_signed(evolve(unsigned, signature=vault.record_keys.endorse(unsigned.statement()))))
        self.assertEqual(keys.open_vault(self.path, NEW_PASSPHRASE)._secret, key._secret)

    def test_all_new(self) -> None:
        """The old passphrase and the old data key open nothing, and no ciphertext is left as it was."""
        key = keys.change_passphrase(self.path, PASSPHRASE, NEW_PASSPHRASE)
        self.assertNotEqual(key._secret, self.secret)
        self.assertRaises(WrongPassphrase, keys.open_vault, self.path, PASSPHRASE)
        self.assertRaises(VaultDamaged, self.unlocked)
        before, after = json.loads(self.before), self.content()
        for part in ("data_key", "mac"):
            self.assertNotEqual(before[part], after[part])
        self.assertNotEqual(before["kdf"]["salt"], after["kdf"]["salt"])
        self.assertNotEqual(before["entries"][0]["ciphertext"], after["entries"][0]["ciphertext"])

    def test_old_and_new(self) -> None:
        """A daemon with the old key refuses the file; a copy under the old passphrase opens by nothing that is new."""
        key = keys.change_passphrase(self.path, PASSPHRASE, NEW_PASSPHRASE)
        self.refused(self.vault)
        self.put_back(self.before)
        self.assertRaises(WrongPassphrase, keys.open_vault, self.path, NEW_PASSPHRASE)
        self.assertRaises(VaultDamaged, self.opened_by, key)

    def test_refused(self) -> None:
        """A wrong old or weak new passphrase changes nothing and is not repeated; without a vault none is made."""
        for refusal, old, new in (
            (WrongPassphrase, PASSPHRASE + "x", NEW_PASSPHRASE),
            (WeakPassphrase, PASSPHRASE, "battery"),
        ):
            error = self.assertRaises(refusal, keys.change_passphrase, self.path, old, new)
            self.assertNotIn("battery", f"{error}{error!r}")
            self.unchanged()
        self.path.unlink()
        self.assertRaises(NoVault, keys.change_passphrase, self.path, PASSPHRASE, NEW_PASSPHRASE)
        self.assertFalse(self.path.exists())

    def test_altered(self) -> None:
        """An altered file is not put under a new key: that would vouch for it."""
        self.rewrite({**self.content(), "trust": []})
        self.before = self.path.read_bytes()
        self.assertRaises(VaultDamaged, keys.change_passphrase, self.path, PASSPHRASE, NEW_PASSPHRASE)
        self.unchanged()

    def test_meanwhile(self) -> None:
        """What a daemon wrote meanwhile is not lost."""

        def randomness(count: int) -> bytes:
            if not self.vault.spent(b"other"):
                self.vault.spend(b"other", NOON, 8, "head-8")
            return os.urandom(count)

        self.assertRaises(Conflict, keys.change_passphrase, self.path, PASSPHRASE, NEW_PASSPHRASE, randomness)
        self.assertTrue(self.unlocked().spent(b"other"))

    def test_full_disk(self) -> None:
        """Where the new file cannot be written, the old one stands."""
        self.fill_disk()
        self.assertRaises(StoreUnavailable, keys.change_passphrase, self.path, PASSPHRASE, NEW_PASSPHRASE)
        self.unchanged()


class ResetTests(RekeyCase):
    def empty(self, key: DataKey) -> None:
        """Check that the vault is another, of which nothing is known."""
        vault = self.opened_by(key)
        self.assertEqual((vault.list(), vault.trusted(), vault.sealed()), ((), (), None))
        self.assertFalse(vault.spent(b"mark"))
        self.assertNotEqual(vault.revision()[0], self.vault_id)
        self.assertEqual(keys.open_vault(self.path, NEW_PASSPHRASE)._secret, key._secret)

    def test_lost(self) -> None:
        """Where the file is lost, an empty vault of another id is made."""
        self.path.unlink()
        self.empty(keys.reset(self.path, NEW_PASSPHRASE))
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])

    def test_not_lost(self) -> None:
        """A file that is there, even a damaged one, is replaced only where that was said."""
        self.assertRaises(Conflict, keys.reset, self.path, NEW_PASSPHRASE)
        self.unchanged()

    def test_replaced(self) -> None:
        """A file that is replaced lies beside the new one, each time under another name."""
        self.empty(keys.reset(self.path, NEW_PASSPHRASE, replace=True))
        second = self.path.read_bytes()
        self.empty(keys.reset(self.path, NEW_PASSPHRASE, replace=True))
        aside = [self.path.with_name(f"{self.path.name}.before-reset-{number}") for number in (1, 2)]
        self.assertEqual([path.read_bytes() for path in aside], [self.before, second])

    def test_damaged(self) -> None:
        """A damaged file, and even a directory, can be put aside."""
        self.path.write_bytes(b"damaged")
        self.empty(keys.reset(self.path, NEW_PASSPHRASE, replace=True))
        self.path.unlink()
        self.path.mkdir()
        self.empty(keys.reset(self.path, NEW_PASSPHRASE, replace=True))

    def test_nothing_made(self) -> None:
        """A weak passphrase makes no vault and moves none; nor does a full disk."""
        self.assertRaises(WeakPassphrase, keys.reset, self.path, "short", replace=True)
        self.unchanged()
        self.fill_disk()
        self.assertRaises(StoreUnavailable, keys.reset, self.path, NEW_PASSPHRASE, replace=True)
        self.unchanged()
        self.assertRaises(StoreUnavailable, keys.create, self.path.with_name("other"), PASSPHRASE)
        self.unchanged()
