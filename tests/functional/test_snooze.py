"""A request that is put aside in one tab is folded away in each, and comes back when it is told to."""

from __future__ import annotations

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

_OPEN = "document.querySelector('#snooze').open = true"


class SnoozeTests(PagesTestCase):
    """Two requests in a wide window."""

    async def show(self, page: Page, run_id: str) -> None:
        """Show one request. The page that was there before may show it too, so this waits for the new page."""
        await page.open(f"{self.url}/approvals/{run_id}")
        await page.until(
            f"document.querySelector('article.split')?.dataset.id === '{run_id}' && !!document.querySelector('#snooze')"
        )

    async def test_snoozed(self) -> None:
        """The next request is shown; the snoozed one is in a folded group, still waits, and comes back at once."""
        first, second = await self.ask("One", "#general"), await self.ask("Two", "#deploys")
        page = await self.entered()
        await page.look(width=1440, height=900)
        await self.show(page, first)
        await page.evaluate(_OPEN)
        await page.click("#snooze [data-hours]")
        await page.until(f"location.pathname === '/approvals/{second}'")
        await page.until(f"!!document.querySelector('#snoozed:not([open]) [data-row=\"{first}\"]')")
        self.assertEqual((await self.outcome(first))[0], "pending_approval")
        await self.show(page, first)
        await page.evaluate(_OPEN)
        await page.click("#snooze [data-wake]")
        await page.until(f"!document.querySelector('#snoozed') && !!document.querySelector('[data-row=\"{first}\"]')")
