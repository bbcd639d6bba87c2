"""What C{python -m bench pages} has a test runner do: a daemon, a browser, and one line of JSON about them."""

import json
import os
from pathlib import Path

from tests.functional.traffic import TrafficTestCase

FILE = "AILERON_BENCH_PAGES"
"""Names the file for the figures."""

_IDLE_SECONDS, _DECIDED = 90, 5


class PageFigures(TrafficTestCase):
    """The figures of the inbox."""

    timeout = 600

    async def test_figures(self) -> None:
        """Load, wait and decide; it asserts nothing."""
        page, found = await self.first_load()
        found["idle"] = await self.idle(page, _IDLE_SECONDS)
        found["decided_ms"] = await self.decide(page, _DECIDED)
        Path(os.environ[FILE]).write_text(json.dumps(found))
