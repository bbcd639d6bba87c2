"""The state directory keeps others out, is written whole, and names the right daemon."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.home.discovery import Discovery, live_discovery, read_discovery, withdraw_discovery, write_discovery
from aileron.home.lock import acquire_lock, database_pid, release_lock, running_pid
from aileron.home.paths import Home, find_home, prepare
from aileron.home.ports import Ports, load_ports, save_ports
from aileron.home.private_files import atomic_write, read_private
from aileron.model.errors import Conflict, Forbidden, InvalidRequest

_HOLDER = """
import sys
from pathlib import Path
from aileron.home.lock import acquire_lock
from aileron.home.paths import Home
acquire_lock(Home(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""
_USER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1] + "/aileron.db")
database.execute("CREATE TABLE rows (text TEXT)")
print("held", flush=True)
sys.stdin.read()
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class HomeCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        self.home.root.parent.mkdir(parents=True, exist_ok=True)


class FindTests(SynchronousTestCase):
    def test_found(self) -> None:
        """AILERON_HOME wins over HOME, unless empty; a relative path is refused, and so is no place."""
        self.assertEqual(find_home({"AILERON_HOME": "/a", "HOME": "/b"}).root, Path("/a"))
        self.assertEqual(find_home({"AILERON_HOME": "", "HOME": "/b"}).root, Path("/b/.aileron"))
        for environ in ({"AILERON_HOME": "here"}, {}):
            self.assertRaises(InvalidRequest, find_home, environ)


class PrepareTests(HomeCase):
    def test_private(self) -> None:
        """All directories are made for this user only, and what others may read of ours is closed to them."""
        before = os.umask(0)
        try:
            prepare(self.home)
        finally:
            os.umask(before)
        for path in (self.home.root, self.home.actions, self.home.connectors, self.home.log):
            self.assertEqual(mode_of(path), 0o700)
        prepare(self.home)
        self.home.secrets.write_bytes(b"{}")
        self.home.secrets.chmod(0o644)
        self.home.root.chmod(0o755)
        prepare(self.home)
        self.assertEqual((mode_of(self.home.secrets), mode_of(self.home.root)), (0o600, 0o700))

    def test_foreign(self) -> None:
        """A home that belongs to somebody else is refused, not changed."""
        self.home.root.mkdir(mode=0o755)
        uid = os.getuid()
        self.patch(os, "getuid", lambda: uid + 1)
        self.assertRaises(Forbidden, prepare, self.home)
        self.assertEqual(mode_of(self.home.root), 0o755)


class AtomicWriteTests(HomeCase):
    def setUp(self) -> None:
        super().setUp()
        prepare(self.home)
        self.path = self.home.root / "file"

    def test_mode(self) -> None:
        """The file has the mode that was asked for, whatever was there and whatever the umask."""
        self.path.write_bytes(b"old")
        self.path.chmod(0o666)
        before = os.umask(0o277)
        try:
            atomic_write(self.path, b"new")
        finally:
            os.umask(before)
        self.assertEqual((self.path.read_bytes(), mode_of(self.path)), (b"new", 0o600))

    def test_failure_leaves_the_old(self) -> None:
        """A write that fails leaves the old file and no litter."""
        atomic_write(self.path, b"old")

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        self.patch(os, "fsync", full)
        self.assertRaises(OSError, atomic_write, self.path, b"new")
        self.assertEqual(self.path.read_bytes(), b"old")
        self.assertEqual([path.name for path in self.home.root.iterdir() if path.is_file()], ["file"])

    def test_no_replace(self) -> None:
        """Where replacing is forbidden the present file stays."""
        atomic_write(self.path, b"old", replace=False)
        self.assertRaises(FileExistsError, atomic_write, self.path, b"new", replace=False)
        self.assertEqual(self.path.read_bytes(), b"old")

    def test_link_is_replaced(self) -> None:
        """A symbolic link is replaced, never written through, nor is what lies where the new file is written first."""
        target = self.home.root / "target"
        target.write_bytes(b"target")
        self.path.symlink_to(target)
        atomic_write(self.path, b"new")
        self.assertEqual((target.read_bytes(), self.path.is_symlink()), (b"target", False))
        self.path.unlink()
        target = self.home.root / "target"
        target.write_bytes(b"target")
        self.patch(secrets, "token_hex", lambda _count: "guessed")
        for lay in (Path.symlink_to, Path.hardlink_to):
            lay(self.home.root / ".file.guessed", target)
            self.assertRaises(FileExistsError, atomic_write, self.path, b"new")
            self.assertEqual((target.read_bytes(), self.path.exists()), (b"target", False))


class ReadPrivateTests(HomeCase):
    def setUp(self) -> None:
        super().setUp()
        prepare(self.home)
        self.path = self.home.root / "file"

    def test_kinds(self) -> None:
        """No file is no error; a link, a pipe, one over the cap and another's are refused."""
        self.assertIsNone(read_private(self.path))
        for make in (lambda path: path.symlink_to("/etc/passwd"), os.mkfifo):
            make(self.path)
            self.assertRaises(Forbidden, read_private, self.path)
            self.path.unlink()
        self.path.write_bytes(b"1234")
        self.assertEqual(read_private(self.path, 4), b"1234")
        self.assertRaises(InvalidRequest, read_private, self.path, 3)
        uid = os.getuid()
        self.patch(os, "getuid", lambda: uid + 1)
        self.assertRaises(Forbidden, read_private, self.path)


DISCOVERY = Discovery(
    "http://127.0.0.1:1", "http://localhost:2", 7, "i1", "0.1.0", "2026-01-01T00:00:00.000000Z", "ail_l_canary"
)


class DiscoveryTests(HomeCase):
    def setUp(self) -> None:
        super().setUp()
        prepare(self.home)

    def test_round_trip(self) -> None:
        """What was written is read, from a private file; its key shows in no repr, and newer fields are ignored."""
        self.assertIsNone(read_discovery(self.home))
        write_discovery(self.home, DISCOVERY)
        self.assertEqual(read_discovery(self.home), DISCOVERY)
        self.assertEqual(mode_of(self.home.discovery), 0o600)
        self.assertNotIn("canary", repr(DISCOVERY))
        text = json.loads(self.home.discovery.read_bytes())
        self.home.discovery.write_text(json.dumps(text | {"mcp_url": "x"}))
        self.assertEqual(read_discovery(self.home), DISCOVERY)

    def test_damaged(self) -> None:
        """Damage is a clear error that tells no key."""
        for text in ("", "[]", "null", '{"url": "x"}', '{"launch_key": 5}', "[" * 60000, "\udcff"):
            self.home.discovery.write_bytes(text.encode("utf-8", "surrogateescape"))
            self.assertRaises(InvalidRequest, read_discovery, self.home)
        write_discovery(self.home, DISCOVERY)
        self.home.discovery.write_bytes(self.home.discovery.read_bytes().replace(b'"ail_l_canary"', b'["canary"]'))
        error = self.assertRaises(InvalidRequest, read_discovery, self.home)
        self.assertNotIn("canary", f"{error!r}{error.__context__ if not error.__suppress_context__ else ''}")

    def test_withdrawn_by_its_writer_only(self) -> None:
        """Another life's file stays; ours goes, and twice is safe."""
        write_discovery(self.home, DISCOVERY)
        withdraw_discovery(self.home, "i2")
        self.assertTrue(self.home.discovery.exists())
        withdraw_discovery(self.home, "i1")
        withdraw_discovery(self.home, "i1")
        self.assertFalse(self.home.discovery.exists())


class LockTests(HomeCase):
    def setUp(self) -> None:
        super().setUp()
        prepare(self.home)
        self.addCleanup(release_lock, self.home)

    def hold_elsewhere(self) -> subprocess.Popen[bytes]:
        return self.start(_HOLDER)

    def start(self, source: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", source, str(self.home.root)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, holder)
        assert holder.stdout is not None
        self.assertEqual(holder.stdout.readline(), b"held\n")
        return holder

    def end(self, holder: subprocess.Popen[bytes]) -> None:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()

    def test_nobody(self) -> None:
        """The holder sees itself, may not take it twice, and asking does not drop the lock; without one nobody runs."""
        self.assertIsNone(running_pid(self.home))
        acquire_lock(self.home)
        release_lock(self.home)
        self.assertIsNone(running_pid(self.home))
        acquire_lock(self.home)
        self.assertEqual(running_pid(self.home), os.getpid())
        self.assertRaises(Conflict, acquire_lock, self.home)
        probe = "import sys; from pathlib import Path; from aileron.home.lock import running_pid\n"
        probe += "from aileron.home.paths import Home\n"
        probe += "print(running_pid(Home(Path(sys.argv[1]))))"
        seen = subprocess.run([sys.executable, "-c", probe, str(self.home.root)], stdout=subprocess.PIPE, check=True)
        self.assertEqual(int(seen.stdout), os.getpid())

    def test_link(self) -> None:
        """A link where the lock should be is not followed: what it leads to is neither made nor held."""
        self.home.lock.symlink_to(self.home.root / "elsewhere")
        self.assertRaises(OSError, acquire_lock, self.home)
        self.assertFalse((self.home.root / "elsewhere").exists())

    def test_replaced(self) -> None:
        """Whatever lies where the lock should be, asking who holds it neither waits nor fails."""
        signal.alarm(20)  # or we are ended: a pipe that nobody writes to would keep us
        self.addCleanup(signal.alarm, 0)
        for replace in (os.mkfifo, os.mkdir, lambda path: os.symlink("elsewhere", path)):
            replace(self.home.lock)
            self.assertIsNone(running_pid(self.home))
            self.home.lock.rename(self.home.root / secrets.token_hex(4))

    def test_other(self) -> None:
        """Another process's lock names that process, and is free at its death, however it died."""
        holder = self.hold_elsewhere()
        self.assertEqual(running_pid(self.home), holder.pid)
        error = self.assertRaises(Conflict, acquire_lock, self.home)
        self.assertEqual(error.details["pid"], holder.pid)
        self.end(holder)
        self.assertIsNone(running_pid(self.home))
        acquire_lock(self.home)

    def test_database(self) -> None:
        """Another process that has the database open is seen by that, whatever became of the lock file."""
        with closing(sqlite3.connect(self.home.database)) as database:
            database.execute("PRAGMA journal_mode = WAL")
        self.assertIsNone(database_pid(self.home))
        user = self.start(_USER)
        self.assertEqual((database_pid(self.home), running_pid(self.home)), (user.pid, None))
        self.end(user)
        self.assertIsNone(database_pid(self.home))
        self.home.database.unlink()
        self.assertRaises(FileNotFoundError, database_pid, self.home)

    def test_stale_discovery(self) -> None:
        """A discovery file counts only while the process that it names holds the lock."""
        holder = self.hold_elsewhere()
        write_discovery(self.home, DISCOVERY)
        self.assertIsNone(live_discovery(self.home))
        live = attrs.evolve(DISCOVERY, pid=holder.pid)
        write_discovery(self.home, live)
        self.assertEqual(live_discovery(self.home), live)
        self.end(holder)
        self.assertIsNone(live_discovery(self.home))


class PortsTests(HomeCase):
    def test_remembered(self) -> None:
        """Ports are remembered; none, damaged or impossible ones mean that the system chooses."""
        prepare(self.home)
        self.assertEqual(load_ports(self.home), Ports())
        save_ports(self.home, Ports(1024, 65535))
        self.assertEqual(load_ports(self.home), Ports(1024, 65535))
        for text in ("[]", "{", '{"agent": 0}', '{"agent": 65536}', '{"agent": "80"}'):
            self.home.ports.write_text(text)
            self.assertEqual(load_ports(self.home), Ports())
