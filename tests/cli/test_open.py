"""A browser gets in by a private file that nobody else can use."""

from __future__ import annotations

import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._browser import browser_command
from aileron.cli._handover import sweep, write_page
from aileron.home import Home
from tests.cli.daemon import CommandCase


class PageTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        self.home.root.mkdir()

    def test_file(self) -> None:
        """The file is this user's alone, posts the code to the operator site, and holds no markup of others."""
        file = write_page(self.home, "http://localhost:8", 'c"><script>', "/approvals/1")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(file.parent.stat().st_mode), 0o700)
        text = file.read_text()
        self.assertIn('method="post" action="http://localhost:8/handover"', text)
        self.assertIn('name="code" value="c&quot;&gt;&lt;script&gt;"', text)
        self.assertIn('value="/approvals/1"', text)

    def test_sweep(self) -> None:
        """What a killed command left is removed, and nothing else."""
        file = write_page(self.home, "http://localhost:8", "c", "/")
        other = file.with_name("other")
        other.touch()
        sweep(self.home)
        self.assertEqual(list(file.parent.iterdir()), [other])


class BrowserTests(SynchronousTestCase):
    def test_choice(self) -> None:
        """BROWSER comes first if it can be run; without a display there is none."""
        path = {"PATH": "/usr/bin:/bin"}
        self.assertEqual(browser_command({**path, "BROWSER": "/nowhere:cat -n %s"}), ("cat", "-n"))
        self.assertEqual(browser_command(path, "darwin"), ("open",))
        self.assertIsNone(browser_command(path, "linux"))
        self.assertIsNone(browser_command({"PATH": "/nowhere", "DISPLAY": ":0"}, "linux"))


class OpenTests(CommandCase):
    def test_usage(self) -> None:
        """An approval needs its id, and nothing else has one."""
        for arguments in (("approval",), ("approvals", "x"), ("other",)):
            self.assertEqual(self.command("open", *arguments)[0], 2, arguments)
