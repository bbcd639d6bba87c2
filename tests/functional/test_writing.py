"""Writing an action in a real browser, by keyboard alone: a fault, a save, a dry run, trust, and then an agent's call."""

import json

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED

NAME = "tell-team"


class WritingTests(PagesTestCase):
    """An operator who has a page and no terminal."""

    async def tab_to(self, page: Page, selector: str) -> None:
        """Press Tab until this has the focus."""
        for _ in range(60):
            if await page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            await page.press("Tab")
        self.fail(f"no Tab leads to {selector}")
