"""Limits on spending, and what was used, in a real browser: raised by keyboard, and drawn for everybody."""

from tests.functional.browsed import BrowsedTestCase
from tests.functional.gatewayed import GatewayedTestCase, Kept
from tests.functional.script import Say
from tests.functional.sdks import Api


class SpendingPageTests(BrowsedTestCase, GatewayedTestCase):
    """A session that has reached its limit, and the operator."""

    async def test_raise(self) -> None:
        """A reached limit stands on the home page; its button lets the agent go on; charts have tables."""
        llm = self.llm({"m": [Say("hello"), Say("hello"), Say("I posted it to Slack.")]})
        self.use_upstream(llm)
        await self.begin()
        kept = Kept(self.home, llm.port, self.home.discovery()["url"], self.agent.gateway_key)
        sdk = self.through(kept)
        await self.operator("gateway", "limit", "set", "--per", "session", "--requests", "2")
        await self.operator("gateway", "limit", "set", "--per", "day", "--tokens", "900000", "--model", "m*")
        for _ in range(2):
            await sdk.use(Api.generate)
        await sdk.problem()
        page = await self.entered("/home")
        await page.shows("A spending limit is reached: requests in one session.")
        await self.use(page, 'main a[href="/gateway"]')
        await page.shows("2 requests of 2 requests")
        await page.shows("Tokens by model")
        await self.look_at(page, "spending")
        await self.use(page, f'button[id^="raise-"][id$="{self.agent.id}"]')
        await page.shows("2 requests of 4 requests")
        await sdk.use(Api.generate)
        await page.open(f"{self.url}/sessions/{self.agent.id}")
        await page.shows("3 requests of 4 requests")
        await page.shows("Says it posted to Slack; no run did.")
        await self.look_at(page, "spending-session")
        self.assertEqual(page.problems, [])
