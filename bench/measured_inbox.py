"""The test case that C{python -m bench inbox} runs: it decides the twenty requests by keys and writes the figures."""

from time import monotonic

from bench.browsing import write_figures
from tests.functional.mixed import SHOWN, MixedTestCase, Person


class InboxFigures(MixedTestCase):
    """The figures of deciding by keys."""

    timeout = 600

    async def test_figures(self) -> None:
        """Decide all requests and write the figures; it asserts nothing."""
        await self.ask_all()
        page = await self.entered("/home")
        await page.look(width=1440, height=900)
        await page.open(f"{self.url}/approvals")
        await page.until(SHOWN)
        person, began = Person(page), monotonic()
        for _ in self.asked:
            await person.decide(self.asked[await page.evaluate(SHOWN)][1].way)
        write_figures({"keys": person.keys, "seconds": monotonic() - began})
