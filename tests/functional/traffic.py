"""What a page fetches and how soon, as the browser itself counts it."""

from statistics import median
from time import perf_counter
from typing import Any

from twisted.internet.task import deferLater

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

PENDING = 12
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


class TrafficTestCase(PagesTestCase):
    """A browser before a list of pending approvals."""

    async def first_load(self) -> tuple[Page, dict[str, Any]]:
        """Load the list with nothing kept: the tab, and its requests, kilobytes and milliseconds until it paints."""
        for at in range(PENDING):
            await self.ask(f"number {at}")
        page = await self.entered()
        await page.call("Network.clearBrowserCache")
        await page.open("about:blank")
        await self.pause(1)
        page.requests.clear()
        page.traffic = 0
        await page.open(f"{self.url}/approvals")
        await page.until(f"document.querySelectorAll('.asks > li').length >= {PENDING}")
        await self.pause(3)
        requests = [url for _, url in page.requests if url.startswith(self.url)]
        painted = await page.evaluate(_PAINTED)
        return page, {"requests": requests, "kilobytes": page.traffic / 1000, "painted_ms": painted}

    async def idle(self, page: Page, seconds: float) -> float:
        """Bytes a second, both ways, of a page that nobody touches."""
        await self.pause(60)
        page.traffic = 0
        await self.pause(seconds)
        return page.traffic / seconds

    async def decide(self, page: Page, times: int) -> float:
        """The median of the milliseconds from a press of Approve until the page shows its result."""
        taken = []
        for at in range(times):
            run_id = await self.ask(f"decided {at}")
            await page.open(f"{self.url}/approvals/{run_id}")
            await page.until("document.querySelector('article') !== null")
            await self.ready(page)
            before = perf_counter()
            await page.evaluate("document.querySelector('#approve').click()")
            await page.until("document.querySelector('article')?.dataset.state !== 'pending_approval'")
            taken.append((perf_counter() - before) * 1000)
        return median(taken)

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await deferLater(self.reactor, seconds, lambda: None)
