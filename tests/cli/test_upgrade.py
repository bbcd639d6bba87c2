"""C{aileron upgrade --check} reports whether home and daemon are at this version, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from aileron import __version__
from aileron.cli.context import CliContext
from aileron.features.backup.newest import note_path
from aileron.home.discovery import Discovery, write_discovery
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.paths import Home
from aileron.home.private_files import atomic_write
from aileron.model.runs import RunState
from aileron.store import Schema, copy
from aileron.store._migration import migrate, shipped
from aileron.vault.keys import open_vault
from tests.cli.daemon import LAUNCH_KEY, OPERATOR_URL, URL, CommandCase
from tests.golden.home import unpack, versions

_PASSPHRASE = "Blaue Wiese 47 Kuchen Turm"


class UpgradeCase(CommandCase):
    """Checks a home that a released version left, its database at this version."""

    def setUp(self) -> None:
        super().setUp()
        self.home = Home(Path(self.mktemp()).absolute())
        unpack(versions()[-1], self.home.root)
        migrate(self.home.database, shipped(), 0)
        for aside in self.home.root.glob("aileron.db.backup-*"):
            aside.unlink()
        self.environ = {"HOME": "/nowhere", "AILERON_HOME": str(self.home.root)}

    def cli_context(self) -> CliContext:
        """That of the case, with the vault's file itself."""
        return attrs.evolve(super().cli_context(), open_vault=open_vault)

    def checked(self) -> tuple[int, dict[str, Any]]:
        """The exit code, and what is printed as JSON; nothing in the home may change."""
        before = self.content()
        code, out, err = self.command("upgrade", "--check", "--json")
        self.assertEqual((self.content(), err), (before, ""))
        return code, json.loads(out)

    def content(self) -> dict[str, str]:
        """The digest of every file of the home."""
        files = sorted(path for path in self.home.root.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def run_daemon(self, version: str, **more: Any) -> None:
        """Have a daemon of this version run.

        :param more: what else it says of itself.
        """
        acquire_lock(self.home)
        self.addCleanup(release_lock, self.home)
        started = "2026-01-01T00:00:00.000000Z"
        write_discovery(
            self.home, Discovery(URL, OPERATOR_URL, os.getpid(), "life", version, started, LAUNCH_KEY, **more)
        )

    def ship(self, *further: str) -> None:
        """Have this version ship further steps of the schema."""
        schema = Schema((*shipped().steps, *further))
        self.patch(copy, "shipped", lambda: schema)

    def query(self, sql: str) -> list[Any]:
        """Ask the database, or change it."""
        with closing(sqlite3.connect(self.home.database, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()


class StateTests(UpgradeCase):
    """What is found, and the exit code."""

    def test_same(self) -> None:
        """Where all is of this version nothing is due, whether no daemon runs or one of this version."""
        code, found = self.checked()
        self.assertEqual((code, found["verdict"], found["next"]), (0, "up_to_date", []))
        self.assertEqual((found["running"], found["installed"]), (None, __version__))
        self.assertEqual([found[name]["age"] for name in ("database", "vault")], ["same", "same"])
        self.run_daemon(__version__)
        code, found = self.checked()
        self.assertEqual((code, found["running"], found["next"]), (0, __version__, []))
        self.assertIn("Nothing has to be upgraded.", self.command("upgrade", "--check")[1])

    def test_daemon_of_another_version(self) -> None:
        """A daemon that is not of the installed version is to be restarted, after a backup."""
        self.run_daemon("0.0.9")
        code, found = self.checked()
        backup = f"aileron backup create {self.home.root.parent}/aileron-before-upgrade.backup"
        self.assertEqual((code, found["verdict"], found["running"]), (1, "step_due", "0.0.9"))
        self.assertEqual(found["next"], [backup, "aileron daemon stop", "aileron vault unlock"])

    def test_older_database(self) -> None:
        """An older database is upgraded by the next start; a daemon that does not run is not to be stopped."""
        known = shipped().version
        self.ship("CREATE TABLE later (x TEXT) STRICT;")
        code, found = self.checked()
        self.assertEqual((code, found["database"]), (1, {"found": known, "known": known + 1, "age": "older"}))
        self.assertEqual([each.split()[1] for each in found["next"]], ["backup", "vault"])
        self.assertIn(f"schema {known}, older than this version's ({known + 1})", self.command("upgrade", "--check")[1])

    def test_newer_database(self) -> None:
        """A database of a newer version is refused and not read further, whatever tables it has."""
        self.query("PRAGMA user_version = 999")
        self.query("ALTER TABLE audit_payloads RENAME TO elsewhere")
        code, found = self.checked()
        self.assertEqual((code, found["verdict"]), (2, "home_newer"))
        self.assertEqual((found["pending_approvals"], found["unfinished_runs"]), (None, None))
        self.assertEqual(found["next"][-1], "aileron upgrade --check")
        self.assertIn("this version refuses it", self.command("upgrade", "--check")[1])

    def test_newer_vault(self) -> None:
        """A vault of a newer version is refused as well; the daemon that uses it is left alone."""
        document = json.loads(self.home.secrets.read_text("utf-8"))
        self.home.secrets.write_text(json.dumps({**document, "version": 3, "new": "member"}), "utf-8")
        self.run_daemon("9.9.9")
        code, found = self.checked()
        self.assertEqual((code, found["vault"]), (2, {"found": 3, "known": 2, "age": "newer"}))
        self.assertEqual([each.split()[0] for each in found["next"]], ["pipx", "aileron"])

    def test_counted(self) -> None:
        """What is pending and what is not settled is counted, by the state of the run and nothing else."""
        one, _ = self.query("SELECT id FROM runs LIMIT 2")
        before = self.checked()[1]
        for state in RunState:
            self.query(f"UPDATE runs SET state = 'completed' WHERE id != '{one[0]}'")
            self.query(f"UPDATE runs SET state = '{state}' WHERE id = '{one[0]}'")
            found = self.checked()[1]
            pending = state is RunState.PENDING
            unfinished = not (state.settled or pending)
            self.assertEqual((found["pending_approvals"], found["unfinished_runs"]), (pending, unfinished), state)
        self.assertGreaterEqual(before["pending_approvals"], 1)

    def test_no_home(self) -> None:
        """Where there is no home nothing is due and nothing is made; the first step is a vault."""
        self.environ["AILERON_HOME"] = str(Path(self.mktemp()).absolute())
        code, found = self.checked()
        self.assertEqual((code, found["next"], found["vault"]["age"]), (0, ["aileron vault init"], "missing"))
        self.assertFalse(Path(self.environ["AILERON_HOME"]).exists())

    def test_damaged(self) -> None:
        """What is no database or no vault of Aileron's is an error, and nothing is said about an upgrade."""
        vault = self.home.secrets.read_bytes()
        for text in (b"no JSON", b"[]", b'{"version": "1"}'):
            self.home.secrets.write_bytes(text)
            code, out, err = self.command("upgrade", "--check")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("The vault file is damaged", err)
        self.home.secrets.write_bytes(vault)
        self.query("PRAGMA application_id = 1")
        code, out, err = self.command("upgrade", "--check")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("is no database of Aileron", err)

    def test_usage(self) -> None:
        """Without --check nothing is done: the daemon upgrades its files itself."""
        before = self.content()
        code, _, err = self.command("upgrade")
        self.assertEqual((code, self.content()), (2, before))
        self.assertIn("--check", err)


class BackupTests(UpgradeCase):
    """What is known of backups."""

    def test_known(self) -> None:
        """The last backup is named with its time; one that is gone is said to be; a copy of an upgrade is listed."""
        self.assertEqual(self.checked()[1]["last_backup"], None)
        self.assertIn("none known", self.command("upgrade", "--check")[1])
        file = Path(self.mktemp())
        self.typed = [_PASSPHRASE]
        self.assertEqual(self.command("backup", "create", str(file))[0], 0)
        self.home.database.with_name("aileron.db.backup-1").touch()
        self.home.database.with_name("aileron.db.backup-1.new").touch()
        found = self.checked()[1]
        self.assertEqual(found["last_backup"]["file"], str(file.absolute()))
        self.assertTrue(found["last_backup"]["exists"])
        self.assertEqual([Path(each).name for each in found["database_copies"]], ["aileron.db.backup-1"])
        self.assertIn(f"just now: {file.absolute()}\n", self.command("upgrade", "--check")[1])
        file.unlink()
        self.assertFalse(self.checked()[1]["last_backup"]["exists"])
        self.assertIn("(no longer there)", self.command("upgrade", "--check")[1])

    def test_off(self) -> None:
        """With the feature off in the daemon, nothing is said of backups and no step creates one."""
        note_path(self.home).write_text('{"file": "x", "made_at": "2026-01-01T00:00:00.000000Z"}')
        self.run_daemon("0.0.9", features_off=("backup",))
        code, found = self.checked()
        self.assertEqual((code, found["next"]), (1, ["aileron daemon stop", "aileron vault unlock"]))
        self.assertNotIn("last_backup", found)
        _, out, err = self.command("upgrade", "--check")
        self.assertNotIn("last backup", out)
        self.assertNotIn("features off", err)

    def test_off_unverified(self) -> None:
        """A file that nobody knows to be trusted hides no backup and no step, and what it has off is said."""
        atomic_write(self.home.config, b"features: {backup: off}\n")
        self.ship("CREATE TABLE later (x TEXT) STRICT;")
        code, found = self.checked()
        self.assertEqual((code, [each.split()[1] for each in found["next"]]), (1, ["backup", "vault"]))
        self.assertEqual((found["last_backup"], found["unverified_features_off"]), (None, ["backup"]))
        _, out, err = self.command("upgrade", "--check")
        self.assertIn("last backup", out)
        self.assertIn("config.yaml has features off: backup.", err)

    def test_note_not_read(self) -> None:
        """A note that is damaged, or a link, is as none: it decides nothing."""
        for text in ("", "[]", "{}", "[" * 9000, '{"file": "x"}'):
            note_path(self.home).write_text(text)
            self.assertEqual(self.checked()[1]["last_backup"], None, text)
        note_path(self.home).unlink()
        note_path(self.home).symlink_to("/dev/zero")
        self.assertEqual(self.checked()[1]["last_backup"], None)

    def test_note_not_written(self) -> None:
        """A backup that is written counts, even where the home cannot keep a note of it."""
        note_path(self.home).mkdir()
        file = Path(self.mktemp())
        self.typed = [_PASSPHRASE]
        code, out, err = self.command("backup", "create", str(file))
        self.assertEqual((code, file.exists()), (0, True))
        self.assertIn("Backup written and checked", out)
        self.assertIn("will not know of this backup", err)
