"""C{doc/install.md}, played as far as nothing is installed: the demo, an upgrade's check, and what uninstalls."""

from __future__ import annotations

import os

from aileron import __version__
from aileron.features.backup.newest import note_path
from aileron.home.discovery import Discovery, write_discovery
from aileron.home.lock import acquire_lock, release_lock
from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED
from tests.golden.home import unpack, versions

STARTED = "2026-01-01T00:00:00.000000Z"


class InstallTests(PageTestCase):
    """A user of systemd, from the first command to the last."""

    page = "install.md"

    @seldom
    async def test_played(self) -> None:
        """The demo works, an upgrade is said to be due only where it is, and the daemon is stopped at the end."""
        systemctl = self.put_recorder("systemctl")
        await self.play(
            Play("aileron version", shows=[__version__]),
            Play("aileron demo", answers=[(r"\[y\]es, \[n\]o, \[b\]rowser: ", "y")], shows=["execution.succeeded"]),
        )
        await self.furnish()
        await self.run_action(await self.session(), GATED)
        await self.play(
            Play("aileron backup create ~/aileron-before-upgrade.backup", answers=[LOG_IN]),
            Play("aileron upgrade --check", shows=["Nothing has to be upgraded."]),
        )
        await self.command("daemon", "stop")
        await self.play_outdated()
        install = self.home.script("aileron", "daemon", "install", **self.environment())
        self._expect(await self.run_command(install), 0)
        await self.play(Play("aileron daemon uninstall"), Play("aileron daemon stop"))
        self.assertEqual(systemctl()[-1], "--user disable --now aileron.service")
        self.assertEqual((await self.aileron("daemon", "status")).exit_code, 1)

    async def play_outdated(self) -> None:
        """The check in a home that an earlier version left, whose daemon runs."""
        home = self.state.root.rename(self.home.root / "of-today")
        unpack(versions()[0], self.state.root)
        (home / "last-backup.json").rename(note_path(self.state))
        acquire_lock(self.state)
        try:
            url = "http://127.0.0.1:1"
            write_discovery(self.state, Discovery(url, url, os.getpid(), "life", "0.1.0", STARTED, "key"))
            await self.play(
                Play(
                    "aileron upgrade --check",
                    code=1,
                    varies={
                        "0.2.0": __version__,
                        "schema 1": r"schema \d+",
                        "(6)": r"\(\d+\)",
                        "2 (kept)": r"\d+ \(kept\)",
                        "2026-11-21 09:12": ".*",
                        "aileron-2026-11-21": "aileron-before-upgrade",
                    },
                )
            )
        finally:
            release_lock(self.state)
        self.state.root.rename(self.home.root / "of-yesterday")
        home.rename(self.state.root)
