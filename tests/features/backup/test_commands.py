"""A home is backed up into one encrypted file, and restored from it."""

from __future__ import annotations

import io
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import attrs

from aileron.base.json import from_timestamp
from aileron.cli.context import CliContext
from aileron.features.backup import commands as backup
from aileron.features.backup.archive import SealingWriter
from aileron.features.backup.newest import note_path
from aileron.home.paths import Home
from aileron.vault.keys import DataKey, open_vault
from tests.cli.daemon import CommandCase
from tests.golden.home import unpack, versions

_PASSPHRASE = "Blaue Wiese 47 Kuchen Turm"


class BackupCase(CommandCase):
    """Backs up a home that a released version left.

    :ivar file: where the backup goes.
    :ivar meanwhile: called when the vault is opened.
    """

    def setUp(self) -> None:
        super().setUp()
        self.home = Home(Path(self.mktemp()).absolute())
        unpack(versions()[-1], self.home.root)
        self.environ = {"HOME": "/nowhere", "AILERON_HOME": str(self.home.root)}
        self.file = Path(self.mktemp())
        self.meanwhile: Callable[[], object] = list

    def cli_context(self) -> CliContext:
        """That of the case, with the vault's file itself."""

        def opened(path: Path, passphrase: str) -> DataKey:
            self.meanwhile()
            return open_vault(path, passphrase)

        return attrs.evolve(super().cli_context(), open_vault=opened)

    def given(self, *arguments: str, passphrase: str = _PASSPHRASE) -> tuple[int, str, str]:
        """Give a command of the group, and type the passphrase."""
        self.typed = [passphrase] * 3
        return self.command("backup", *arguments)

    def create(self) -> None:
        """Make the backup."""
        code, _, err = self.given("create", str(self.file))
        self.assertEqual((code, err), (0, ""))

    def elsewhere(self) -> Home:
        """Let the commands be for another home, which is not there yet."""
        home = Home(Path(self.mktemp()).absolute())
        self.environ["AILERON_HOME"] = str(home.root)
        return home


class CreateTests(BackupCase):
    """C{aileron backup create} and C{check}."""

    def test_created(self) -> None:
        """The file is this user's alone, holds nothing in the clear, and leaves nothing but a note of it behind."""
        before = sorted([*self.home.root.rglob("*"), note_path(self.home)])
        self.create()
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        content = self.file.read_bytes()
        for text in (b"SQLite format 3", b"xoxb", b"file-report", b"wrapped"):
            self.assertNotIn(text, content)
        self.assertEqual(sorted(self.home.root.rglob("*")), before)
        self.assertEqual([path.name for path in self.file.parent.glob(f".{self.file.name}*")], [])

    def test_checked(self) -> None:
        """A check reads it to the end and says what is in it; it needs no home."""
        self.create()
        self.elsewhere()
        code, out, err = self.given("check", str(self.file))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("The backup can be restored.", out)

    def test_bar(self) -> None:
        """While it is written and read back, a bar can tell how far it came: at the end, to the end."""
        heard: dict[str, float] = {}

        @contextmanager
        def progress(doing: str, total: int = 0, done: Callable[[], int] = lambda: 0) -> Iterator[None]:
            yield
            heard[doing] = done() / max(total, 1)

        self.patch(backup, "progress", progress)
        self.create()
        self.assertGreaterEqual(heard["Writing the backup"], 1.0)  # what is written is sealed, and so longer
        self.assertEqual(heard["Reading the backup"], 1.0)
        self.assertEqual(heard["Copying the database"], 0)

    def test_wrong_passphrase(self) -> None:
        """A passphrase that does not open the vault makes no backup: nobody could open it."""
        code, _, err = self.given("create", str(self.file), passphrase="Rote Wiese 48 Kuchen Turm")
        self.assertEqual((code, self.file.exists()), (1, False))
        self.assertIn("does not open the vault", err)

    def test_kept(self) -> None:
        """A file that is there is not replaced: told before the passphrase is asked for, or if it came meanwhile."""
        appear = partial(self.file.write_text, "mine")
        for before, during, asked in ((appear, list, 0), (self.file.unlink, appear, 1)):
            before()
            self.meanwhile = during
            code, _, err = self.given("create", str(self.file))
            self.assertEqual((code, self.file.read_text(), len(self.typed)), (1, "mine", 3 - asked))
            self.assertIn(f"{self.file} already exists; nothing was written.", err)

    def test_store_on_a_server(self) -> None:
        """Where the database is on a server, the backup says that it has none, and restores a home that asks for it."""
        self.home.database.replace(self.home.moved_database)
        code, _, err = self.given("create", str(self.file))
        self.assertEqual(code, 0, err)
        self.assertIn("pg_dump", err)
        home = self.elsewhere()
        self.assertEqual(self.given("restore", str(self.file))[0], 0)
        self.assertEqual((home.database.exists(), home.moved_database.read_bytes()), (False, b""))

    def test_vault_changes(self) -> None:
        """While vault and database are written at once, there is no backup of two that do not belong together."""
        changes = iter(range(1, 100))
        original = self.home.secrets.read_bytes()

        def change(path: Path, target: Path) -> None:
            target.touch()
            self.home.secrets.write_bytes(original + b" " * next(changes))

        from aileron.store import copy

        self.patch(copy, "back_up", change)
        code, _, err = self.given("create", str(self.file))
        self.assertEqual((code, self.file.exists()), (1, False))
        self.assertIn("changes too often", err)


class RestoreTests(BackupCase):
    """C{aileron backup restore}."""

    def test_restored(self) -> None:
        """Every file is back, byte for byte; the database row for row, with what was not yet in its file."""
        with closing(sqlite3.connect(self.home.database)) as connection:
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("INSERT INTO trusted_texts SELECT 'sha256:new', text FROM trusted_texts LIMIT 1")
            connection.commit()
            self.create()
            dump = list(connection.iterdump())
        home = self.elsewhere()
        code, out, err = self.given("restore", str(self.file))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Start the daemon: aileron daemon start", out)
        with closing(sqlite3.connect(home.database)) as connection:
            self.assertEqual(list(connection.iterdump()), dump)
        for path in (self.home.secrets, *self.home.actions.iterdir(), *self.home.connectors.iterdir()):
            restored = home.root / path.relative_to(self.home.root)
            self.assertEqual(restored.read_bytes(), path.read_bytes())
            self.assertEqual(restored.stat().st_mode & 0o777, 0o600)
        self.assertEqual(home.root.stat().st_mode & 0o777, 0o700)

    def test_not_empty(self) -> None:
        """A home that is there is not touched."""
        self.create()
        code, _, err = self.given("restore", str(self.file))
        self.assertEqual(code, 1)
        self.assertIn("is not empty; nothing was restored.", err)

    def test_damaged(self) -> None:
        """A backup that was altered or cut off leaves no home behind, and no part of one."""
        self.create()
        content = self.file.read_bytes()
        half = len(content) // 2
        altered = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        for damaged in (content[:-1], content[:half], altered):
            self.file.write_bytes(damaged)
            home = self.elsewhere()
            code, _, err = self.given("restore", str(self.file))
            self.assertEqual((code, list(home.root.parent.glob(f"{home.root.name}*"))), (1, []), err)

    def test_broken_record(self) -> None:
        """A backup of an audit log that was altered is not restored: the one before it may be sound."""
        with closing(sqlite3.connect(self.home.database)) as connection:
            for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {trigger}")
            connection.execute("UPDATE audit_events SET actor_id = 'nobody' WHERE seq = 3")
            connection.commit()
        self.create()
        home = self.elsewhere()
        code, _, err = self.given("restore", str(self.file))
        self.assertEqual((code, home.root.exists()), (1, False))
        self.assertIn("The audit log in the backup is broken at record 3 (altered).", err)

    def test_foreign_names(self) -> None:
        """An archive that somebody else made under the same passphrase puts nothing outside the home."""
        for name in ("../outside", "/tmp/outside", "actions/../../outside", "actions/", "daemon.json", "log/x", "a/b"):
            self.file.write_bytes(self._archive(name))
            home = self.elsewhere()
            code, _, err = self.given("restore", str(self.file))
            self.assertEqual((code, home.root.exists()), (1, False), name)
            self.assertIn("does not know", err)

    def test_links(self) -> None:
        """An archive with a link in it is refused."""
        self.file.write_bytes(self._archive("actions/link.md", tarfile.SYMTYPE))
        self.elsewhere()
        self.assertIn("does not know", self.given("restore", str(self.file))[2])

    def _archive(self, name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
        target = io.BytesIO()
        made_at = from_timestamp("2026-01-01T00:00:00.000000Z")
        with SealingWriter(target, _PASSPHRASE, made_at) as sealed, tarfile.open(fileobj=sealed, mode="w|") as archive:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO())
        return target.getvalue()
