"""The vault's file keeps every contract of a vault, and what it says of trust and the control key besides."""

from __future__ import annotations

from datetime import timedelta

from aileron.base.json import JSON
from aileron.model.audit import LockedPeriod
from aileron.model.errors import Conflict, InvalidRequest, VaultDamaged
from aileron.model.interfaces.authority import IGrants, IRecordKeys
from aileron.testing import (
    ControlContract,
    GrantsContract,
    OperatorLimitsContract,
    RecordKeysContract,
    TrustContract,
    VaultContract,
    trusted_word,
)
from aileron.vault import Vault, keys

from .authorized import AuthorizedContract
from .case import NOON, PASSPHRASE, OpenCase, VaultCase

_STATEMENT: dict[str, JSON] = {"run": "run-1"}


class VaultFileTrustTests(OpenCase, TrustContract):
    def make_trust(self) -> Vault:
        return self.vault


class VaultFileControlTests(OpenCase, ControlContract):
    def make_control(self) -> Vault:
        return self.vault

    def make_other(self) -> Vault:
        path = self.path.with_suffix(".another")
        return Vault(path, self.clock, lambda: True, keys.create(path, PASSPHRASE))


class VaultFileOperatorLimitsTests(OpenCase, OperatorLimitsContract):
    def make_operator_limits(self) -> Vault:
        return self.vault


class VaultFileGrantsTests(OpenCase, GrantsContract):
    def make_grants(self) -> IGrants:
        return self.vault.grants

    def make_control(self) -> Vault:
        return self.vault


class VaultFileRecordKeysTests(OpenCase, RecordKeysContract):
    def make_record_keys(self) -> IRecordKeys:
        return self.vault.record_keys

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


class VaultFileVaultTests(VaultContract, VaultCase):
    def make_vault(self) -> Vault:
        return self.unlocked()

    def make_locked(self) -> Vault:
        return self.locked()


class VaultFileBindingsTests(AuthorizedContract, VaultCase):
    def make_bindings(self) -> Vault:
        self.vault = self.unlocked()
        return self.vault

    def lock(self) -> None:
        self.vault.lock()


class TrustTests(OpenCase):
    def test_generation_of_others(self) -> None:
        """Neither a decision nor a binding changes what is trusted."""
        self.vault.put([trusted_word()])
        generation = self.vault.generation()
        self.vault.spend(b"mark", NOON, 1, "head")
        self.assertEqual(self.vault.generation(), generation)

    def test_unsayable(self) -> None:
        """A name that no file could hold is refused, and all stays as it was."""
        self.assertRaises(InvalidRequest, self.vault.put, [trusted_word("\ud800")])
        self.assertEqual(self.vault.trusted(), ())
        self.vault.put([trusted_word()])


class ControlTests(OpenCase):
    def test_prune(self) -> None:
        """A used mark is remembered until its decision would have ended, and forgotten at the next write after."""
        self.vault.spend(b"short", NOON + timedelta(seconds=10), 1, "head")
        self.vault.spend(b"long", NOON + timedelta(seconds=20), 2, "head")
        self.clock.advance(9.9)
        self.vault.seal(3, "head")
        self.assertTrue(self.vault.spent(b"short"))
        self.clock.advance(0.1)
        self.vault.put([trusted_word()])
        self.assertEqual((self.vault.spent(b"short"), self.vault.spent(b"long")), (False, True))
        self.assertEqual(list(self.content()["spent"]), [b"long".hex()])

    def test_clock_set_back(self) -> None:
        """What was forgotten since the clock ran ahead is not taken for unused when it is set back."""
        ends = NOON + timedelta(seconds=10)
        self.vault.outdate("run-1", NOON + timedelta(seconds=5), 1, "head")
        self.vault.spend(b"used", ends, 2, "head")
        self.clock.advance(20)
        self.vault.seal(3, "head")
        self.clock.rightNow -= 20
        self.assertEqual((self.unlocked().outdated("run-1"), self.unlocked().forgotten()), (None, ends))
        self.vault.outdate("run-1", NOON + timedelta(seconds=30), 4, "head")
        self.assertEqual((self.vault.outdated("run-1"), self.vault.forgotten()), (NOON + timedelta(seconds=30), ends))
        self.assertEqual(len(self.content()["spent"]), 1)

    def test_late(self) -> None:
        """A decision that has ended is used once all the same."""
        self.vault.spend(b"late", NOON - timedelta(seconds=1), 1, "head")
        self.assertRaises(Conflict, self.vault.spend, b"late", NOON, 2, "head")

    def test_mark_tells_nothing(self) -> None:
        """A mark begins with the key's id, which is no part of the key."""
        key = self.key()
        one, other = self.vault.sign(_STATEMENT), self.vault.sign({"run": "run-2"})
        self.assertEqual((len(one), one[:8]), (40, other[:8]))
        self.assertNotIn(one[:8], key.subkey("aileron control v1") + key.subkey("aileron control id v1"))
