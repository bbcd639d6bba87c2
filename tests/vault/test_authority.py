"""Trust and the control key, as they lie in the vault's file."""

from __future__ import annotations

from datetime import timedelta

import attrs

from aileron.errors import Conflict, InvalidRequest
from aileron.testing import (
    BrakesContract,
    ControlContract,
    TrustContract,
    example_caps,
    example_pauses,
    trusted_word,
)
from aileron.values import JSON, Mark, TrustKind
from aileron.vault import Vault, keys
from aileron.vault._format import decode

from .case import NOON, PASSPHRASE, OpenCase

_STATEMENT: dict[str, JSON] = {"run": "run-1"}
_NEW = "Another battery staple 43"


class VaultFileTrustTests(OpenCase, TrustContract):
    def make_trust(self) -> Vault:
        return self.vault


class VaultFileControlTests(OpenCase, ControlContract):
    def make_control(self) -> Vault:
        return self.vault

    def make_other(self) -> Vault:
        path = self.path.with_suffix(".another")
        return Vault(path, self.clock, lambda: True, keys.create(path, PASSPHRASE))


class VaultFileBrakesTests(OpenCase, BrakesContract):
    def make_brakes(self) -> Vault:
        return self.vault

    def test_survives(self) -> None:
        """What is braked is known in the daemon's next life, with all that was said, once it has the key."""
        pauses, caps = example_pauses(), example_caps()
        self.vault.keep_pauses(pauses)
        self.vault.keep_caps(caps)
        self.assertEqual((self.unlocked().pauses(), self.unlocked().caps()), (pauses, caps))
        self.assertEqual((self.locked().pauses(), self.locked().caps()), ((), ()))

    def test_passphrase(self) -> None:
        """Another passphrase keeps them."""
        self.vault.keep_caps(example_caps())
        self.vault.lock()
        keys.change_passphrase(self.path, PASSPHRASE, _NEW)
        self.assertEqual(len(decode(self.path.read_bytes()).caps), 2)


class TrustTests(OpenCase):
    def test_survives(self) -> None:
        """What is trusted is known in the daemon's next life, with all that was said, once it has the key."""
        word = attrs.evolve(trusted_word(), enabled=False, changed_at=NOON + timedelta(microseconds=1))
        self.vault.put([word])
        self.assertEqual(self.unlocked().trusted(), (word,))
        self.assertEqual((self.locked().trusted(), self.locked().find(word.kind, word.name)), ((), None))

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

    def test_one_write(self) -> None:
        """Several words are one write, and no change is none."""
        self.vault.put([trusted_word("a"), trusted_word("b")])
        self.vault.put([trusted_word("a")])
        self.vault.put([])
        self.vault.remove(TrustKind.ACTION, "c")
        self.assertEqual(self.vault.revision()[1], 2)


class ControlTests(OpenCase):
    def test_survives(self) -> None:
        """Marks, what was used and what was sealed hold in the daemon's next life."""
        mark = self.vault.sign(_STATEMENT)
        self.vault.spend(mark, NOON, 7, "head-7")
        again = self.unlocked()
        self.assertIs(again.verifier()(_STATEMENT, mark), Mark.SOUND)
        self.assertEqual((again.spent(mark), again.sealed()), (True, (7, "head-7")))
        self.assertRaises(Conflict, again.spend, mark, NOON, 8, "head-8")

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

    def test_same_seal(self) -> None:
        """To seal the same again writes nothing."""
        self.vault.seal(3, "head")
        revision = self.vault.revision()
        self.vault.seal(3, "head")
        self.assertEqual(self.vault.revision(), revision)

    def test_other_passphrase(self) -> None:
        """After a change of passphrase earlier marks are earlier ones; what was used and sealed is remembered."""
        mark = self.vault.sign(_STATEMENT)
        self.vault.spend(mark, NOON, 7, "head-7")
        vault, revision = self.vault.revision()
        again = Vault(self.path, self.clock, lambda: True, keys.change_passphrase(self.path, PASSPHRASE, _NEW))
        self.assertIs(again.verifier()(_STATEMENT, mark), Mark.EARLIER)
        self.assertEqual((again.spent(mark), again.sealed()), (True, (7, "head-7")))
        self.assertEqual(again.revision(), (vault, revision + 1))

    def test_mark_tells_nothing(self) -> None:
        """A mark begins with the key's id, which is no part of the key."""
        key = self.key()
        one, other = self.vault.sign(_STATEMENT), self.vault.sign({"run": "run-2"})
        self.assertEqual((len(one), one[:8]), (40, other[:8]))
        self.assertNotIn(one[:8], key.subkey("aileron control v1") + key.subkey("aileron control id v1"))
