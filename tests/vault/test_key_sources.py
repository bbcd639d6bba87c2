"""Key sources: what opens the vault beside the passphrase, and what does not."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import evolve, frozen
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, VaultDamaged, VaultLocked
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import KeySource, KeySourceKind
from aileron.testing import KeySourceContract
from aileron.vault import DataKey, keys
from aileron.vault._format import VERSION, decode, encode, version_of
from aileron.vault._sealing import authenticated

from .case import NEW_PASSPHRASE, NOON, PASSPHRASE, OpenCase


@implementer(IKeySource)
@frozen
class MemoryKeySource:
    """A source in memory."""

    secret: bytes | None

    def read(self) -> bytes | None:
        return self.secret


class SourceCase(OpenCase):
    """An open vault to which sources are added."""

    def make(self, name: str = "server", key: DataKey | None = None) -> tuple[bytes, JSON, str]:
        """What a command makes."""
        return keys.make_key_source(self.path, key or self.key(), KeySourceKind.SYSTEMD, name, NOON)

    def add(self, name: str = "server") -> tuple[bytes, KeySource]:
        """The private key of a new source, and the source."""
        secret, entry, proof = self.make(name)
        return secret, self.vault.key_sources.add(entry, proof)

    def opened(self, secret: bytes | None) -> DataKey | None:
        """What a private key opens."""
        return keys.open_by_source(self.path, [MemoryKeySource(None), MemoryKeySource(secret)])


class FileTests(SourceCase):
    """Sources in the vault's file."""

    def test_opens(self) -> None:
        """The private key of an added source opens the vault; another one, or none, opens nothing."""
        secret, source = self.add()
        key = self.opened(secret)
        assert key is not None
        self.assertEqual(key._secret, self.secret)
        self.assertIsNone(self.opened(bytes(32)))
        self.assertIsNone(self.opened(None))
        self.assertEqual(self.vault.key_sources.list(), (source,))
        self.assertEqual(version_of(self.path.read_bytes()), VERSION)
        self.assertNotIn(secret.hex(), self.path.read_text())

    def test_off(self) -> None:
        """A vault without sources reads none."""
        self.assertIsNone(keys.open_by_source(self.path, [MemoryKeySource(b"never read")]))
        self.assertEqual(version_of(self.path.read_bytes()), 1)

    def test_removed(self) -> None:
        """A removed source opens nothing; the passphrase does, with and without a source."""
        secret, source = self.add()
        keys.open_vault(self.path, PASSPHRASE).wipe()
        self.vault.key_sources.remove(source.id)
        self.assertIsNone(self.opened(secret))
        self.assertRaises(NotFound, self.vault.key_sources.remove, source.id)
        keys.open_vault(self.path, PASSPHRASE).wipe()

    def test_without_the_key(self) -> None:
        """A login alone, without the vault's key, adds no source: the proof is for exactly this entry."""
        _, entry, proof = self.make()
        _, _, other = self.make()
        foreign = self.make(key=DataKey(bytes(32)))
        for given, proved in ((entry, other), (entry, ""), (entry, "é"), foreign[1:], ({}, proof), (None, proof)):
            error = self.assertRaises((Forbidden, InvalidRequest), self.vault.key_sources.add, given, proved)
            self.assertIsInstance(error, (Forbidden, InvalidRequest))
        self.assertEqual(self.vault.key_sources.list(), ())

    def test_conflicts(self) -> None:
        """No source twice, no more than eight, and none while the vault is locked."""
        _, entry, proof = self.make()
        self.vault.key_sources.add(entry, proof)
        self.assertRaises(Conflict, self.vault.key_sources.add, entry, proof)
        for number in range(7):
            self.add(str(number))
        self.assertRaises(Conflict, self.add, "more")
        self.lock()
        self.assertRaises(VaultLocked, self.add, "locked")

    def test_altered(self) -> None:
        """An entry that was altered, moved to another source, or came with another file opens nothing."""
        secret, source = self.add()
        self.add("other")
        document = decode(self.path.read_bytes())
        one, other = document.key_sources
        for wrong in (
            evolve(one, sealed=other.sealed),
            evolve(one, ephemeral=other.ephemeral),
            evolve(one, source=evolve(source, name="renamed")),
            evolve(one, ephemeral="00" * 32),
            evolve(one, ephemeral="x"),
        ):
            self.put_back(encode(authenticated(evolve(document, key_sources=(wrong, other)), self.key())))
            self.assertRaises(VaultDamaged, self.opened, secret)
        self.put_back(encode(evolve(document, entry_revisions=9)))
        self.assertRaises(VaultDamaged, self.opened, secret)

    def test_another_passphrase(self) -> None:
        """After a change of the passphrase the source opens the new key, and old copies only the old one."""
        secret, source = self.add()
        old = self.path.read_bytes()
        key = keys.change_passphrase(self.path, PASSPHRASE, NEW_PASSPHRASE)
        found = self.opened(secret)
        assert found is not None
        self.assertEqual(found._secret, key._secret)
        self.assertNotEqual(found._secret, self.secret)
        self.assertEqual(decode(self.path.read_bytes()).key_sources[0].source, source)
        self.put_back(old)
        found = self.opened(secret)
        assert found is not None
        self.assertEqual(found._secret, self.secret)

    def test_reset(self) -> None:
        """A new vault has no sources."""
        secret, _ = self.add()
        keys.reset(self.path, NEW_PASSPHRASE, replace=True)
        self.assertIsNone(self.opened(secret))


class SystemdTests(KeySourceContract, SynchronousTestCase):
    """The credential of a unit."""

    def setUp(self) -> None:
        """Have a directory with a credential, as systemd makes it."""
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.path = self.directory / keys.CREDENTIAL
        self.path.write_bytes(bytes(range(32)))
        self.path.chmod(0o400)
        self.source = keys.SystemdCredential({"CREDENTIALS_DIRECTORY": str(self.directory)})

    def make_source(self) -> IKeySource:
        return self.source

    def make_absent(self) -> IKeySource:
        return keys.SystemdCredential({})

    def make_refused(self) -> IKeySource:
        self.path.chmod(0o444)
        return self.source

    def test_read(self) -> None:
        """It is read; without the variable or the file there is none."""
        self.assertEqual(self.source.read(), bytes(range(32)))
        for environ in ({}, {"CREDENTIALS_DIRECTORY": ""}, {"CREDENTIALS_DIRECTORY": "relative"}):
            self.assertIsNone(keys.SystemdCredential(environ).read())
        self.path.unlink()
        self.assertIsNone(self.source.read())

    def test_open_to_others(self) -> None:
        """One that others can read or write is refused. The group's bit of a file of root is an access control list."""
        for mode in (0o404, 0o402, 0o420, 0o444, 0o500):
            self.path.chmod(mode)
            self.assertRaises(Forbidden, self.source.read)
        if os.geteuid() == 0:
            self.path.chmod(0o440)
            self.source.read()

    def test_of_another_user(self) -> None:
        """A credential that belongs neither to root nor to this user is refused."""
        other = os.geteuid() + 1
        if os.geteuid() == 0:
            os.chown(self.path, other, -1)
        else:
            self.patch(os, "geteuid", lambda: other)
        self.assertRaises(Forbidden, self.source.read)

    def test_other_files(self) -> None:
        """A link, a directory, a queue, and a file of another length are refused, without waiting."""
        kept = self.path.rename(self.directory / "kept")
        self.path.symlink_to(kept)
        self.assertRaises(Forbidden, self.source.read)
        self.path.unlink()
        self.path.mkdir(0o700)
        self.assertRaises(Forbidden, self.source.read)
        self.path.rmdir()
        os.mkfifo(self.path, 0o600)
        self.assertRaises(Forbidden, self.source.read)
        self.path.unlink()
        for data in (b"", bytes(31), bytes(33)):
            self.path.write_bytes(data)
            self.path.chmod(0o600)
            self.assertRaises(InvalidRequest, self.source.read)
