"""The record's keys, as they lie in the vault's file, and in memory."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import is_signed
from aileron.interfaces import IRecordKeys
from aileron.testing import MemoryRecordKeys, MemoryVault, RecordKeysContract
from aileron.values import NO_CHECKPOINT, Checkpoint, LockedPeriod
from aileron.vault import Vault, VaultDamaged, keys
from tests.vault.case import PASSPHRASE, OpenCase


class MemoryRecordKeysTests(RecordKeysContract, SynchronousTestCase):
    """The double."""

    def make_record_keys(self) -> MemoryRecordKeys:
        """Over a vault in memory."""
        self.vault = MemoryVault()
        return MemoryRecordKeys(self.vault)

    def lock(self) -> None:
        """Lock it."""
        self.vault.lock()


class VaultFileRecordKeysTests(OpenCase, RecordKeysContract):
    """The real ones."""

    def make_record_keys(self) -> IRecordKeys:
        """The vault's."""
        return self.vault.record_keys

    def test_another_life(self) -> None:
        """They are there in the next life, and after the passphrase was changed."""
        public = self.vault.record_keys.make_key()
        self.vault.record_keys.put_locked_periods((LockedPeriod("one", b"1" * 32),))
        key = keys.change_passphrase(self.path, PASSPHRASE, "Another battery staple 43")
        again = Vault(self.path, self.clock, lambda: True, key).record_keys
        self.assertEqual((again.make_key(), again.locked_periods()), (public, (LockedPeriod("one", b"1" * 32),)))
        unsigned = Checkpoint("v", 1, "h", "t", NO_CHECKPOINT, public)
        self.assertTrue(is_signed(evolve(unsigned, signature=again.endorse(unsigned.statement()))))

    def test_public_key_of_a_locked_file(self) -> None:
        """No key is told, for a person to note, that was not verified: a locked file can name anybody's."""
        self.vault.record_keys.make_key()
        self.assertIsNone(self.locked().record_keys.public_key())
        content = self.content()
        content["record"]["public_key"] = "00" * 32
        self.rewrite(content)
        self.assertIsNone(self.locked().record_keys.public_key())

    def test_no_secret_in_the_file(self) -> None:
        """Neither the private key nor a locked period's key lies there in the clear, and none opens as the other."""
        self.vault.record_keys.make_key()
        self.vault.record_keys.put_locked_periods((LockedPeriod("one", b"1" * 32),))
        content = self.content()
        self.assertNotIn((b"1" * 32).hex(), self.path.read_text())
        record = content["record"]
        record["signing"] = {name: record["stretches"][0][name] for name in ("nonce", "ciphertext")}
        self.rewrite_with_key(content)
        self.assertRaises(VaultDamaged, self.unlocked().record_keys.endorse, {})
