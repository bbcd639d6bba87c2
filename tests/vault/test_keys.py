"""The vault without a daemon: made, opened, refused."""

from __future__ import annotations

import json
import os
import pickle
import stat
import unicodedata
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import Conflict, NoVault, VaultDamaged, WeakPassphrase, WrongPassphrase
from aileron.vault import keys
from aileron.vault._passphrase import words
from aileron.vault.keys import DataKey
from tests.extent import examples

from .case import PASSPHRASE, VaultCase


class CreateTests(SynchronousTestCase):
    def test_create_and_open(self) -> None:
        """A new vault is private and opens to the same key by its passphrase, however an accent was typed."""
        path = Path(self.mktemp())
        passphrase = "Zwölf Böxkämpfer 1"
        made = keys.create(path, passphrase)
        opened = keys.open_vault(path, unicodedata.normalize("NFD", passphrase))
        self.assertEqual(opened._secret, made._secret)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_never_replaces(self) -> None:
        """A file that is there is never replaced, even a damaged one."""
        path = Path(self.mktemp())
        path.write_bytes(b"damaged")
        self.assertRaises(Conflict, keys.create, path, PASSPHRASE)
        self.assertEqual(path.read_bytes(), b"damaged")

    def test_weak(self) -> None:
        """A weak passphrase makes no vault, and is not repeated in the error."""
        path = Path(self.mktemp())
        error = self.assertRaises(WeakPassphrase, keys.create, path, "canary")
        self.assertNotIn("canary", f"{error}{error!r}")
        self.assertFalse(path.exists())


class OpenTests(VaultCase):
    def test_wrong(self) -> None:
        """A wrong passphrase, and a text that no encoding has, is told as such and not repeated."""
        error = self.assertRaises(WrongPassphrase, keys.open_vault, self.path, PASSPHRASE + "x")
        self.assertNotIn("Canary", f"{error}{error!r}")
        self.assertIsNone(error.__cause__)
        self.assertRaises(WrongPassphrase, keys.open_vault, self.path, "\ud800")

    def test_none(self) -> None:
        """Where there is no vault, nothing is opened or made."""
        self.path.unlink()
        error = self.assertRaises(NoVault, keys.open_vault, self.path, PASSPHRASE)
        self.assertIn("aileron vault reset", str(error))
        self.assertFalse(self.path.exists())

    def test_parameters(self) -> None:
        """Key derivation that is weaker or heavier than accepted is refused before it runs."""
        content = self.content()
        for name, value in (
            ("iterations", 2),
            ("iterations", 10**9),
            ("memory_kib", 1024),
            ("memory_kib", 2**31),
            ("lanes", 0),
            ("lanes", 10**6),
            ("salt", ""),
            ("algorithm", "pbkdf2"),
        ):
            self.rewrite(content | {"kdf": content["kdf"] | {name: value}})
            self.assertRaises(VaultDamaged, keys.open_vault, self.path, PASSPHRASE)

    def test_not_its_own(self) -> None:
        """A key opens in the vault of its id alone, and one that does not stand behind the rest is refused."""
        content = self.content()
        self.rewrite(content | {"vault": "00" * 16})
        self.assertRaises(WrongPassphrase, keys.open_vault, self.path, PASSPHRASE)
        self.rewrite(content | {"revision": 2})
        error = self.assertRaises(VaultDamaged, keys.open_vault, self.path, PASSPHRASE)
        self.assertIn("aileron vault reset", str(error))


class DataKeyTests(SynchronousTestCase):
    def test_quiet(self) -> None:
        """A key shows in no repr and is not pickled; a wiped one derives nothing, and twice is safe."""
        key = DataKey(b"k" * 32)
        self.assertNotIn("kk", f"{key!r}{key}")
        self.assertRaises(TypeError, pickle.dumps, key)
        key.wipe()
        key.wipe()
        self.assertRaises(ValueError, key.subkey, "x")

    def test_purposes(self) -> None:
        """Each purpose has a key of its own, and none is the data key."""
        key = DataKey(b"k" * 32)
        self.assertEqual(key.subkey("a"), key.subkey("a"))
        self.assertEqual(len({key.subkey("a"), key.subkey("b"), b"k" * 32}), 3)
        self.assertEqual(keys.operator_key(key), key.subkey("operator"))

    def test_pipe(self) -> None:
        """A key goes through a pipe whole, and both ends are closed."""
        reading, writing = os.pipe()
        DataKey(b"k" * 32).send(writing)
        self.assertEqual(keys.read_key(reading)._secret, b"k" * 32)
        for descriptor in (reading, writing):
            self.assertRaises(OSError, os.fstat, descriptor)

    def test_pipe_with_other(self) -> None:
        """Too little or too much in the pipe is no key."""
        for sent in (b"", b"k" * 31, b"k" * 33):
            reading, writing = os.pipe()
            os.write(writing, sent)
            os.close(writing)
            self.assertRaises(ValueError, keys.read_key, reading)
            self.assertRaises(OSError, os.fstat, reading)


class PassphraseTests(SynchronousTestCase):
    def test_refused(self) -> None:
        """Short, dull, well-known and unprintable passphrases are refused."""
        for weak in (
            "",
            "elevenchars",
            "a" * 40,
            "abababababab",
            "passwordpassword",
            "Password 1234",
            "correct horse battery staple",
            "abcdefghijklmn",
            "zyxwvutsrqponml",
            "hunter2hunter2hunter2",
            "new line\nnew line 2",
            "lone \ud800 surrogate x",
            "x" * 1025,
        ):
            self.assertRaises(WeakPassphrase, keys.check_passphrase, weak)

    def test_accepted(self) -> None:
        """Ordinary good ones are accepted, in any script."""
        for good in (PASSPHRASE, "Zwölf Boxkämpfer!", "не пытайтесь угадать", "seven lucky otters", "9f3kd82Lq0xz"):
            keys.check_passphrase(good)

    def test_words(self) -> None:
        """There are 2048 different short words of plain letters."""
        self.assertEqual((len(words()), len(set(words()))), (2048, 2048))
        self.assertTrue(all(word.isascii() and word.islower() and 3 <= len(word) <= 8 for word in words()))

    def test_generated(self) -> None:
        """Six words, each drawn from all of them, by the randomness that is given."""
        asked: list[int] = []

        def choose(below: int) -> int:
            asked.append(below)
            return below - 1

        self.assertEqual(keys.generate_words(6, choose), " ".join(["zoo"] * 6))
        self.assertEqual(asked, [2048] * 6)
        self.assertNotEqual(keys.generate_words(), keys.generate_words())

    @settings(deadline=None, max_examples=examples(100))
    @given(st.lists(st.integers(0, 2047), min_size=6, max_size=6, unique=True))
    def test_generated_pass(self, drawn: list[int]) -> None:
        """What was generated is never refused."""
        left = list(drawn)
        keys.check_passphrase(keys.generate_words(6, lambda _below: left.pop()))


class FileTests(VaultCase):
    def test_shape(self) -> None:
        """The file is JSON that says its version and parameters: Argon2id, three passes over 64 MiB in four lanes."""
        content = json.loads(self.path.read_bytes())
        expected = "version vault revision kdf data_key entry_revisions entries trust sealed spent forgotten"
        self.assertEqual(
            set(content), {*expected.split(), "grants", "pauses", "caps", "record", "passkeys", "passkey_rule", "mac"}
        )
        kdf = [content["kdf"][name] for name in ("algorithm", "iterations", "memory_kib", "lanes")]
        self.assertEqual((content["version"], kdf), (1, ["argon2id", 3, 65536, 4]))

    def test_newer(self) -> None:
        """A vault of a version that we do not know is refused, not guessed at."""
        self.rewrite(self.content() | {"version": 2})
        error = self.assertRaises(VaultDamaged, keys.open_vault, self.path, PASSPHRASE)
        self.assertIn("version 2", str(error))
