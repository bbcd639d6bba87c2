"""The daemon's log is printed, and followed while the daemon runs."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from aileron.cli.context import CliContext
from aileron.home.lock import release_lock
from tests.cli.daemon import CommandCase


class LogsTests(CommandCase):
    """C{aileron log}.

    :ivar steps: what happens at each wait.
    """

    def setUp(self) -> None:
        super().setUp()
        self.path = self.home.log / "aileron.log"
        self.steps: list[Callable[[], None]] = []

    def cli_context(self) -> CliContext:
        """That of the case, whose waits are the steps."""
        return attrs.evolve(super().cli_context(), sleep=self.step)

    def step(self, _seconds: float) -> None:
        """Do what happens at this wait."""
        self.steps.pop(0)()

    def write(self, text: str) -> None:
        """Write to the log."""
        with self.path.open("a") as file:
            file.write(text)

    def rotate(self) -> None:
        """Put another file in the log's place, as the daemon does when it is full."""
        self.write("last of old\n")
        self.path.rename(self.path.with_suffix(".log.1"))
        self.write("first of new\n")

    def remove(self) -> None:
        """Take the log away, as between the two steps of a rotation."""
        self.path.rename(self.path.with_suffix(".log.2"))

    def stop(self) -> None:
        """Write the last line, and end the daemon."""
        self.write("newest\n")
        release_lock(self.home)

    def test_end(self) -> None:
        """The last lines are printed, and nothing in them acts on the terminal."""
        self.write("one\ntwo\nthree \x1b[2J\n")
        self.assertEqual(self.command("logs", "-n", "2"), (0, "two\nthree ␛[2J\n", ""))
        self.assertEqual(self.command("logs", "-n", "0"), (0, "", ""))

    def test_none(self) -> None:
        """Without a log it says so."""
        code, out, err = self.command("logs")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("There is no log yet", err)

    def test_followed(self) -> None:
        """New lines follow once they are whole, also those of the file after it, until the daemon has stopped."""
        self.serve()
        self.write("old\n")
        self.steps = [
            lambda: self.write("ha"),
            lambda: self.write("lf\n"),
            self.rotate,
            self.remove,
            self.stop,
        ]
        code, out, _ = self.command("logs", "--follow", "-n", "1")
        self.assertEqual((code, out.splitlines()), (0, ["old", "half", "last of old", "first of new", "newest"]))
        self.assertEqual(self.steps, [])
