"""The test case that C{python -m bench pages} runs: it loads pages in a browser and writes the figures."""

from bench.browsing import write_figures
from tests.functional.traffic import TrafficTestCase

_IDLE_SECONDS, _DECIDED, _LOADS = 90, 5, 7


class PageFigures(TrafficTestCase):
    """The figures of the inbox."""

    timeout = 900

    async def test_figures(self) -> None:
        """Load several times, wait, decide, and write the figures; it asserts nothing."""
        loads = []
        for _ in range(_LOADS):
            page, found = await self.first_load()
            loads.append(found)
            await page.open("about:blank")
        await page.open(f"{self.url}/approvals")
        idle = await self.idle(_IDLE_SECONDS)
        write_figures({"loads": loads, "idle": idle, "decided_ms": await self.decide(page, _DECIDED)})
