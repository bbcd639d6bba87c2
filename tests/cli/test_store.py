"""C{aileron store} moves a home's store to a server and back, with the daemon stopped, and verifies both sides."""

from __future__ import annotations

from aileron.home.lock import acquire_lock, release_lock
from tests.cli.daemon import CommandCase

_NO_SERVER = "postgresql://u@127.0.0.1:1/a?sslmode=disable"


class RefusedTests(CommandCase):
    """What is refused before anything is asked of a server."""

    def test_running(self) -> None:
        """Nothing is copied while the daemon runs."""
        acquire_lock(self.home)
        self.addCleanup(release_lock, self.home)
        code, _, err = self.command("store", "migrate", "--to", _NO_SERVER)
        self.assertEqual(code, 1)
        self.assertIn("aileron daemon stop", err)

    def test_usage(self) -> None:
        """A direction is named by both places; a password is in no argument."""
        for arguments in (["--to", "sqlite"], ["--to", _NO_SERVER, "--from", _NO_SERVER]):
            code, _, err = self.command("store", "migrate", *arguments)
            self.assertEqual(code, 2)
            self.assertIn("--to sqlite --from URL", err)
        code, _, err = self.command("store", "migrate", "--to", "postgresql://u:canary@h/a")
        self.assertEqual((code, "canary" in err), (1, False))

    def test_no_file(self) -> None:
        """A home without a file has nothing to move."""
        code, _, err = self.command("store", "migrate", "--to", _NO_SERVER)
        self.assertEqual(code, 1)
        self.assertIn("nothing to copy", err)

    def test_moved(self) -> None:
        """The audit log of a home whose store was moved is looked for at the server."""
        self.home.moved_database.touch()
        code, _, err = self.command("audit", "verify")
        self.assertEqual(code, 1)
        self.assertIn("aileron store verify URL", err)
