"""What another program of the same user may do to the vault's file, and what becomes of it."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.authority import PasskeyRule
from aileron.model.errors import BindingFailed, VaultDamaged
from aileron.model.trust import TrustKind
from aileron.testing import does_not_open, example_scope, new_binding, trusted_word
from aileron.vault import Vault, keys
from aileron.vault._format import decode
from tests.extent import examples

from .case import PASSPHRASE, FullCase


class AlteredCase(FullCase):
    """What the vault says, before anybody alters its file."""

    def setUp(self) -> None:
        super().setUp()
        self.before = self.kept(self.vault)


class RunningTests(AlteredCase):
    """The file is replaced while a daemon runs."""

    def test_damaged(self) -> None:
        """A file that is no vault is refused at every use and at every start, and never written over."""
        whole = self.path.read_bytes()
        for damage in (b"", b"{", b"[]", b'{"version": 1}', b"\xff", whole[:-5]):
            self.put_back(damage)
            self.refused(self.vault)
            self.assertRaises(VaultDamaged, self.locked)
            error = self.assertRaises(VaultDamaged, self.unlocked)
            self.assertIn("aileron vault reset", str(error))
        self.put_back(whole)
        self.assertEqual(self.kept(self.vault), self.before)

    def test_older(self) -> None:
        """An older copy of the same vault is refused for as long as it lies there."""
        yesterday = self.path.read_bytes()
        self.vault.remove(TrustKind.ACTION, "ship-update")
        today = self.path.read_bytes()
        self.put_back(yesterday)
        self.refused(self.vault)
        self.assertIn("older copy", str(self.assertRaises(VaultDamaged, self.vault.revision)))
        self.assertIsNone(self.vault.find(TrustKind.ACTION, "ship-update"))
        self.put_back(today)
        self.vault.seal(8, "head-8")

    def test_other_future(self) -> None:
        """A newer copy of the same vault, which another life of the daemon wrote, is refused as well."""
        yesterday = self.path.read_bytes()
        self.vault.put([trusted_word("evil")])
        self.vault.seal(8, "head-8")
        future = self.path.read_bytes()
        self.put_back(yesterday)
        today = self.unlocked()
        self.put_back(future)
        self.refused(today)
        self.assertIsNone(today.find(TrustKind.ACTION, "evil"))

    def test_other_vault(self) -> None:
        """Another vault in the place of this one is refused, whatever its passphrase."""
        other = Path(self.mktemp())
        keys.create(other, PASSPHRASE)
        self.put_back(other.read_bytes())
        self.refused(self.vault)
        self.assertIn("Another vault", str(self.assertRaises(VaultDamaged, self.vault.revision)))
        self.assertRaises(VaultDamaged, self.unlocked)

    def test_other_writer(self) -> None:
        """A change by another holder of the key is not built upon, and not written over."""
        twin = self.unlocked()
        twin.put([trusted_word("another")])
        self.refused(self.vault)

    def test_in_place(self) -> None:
        """A change in place, of the same size and age, is seen too."""
        before = self.path.stat()
        self.path.write_bytes(self.path.read_bytes().replace(b"builtin://slack", b"builtin://evils"))
        os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.refused(self.vault)

    def test_locked(self) -> None:
        """While locked an altered file is listed as it lies there, and what was verified stays what it was."""
        verified, nothing = self.verified(self.vault), ((), "()", (), (), (), PasskeyRule(), None)
        self.vault.lock()
        content = self.content()
        self.rewrite({**content, "trust": [], "entries": [], "passkeys": []})
        self.assertEqual((self.vault.list(), self.locked().list()), ((), ()))
        self.assertEqual((self.verified(self.vault), self.verified(self.locked())), (verified, nothing))


class AlteredFileTests(AlteredCase):
    """The file is altered while no daemon runs."""

    def test_any_value(self) -> None:
        """Whatever single value is changed, wherever it stands, the file is refused by who has the key."""
        content = self.content()
        paths = list(_leaves(content))
        self.assertGreater(len(paths), 40)
        for path in paths:
            self.rewrite(_with(content, path, _other(_at(content, path))))
            self.assertRaises(VaultDamaged, self.unlocked)
            self.refused(self.vault)
        self.rewrite(content)
        self.assertEqual(self.kept(self.unlocked()), self.before)

    def test_any_part_missing(self) -> None:
        """Whatever part is taken out, or put in twice, the file is refused by who has the key."""
        content = self.content()
        lists = {name: value for name, value in content.items() if isinstance(value, list)}
        self.assertTrue(all(lists.values()), "everything is there")
        changes: list[dict[str, Any]] = [{"spent": {}}, {"sealed": None}, {"trust": content["trust"][1:]}]
        for name, value in lists.items():
            changes += [{name: []}, {name: value * 2}]
        for change in changes:
            self.rewrite(content | change)
            self.assertRaises(VaultDamaged, self.unlocked)

    def test_any_field(self) -> None:
        """A field that is missing, of another type, or unknown is damage, wherever it stands, even without a key."""
        content = self.content()
        names = ("kdf", "data_key", "sealed", "record", "passkey_rule")
        lists = ("trust", "entries", "grants", "pauses", "caps", "passkeys")
        for path in ((), *((name,) for name in names), *((name, 0) for name in lists), ("entries", 0, "scope")):
            for change in _changes(_at(content, path)):
                self.rewrite(_with(content, path, change))
                self.assertRaises(VaultDamaged, self.locked)

    def test_wild_texts(self) -> None:
        """A moment beyond the calendar, or a text that is to be JSON and is none, is damage, not a crash."""
        content = self.content()
        moments = ("0001-01-01T00:00:00+23:59", "never", "")
        changes: list[dict[str, Any]] = [{"spent": {"00": text}} for text in moments]
        changes += [{"forgotten": text} for text in moments]
        changes += [{"grants": [content["grants"][0] | {"exact": text}]} for text in ("[]", "{")]
        for change in changes:
            self.rewrite(content | change)
            self.assertRaises(VaultDamaged, self.locked)

    def test_types_of_numbers(self) -> None:
        """Who makes 1 of a 1.0 in a grant, which are one number in canonical JSON, leaves no vault."""
        content = self.content()
        content["grants"][0]["exact"] = content["grants"][0]["exact"].replace("1.0", "1")
        self.rewrite(content)
        self.assertRaises(VaultDamaged, self.unlocked)

    @settings(deadline=None, max_examples=examples(150))
    @given(st.data())
    def test_any_byte(self, data: st.DataObject) -> None:
        """Whatever byte is altered, the file is refused or says the same as before."""
        whole = self.path.read_bytes()
        position = data.draw(st.integers(0, len(whole) - 1))
        altered = whole[:position] + bytes([data.draw(st.integers(0, 255))]) + whole[position + 1 :]
        self.put_back(altered)
        try:
            again = self.unlocked()
        except VaultDamaged:
            if altered != whole:
                self.refused(self.vault)
        else:
            self.assertEqual(self.kept(again), self.before)
        self.put_back(whole)


class EntryTests(FullCase):
    """An entry is bound to its vault and to all that it says, even where the whole file is under its MAC."""

    def test_altered(self) -> None:
        """An entry of which anything was altered opens neither for what it was nor for what it says now."""
        content = self.content()
        whole, scope = content["entries"][0], content["entries"][0]["scope"]
        changes: tuple[dict[str, Any], ...] = (
            {"service": "evil"},
            {"identity": "you"},
            {"connector": "local://me/evil"},
            {"base_url": "https://evil.example"},
            {"base_url": None},
            {"account": "T2"},
            {"revision": 2},
            {"created_at": "2027-01-01T00:00:00.000000Z"},
            {"scope": None},
            {"scope": scope | {"hosts": ["evil.example:443"]}},
            {"scope": scope | {"base_url": "https://evil.example"}},
            {"scope": scope | {"header": "X-Debug"}},
            {"scope": scope | {"format": "{key}"}},
        )
        for change in changes:
            entry = whole | change
            entry["name"] = f"{entry['kind']}/{entry['service']}/{entry['identity']}"
            self.rewrite_with_key(content | {"entries": [entry]})
            vault = self.unlocked()
            (found,) = vault.list()
            self.assertNotEqual(found, self.made)
            does_not_open(self, vault.credential(self.made, example_scope()), BindingFailed)
            does_not_open(self, vault.credential(found, found.scope or example_scope()), BindingFailed)

    def test_swapped(self) -> None:
        """The ciphertext of one entry does not open as another's."""
        other = self.set_up(new_binding("you"))
        content = self.content()
        first, second = content["entries"]
        sealed = ("nonce", "ciphertext")
        swapped = [first | {key: second[key] for key in sealed}, second | {key: first[key] for key in sealed}]
        self.rewrite_with_key(content | {"entries": swapped})
        vault = self.unlocked()
        for binding in (self.made, other):
            does_not_open(self, vault.credential(binding, example_scope()), BindingFailed)

    def test_other_vault(self) -> None:
        """An entry does not open in a vault of another id, even under the same key."""
        self.rewrite_with_key(self.content() | {"vault": "00" * 16})
        vault = self.unlocked()
        self.assertEqual(vault.list(), (self.made,))
        does_not_open(self, vault.credential(self.made, example_scope()), BindingFailed)

    def test_between_vaults(self) -> None:
        """An entry that was copied into another vault makes that one no vault."""
        entries = self.content()["entries"]
        other = Path(self.mktemp())
        key = keys.create(other, PASSPHRASE)
        other.write_text(json.dumps(json.loads(other.read_text()) | {"entries": entries}))
        self.assertRaises(VaultDamaged, Vault, other, self.clock, lambda: True, key)
        self.assertRaises(VaultDamaged, keys.open_vault, other, PASSPHRASE)


class DecodeTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=examples(100))
    @given(st.binary(max_size=300))
    def test_wild(self, data: bytes) -> None:
        """Whatever the bytes, reading them ends in the one error."""
        self.assertRaises(VaultDamaged, decode, data)


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Any:
    """The paths of all values that hold no others."""
    if not isinstance(value, (dict, list)):
        yield path
        return
    for step, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(item, (*path, step))


def _other(value: Any) -> Any:
    """Another value of the same type, which would pass for one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return "Z" if value is None else ("B" if value[:1] != "B" else "C") + value[1:]


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = _with(value[path[0]], path[1:], new)
    return changed


def _changes(value: dict[str, Any]) -> list[dict[str, Any]]:
    missing = [{key: item for key, item in value.items() if key != gone} for gone in value]
    wrong = [value | {key: 1.5} for key in value]
    return [*missing, *wrong, value | {"unknown": 1}]
