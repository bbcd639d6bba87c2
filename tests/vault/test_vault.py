"""The vault file: states, bindings, and what becomes of an altered one."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import BindingFailed, VaultLocked
from aileron.testing import BindingsContract, VaultContract, example_scope, new_binding
from aileron.values import Binding, NewBinding, VaultState
from aileron.vault import DataKey, NoVault, VaultDamaged, VaultFile
from aileron.vault._document import decode

from .case import VaultCase


class VaultFileVaultTests(VaultContract, VaultCase):
    def make_vault(self) -> VaultFile:
        return self.unlocked()

    def make_locked(self) -> VaultFile:
        return self.locked()


class VaultFileBindingsTests(BindingsContract, VaultCase):
    def make_bindings(self) -> VaultFile:
        self.vault = self.unlocked()
        return self.vault

    def lock(self) -> None:
        self.vault.lock()


class BoundCase(VaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.vault = self.unlocked()

    def set_up(self, new: NewBinding) -> Binding:
        return self.successResultOf(Deferred.fromCoroutine(self.vault.set_up(new)))


class StateTests(VaultCase):
    def test_missing(self) -> None:
        """No file and no history: there is no vault yet, nothing is listed, and nothing can be set up."""
        self.path.unlink()
        vault = VaultFile(self.path, self.clock, lambda: False)
        self.assertEqual((vault.state(), vault.list()), (VaultState.MISSING, ()))
        failure = self.failureResultOf(Deferred.fromCoroutine(vault.set_up(new_binding())), VaultLocked)
        self.assertEqual(failure.value.details["state"], "missing")

    def test_lost(self) -> None:
        """No file, but history: it is lost, not missing."""
        self.path.unlink()
        self.assertEqual(VaultFile(self.path, self.clock, lambda: True).state(), VaultState.LOST)

    def test_appears(self) -> None:
        """A vault that is made while the daemon runs is seen, locked."""
        content = self.path.read_bytes()
        self.path.unlink()
        vault = VaultFile(self.path, self.clock, lambda: False)
        self.path.write_bytes(content)
        self.assertEqual(vault.state(), VaultState.LOCKED)

    def test_vanishes(self) -> None:
        """A file that goes away while unlocked is lost, and nothing opens or is written in its place."""
        vault = self.unlocked()
        self.path.unlink()
        self.assertEqual(vault.state(), VaultState.LOST)
        self.assertRaises(VaultLocked, vault.operator_key)
        self.failureResultOf(Deferred.fromCoroutine(vault.set_up(new_binding())), VaultLocked)
        self.assertFalse(self.path.exists())

    def test_foreign_key(self) -> None:
        """A key that is not this vault's does not start a daemon."""
        foreign = DataKey(b"f" * 32)
        self.assertRaises(VaultDamaged, VaultFile, self.path, self.clock, lambda: True, foreign)

    def test_key_without_vault(self) -> None:
        """A key without a file does not start a daemon."""
        self.path.unlink()
        self.assertRaises(NoVault, VaultFile, self.path, self.clock, lambda: True, self.key())

    def test_lock_wipes(self) -> None:
        """Locking empties the key itself, wherever else it is held."""
        key = self.key()
        vault = VaultFile(self.path, self.clock, lambda: True, key)
        vault.lock()
        self.assertEqual(bytes(key._secret), b"")
        self.assertRaises(VaultLocked, vault.operator_key)
        self.assertNotIn(self.secret.hex(), repr(vars(vault)))


class FileTests(BoundCase):
    def test_survives(self) -> None:
        """A binding is there in the daemon's next life, with its secret."""
        made = self.set_up(new_binding())
        again = self.unlocked()
        self.assertEqual(again.list(), (made,))
        self.assertEqual(again.credential(made, example_scope()).reveal(), new_binding().secret)

    def test_listed_while_locked(self) -> None:
        """A daemon that starts locked lists what is bound."""
        made = self.set_up(new_binding())
        self.assertEqual(self.locked().list(), (made,))

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

        def full(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        self.patch(os, "fsync", full)
        self.failureResultOf(Deferred.fromCoroutine(self.vault.set_up(new_binding("other"))), OSError)
        self.assertEqual(self.vault.list(), (made,))

    def test_damaged(self) -> None:
        """A damaged file is a clear error at start and later, and is never written over."""
        made = self.set_up(new_binding())
        for damage in (b"", b"{", b"[]", b'{"version": 1}', b"\xff", self.path.read_bytes()[:-5]):
            self.path.write_bytes(damage)
            self.assertRaises(VaultDamaged, self.locked)
            self.assertRaises(VaultDamaged, self.vault.list)
            self.assertRaises(VaultDamaged, self.vault.credential(made, example_scope()).reveal)
            self.failureResultOf(Deferred.fromCoroutine(self.vault.set_up(new_binding("x"))), VaultDamaged)
            self.assertEqual(self.path.read_bytes(), damage)

    def test_link(self) -> None:
        """A link in the file's place is refused."""
        elsewhere = self.path.with_suffix(".elsewhere")
        self.path.rename(elsewhere)
        self.path.symlink_to(elsewhere.absolute())
        self.assertRaises(VaultDamaged, self.locked)


class AlteredTests(BoundCase):
    """What another program of the same user may write into the file."""

    def test_repointed(self) -> None:
        """An entry of which anything at all was altered does not open, whoever asks."""
        made = self.set_up(attrs.evolve(new_binding(), base_url="https://slack.com", account="T1"))
        content = self.content()
        for field, value in (
            ("service", "evil"),
            ("identity", "you"),
            ("connector", "local://me/evil"),
            ("base_url", "https://evil.example"),
            ("base_url", None),
            ("account", "T2"),
            ("revision", 2),
            ("created_at", "2027-01-01T00:00:00.000000Z"),
        ):
            entry = content["entries"][0] | {field: value}
            entry["name"] = f"{entry['kind']}/{entry['service']}/{entry['identity']}"
            self.rewrite(content | {"entries": [entry]})
            self.assertRaises(BindingFailed, self.vault.credential(made, example_scope()).reveal)
            (altered,) = self.vault.list()
            self.assertNotEqual(altered, made)
            self.assertRaises(BindingFailed, self.vault.credential(altered, example_scope()).reveal)
        self.rewrite(content)
        self.assertEqual(self.vault.credential(made, example_scope()).reveal(), new_binding().secret)

    def test_swapped(self) -> None:
        """The ciphertext of one entry does not open as another's."""
        one, other = self.set_up(new_binding("a")), self.set_up(new_binding("b"))
        content = self.content()
        first, second = content["entries"]
        sealed = ("nonce", "ciphertext")
        swapped = [first | {key: second[key] for key in sealed}, second | {key: first[key] for key in sealed}]
        self.rewrite(content | {"entries": swapped})
        for binding in (one, other):
            self.assertRaises(BindingFailed, self.vault.credential(binding, example_scope()).reveal)

    def test_other_vault(self) -> None:
        """An entry does not open in a vault of another id."""
        made = self.set_up(new_binding())
        self.rewrite(self.content() | {"vault": "00" * 16})
        self.assertRaises(BindingFailed, self.vault.credential(made, example_scope()).reveal)

    def test_in_place(self) -> None:
        """A change in place, of the same size, is seen too."""
        made = self.set_up(new_binding())
        self.path.write_bytes(self.path.read_bytes().replace(b"builtin://slack", b"builtin://evils"))
        os.utime(self.path, ns=(1, 1))
        self.assertRaises(BindingFailed, self.vault.credential(made, example_scope()).reveal)

    def test_keeps_others_changes(self) -> None:
        """A change of ours starts from what the file says now."""
        twin = self.unlocked()
        made = self.set_up(new_binding("a"))
        other = self.successResultOf(Deferred.fromCoroutine(twin.set_up(new_binding("b"))))
        self.assertEqual(self.vault.list(), (made, other))


class DecodeTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=100)
    @given(st.binary(max_size=300))
    def test_wild(self, data: bytes) -> None:
        """Whatever the bytes, reading them ends in the one error."""
        self.assertRaises(VaultDamaged, decode, data)


class MutatedTests(BoundCase):
    def test_any_field(self) -> None:
        """A field that is missing, of another type, or unknown is damage, wherever it stands."""
        self.set_up(new_binding())
        content = self.content()
        for path in (("kdf",), ("data_key",), ("check",), ("entries", 0), ()):
            for change in _changes(_at(content, path)):
                mutated = _with(content, path, change)
                self.rewrite(mutated)
                self.assertRaises(VaultDamaged, self.locked)


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    if isinstance(value, list):
        return [_with(item, tuple(rest), new) if index == step else item for index, item in enumerate(value)]
    return value | {step: _with(value[step], tuple(rest), new)}


def _changes(value: dict[str, Any]) -> list[dict[str, Any]]:
    missing = [{key: item for key, item in value.items() if key != gone} for gone in value]
    wrong = [value | {key: True} for key in value]
    return [*missing, *wrong, value | {"unknown": 1}]
