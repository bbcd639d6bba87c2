"""What holds back what was asked: the undo window, the pause, a denial that sticks, limits."""

from typing import Any

from tests.functional.browsed import BrowsedTestCase
from tests.functional.operated import GATED, UNGATED


class HoldingTests(BrowsedTestCase):
    """An operator who holds things back, on the page and in the terminal."""

    async def test_held(self) -> None:
        """A run is taken back on the page; a pause outlives a kill and releases nothing; a denial and a limit stick."""
        await self.begin()
        await self.give_window()
        taken = await self.ask(summary="Not this")
        self.assertIn("it begins at", (await self.approve(taken)).stdout)
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("Approved, and not begun")
        await page.until("document.querySelector('button.undo:not(:disabled)') !== null")
        self.assertIn("in 9 min", await page.text("#begins"))
        await page.click("button.undo")
        await page.until("document.querySelector('#begins') === null")
        self.assertEqual((await self.outcome(taken))[0], "cancelled")

        held = await self.ask(summary="Release me")
        await self.approve(held, "--not-before", "+2s")
        await page.until("document.querySelector('#pause:not(:disabled)') !== null")
        await page.click("#pause")
        await page.shows("Approved, and not begun")
        await page.until("document.querySelector('#pause').textContent === 'Resume'")
        await page.until("document.querySelector('#paused').textContent.includes('nothing begins')")
        self.assertEqual(page.problems, [])
        await self.kill_daemon()
        await self.unlock()
        self.assertTrue((await self.status())["paused"])
        refused = await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "Now"})
        self.assertEqual((refused.status, self.kind(refused)), (503, "paused"))
        self.assertIn(held, (await self.operator("resume")).stdout)
        (waiting,) = await self.waiting()
        self.assertIn("approve it once more to release it", waiting["stale"])
        self.assertEqual(self.workspace.messages, [])

        await self.operator("approval", "deny", held, "--reason", "not on a Friday")
        again = await self.run_action(self.agent, GATED, {"channel": "#GENERAL", "summary": " release  ME"})
        self.assertEqual((again.status, self.kind(again)), (403, "approval_denied"))
        self.assertIn("not on a Friday", again.text)
        await self.operator("approval", "forgive", held)
        await self.ask(summary="Release me")
        await self.operator("cap", "set", UNGATED, "--per-day", "1")
        for status in (200, 429):
            reply = await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "Now"})
            self.assertEqual(reply.status, status, reply.text)
        await self.posted()

    async def give_window(self) -> None:
        """Let the gated action be taken back for ten minutes."""
        path = self.action_file(GATED, gated=True)
        path.write_text(path.read_text().replace("required = true", "required = true\nundo_seconds = 600"))
        await self.add(path, force=True)

    def kind(self, reply: Any) -> str:
        """The class of a failure."""
        return str(reply.body["error"]["class"])
