"""C{doc/backup.md}, played: what waited is there again after a restore, and on another machine."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import BACKUP, LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED


class BackupTests(PageTestCase):
    """A user with an approval that waits."""

    page = "backup.md"

    @seldom
    async def test_played(self) -> None:
        """It waits after the restore, is approved there, and is completed on the new machine."""
        await self.furnish()
        asked = await self.run_action(await self.session(), GATED)
        await self.play(
            Play("aileron backup create aileron-2026-11-25.backup", answers=[LOG_IN]),
            Play("aileron backup check aileron-2026-11-25.backup", answers=[BACKUP], shows=["can be restored"]),
            Play("aileron daemon stop"),
            Play("mv ~/.aileron ~/.aileron.old"),
            Play("aileron backup restore aileron-2026-11-25.backup", answers=[BACKUP], shows=["Restored: "]),
            Play("aileron daemon start", answers=[LOG_IN]),
        )
        [waiting] = await self.waiting()
        self.assertEqual(waiting["id"], asked.body["run_id"])
        await self.approve(str(waiting["id"]), "--wait", "20")
        await self.play(
            Play("aileron daemon stop"),
            Play("aileron backup create aileron-move.backup", answers=[LOG_IN]),
        )
        self.state.root.rename(self.home.root / "old-machine")
        await self.play(
            Play("aileron backup restore aileron-move.backup", answers=[BACKUP], shows=["Restored: "]),
            Play("aileron vault unlock", answers=[LOG_IN], shows=["the vault is unlocked"]),
        )
        [run] = (await self.told("runs", "list"))["items"]
        self.assertEqual((run["id"], run["state"]), (waiting["id"], "completed"))
