"""C{doc/troubleshooting.md}, played: runs of unknown outcome are looked up, and settled in each way."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional import slack
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED


class TroubleshootingTests(PageTestCase):
    """A user whose daemon was killed while three requests were under way."""

    page = "troubleshooting.md"

    async def in_doubt(self, count: int) -> list[str]:
        """Runs whose request left, and whose answer did not come."""
        await self.furnish()
        self.workspace.hides = True
        self.workspace.next = [slack.hang(applied=True)] * count
        session = await self.session()
        runs = [str((await self.run_action(session, GATED)).body["run_id"]) for _ in range(count)]
        for number, run_id in enumerate(runs, 1):
            await self.approve(run_id, "--wait", "0")
            await self.posted(number)
        await self.kill_daemon()
        await self.unlock()
        return runs

    @seldom
    async def test_played(self) -> None:
        """None of them is sent again by itself; one is requested anew, and waits."""
        happened, did_not, again = runs = await self.in_doubt(3)
        await self.play(
            Play("aileron run list --state unknown", shows=runs),
            Play("aileron run reconcile ID", replace={"ID": happened}, answers=[LOG_IN], shows=["It was not found."]),
            Play("aileron run settle ID --happened", replace={"ID": happened}, answers=[LOG_IN]),
            Play("aileron run settle ID --did-not-happen", replace={"ID": did_not}, answers=[LOG_IN]),
            Play("aileron run settle ID --run-again", replace={"ID": again}, answers=[LOG_IN]),
        )
        states = {each["id"]: each["state"] for each in (await self.told("runs", "list"))["items"]}
        self.assertEqual((states[happened], states[did_not]), ("completed", "failed"))
        [waiting] = await self.waiting()
        self.assertNotIn(waiting["id"], runs)
        self.assertEqual(self.workspace.posts(), 3)
