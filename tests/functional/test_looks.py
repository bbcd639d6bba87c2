"""How every page looks: wide and narrow, light and dark, and to who does not see it."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.functional import install
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

STYLES: Mapping[str, Mapping[str, Any]] = {
    "light": {},
    "dark": {"dark": True},
    "phone": {"width": 390, "height": 800},
    "small": {"width": 360, "height": 740},
    "desk": {"width": 1920, "height": 1080},
}
FAULTS = """axe.run(document).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]))"""
NEWS = "The new parser is out.\nIt reads twice as fast."
LONG = "x" * 90 + "\n" * 25 + "A long story. " * 6


class LooksTests(PagesTestCase):
    """Each page that the shell leads to, and the first thing that each of them leads to."""

    async def test_every_page(self) -> None:
        """No page is wider than the window, says anything on the console, or has a serious fault of accessibility."""
        first, shown, second = [await self.ask(summary=summary) for summary in (LONG, NEWS, "Short")]
        page = await self.entered()
        await self.show(page, shown)
        paths = await self.paths(page)
        self.assertLess({"/home", "/history", "/approvals", f"/approvals/{first}", f"/runs/{second}"}, set(paths))
        for path in paths:
            await self.look_at(page, path)
        self.assertEqual(page.problems, [])

    async def show(self, page: Page, run_id: str) -> None:
        """Keep what the documentation shows: an approval and the home page, as a window shows them."""
        await page.look(width=1280, height=860)
        for path, name in ((f"/approvals/{run_id}", "approval"), ("/home", "home")):
            await self.go(page, path)
            await page.until("document.querySelector('#pause:not([hidden]):not(:disabled)') !== null")
            if name == "approval":
                await self.ready(page)
            await self.keep(page, f"window-{name}", whole=False)

    async def paths(self, page: Page) -> Sequence[str]:
        """All pages, each followed by one of its own."""
        found: list[str] = []
        await self.go(page, "/approvals")
        for top in await page.evaluate("[...document.querySelectorAll('nav a')].map((each) => each.pathname)"):
            await self.go(page, top)
            wanted = f"document.querySelector('main a[href^=\"{top}/\"]')?.pathname"
            found += [each for each in (top, await page.evaluate(wanted)) if each]
        return found

    async def go(self, page: Page, path: str) -> None:
        """Open a page, and wait until it shows what it is about."""
        await page.open(f"{self.url}{path}")
        await page.until(f"location.pathname === '{path}' && document.querySelector('main > [data-title]') !== null")

    async def look_at(self, page: Page, path: str) -> None:
        """One page in every style, with axe-core, which finds what keeps people from using it."""
        await self.go(page, path)
        await page.evaluate(install.axe(install.place() / "opencode").read_text(encoding="utf-8") + ";0")
        name = path.strip("/").partition("/")[0] + ("-one" if path.count("/") > 1 else "")
        for style, size in STYLES.items():
            await page.look(**size)
            await self.keep(page, f"{name}-{style}")
            # Not held against innerWidth: a phone's window grows with what is too wide for it.
            wanted = await page.evaluate("document.documentElement.scrollWidth")
            self.assertLessEqual(wanted, size.get("width", 1100), (path, style))
            self.assertEqual(await page.evaluate(FAULTS), [], f"{path} {style}")
