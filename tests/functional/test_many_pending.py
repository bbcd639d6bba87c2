"""A browser before a thousand approvals that wait: when it has painted, and when what it shows stands."""

from typing import Any

from tests.extent import seldom
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

PENDING = 1000
PAINTED_MS, STANDS_MS = 300, 1000
_ROUNDS = 5
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_WATCHED = """new MutationObserver(() => {
  if (window.stood === undefined && document.querySelector(%r)) window.stood = performance.now();
}).observe(document, { childList: true, subtree: true })"""


class ManyPendingTests(PagesTestCase):
    """Agents have asked for far more than anybody reads."""

    async def furnish(self, config: str = "") -> None:
        """Let one session ask for as much."""
        await super().furnish(f"pending:\n  per_session: {PENDING}\n  per_action: {PENDING}\n  per_home: {PENDING}\n")

    @seldom
    async def test_paint(self) -> None:
        """The list and an approval are painted within 300 ms, and stand within a second; the fastest of five counts."""
        run_id = ""
        for at in range(PENDING):
            run_id = await self.ask(f"number {at}")
        page = await self.entered()
        for path, wanted in (("/approvals", ".ask"), (f"/approvals/{run_id}", "article")):
            await page.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCHED % wanted)
            taken = [await self.load(page, path) for _ in range(_ROUNDS)]
            painted, stood = (min(each) for each in zip(*taken, strict=True))
            print(f"{PENDING} pending, {path}: painted after {painted:.0f} ms, stands after {stood:.0f} ms")
            self.assertLess(painted, PAINTED_MS, taken)
            self.assertLess(stood, STANDS_MS, taken)

    async def load(self, page: Page, path: str) -> tuple[Any, Any]:
        """Load a page anew: milliseconds until it is painted, and until what it is about stands."""
        await page.call("Page.navigate", url="about:blank")
        await page.open(f"{self.url}{path}")
        stood = await page.until("window.stood")
        return await page.until(_PAINTED), stood
