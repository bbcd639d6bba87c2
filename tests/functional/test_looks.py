"""How every page looks: wide and narrow, light and dark, full, empty and in error, and to a screen reader."""

import json
from collections.abc import Sequence

from tests.extent import is_all
from tests.functional import slack
from tests.functional.browsed import JUDGED, PICTURES, SIZES, STYLES, PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, UNGATED

UNCOVERED = """["#trouble", ".brand", "header a[aria-current]"].map((each) => document.querySelector(each))
  .every((each) => {
    const { x, y, width, height } = each.getBoundingClientRect();
    return each.contains(document.elementFromPoint(x + width / 2, y + height / 2));
  })"""
_LINKED = """[...document.querySelectorAll('header a')]
  .flatMap((a) => [a.pathname, ...(a.dataset.also ?? "").split(" ").filter(Boolean)])"""
_FOLLOWED = """(() => {
  const link = document.createElement("a");
  link.href = %s;
  document.body.append(link);
  link.click();
  link.remove();
})()"""
NEWS = "The new parser is out.\nIt reads twice as fast."
LONG = "x" * 90 + "\n" * 25 + "A long story. " * 6


class LooksTestCase(PagesTestCase):
    """Pages that are looked at in every style."""

    async def go(self, page: Page, path: str) -> None:
        """Follow a link to a page, and wait until it shows what it is about; axe-core stays where it is."""
        await page.evaluate(_FOLLOWED % json.dumps(path))
        wanted = "document.querySelector('main > [data-title]:not([data-left])') !== null"
        there = f"location.pathname === '{path}'"
        if path == "/approvals":  # in a wide window the first request is beside the list, under its own address
            there = "location.pathname.startsWith('/approvals')"
        await page.until(f"{there} && {wanted}")

    async def menu(self, page: Page) -> Sequence[str]:
        """Every page that the navigation leads to, the brand and the pages that a link stands for included."""
        found: Sequence[str] = await page.evaluate(_LINKED)
        return found


class FullPagesTests(LooksTestCase):
    """Each page that the navigation leads to, the first thing that each of them leads to, and an action's forms."""

    async def test_every_page(self) -> None:
        """No page is wider than the window, says anything on the console, or has a serious fault of accessibility."""
        first, shown, _ = [await self.ask(summary=summary) for summary in (LONG, NEWS, "Short")]
        page = await self.entered()
        await self.show(page, shown)
        await self.approve(shown)  # so that there is something to chart
        done = (await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})).body["run_id"]
        paths = await self.paths(page)
        self.assertLess({"/home", "/history", "/approvals", f"/approvals/{first}", f"/runs/{done}"}, set(paths))
        for path in paths:
            if path == "/approvals":  # the list alone is looked at as well, where the window is narrow
                await page.look(**STYLES["390-dark"])
            await self.go(page, path)
            top, *rest = path.strip("/").split("/")
            await self.look_at(page, "-".join((top, *("one" if at == 0 else each for at, each in enumerate(rest)))))
        self.assertEqual(page.problems, [])

    async def show(self, page: Page, run_id: str) -> None:
        """Keep what the documentation shows: an approval and the home page, as a window shows them."""
        await page.look(width=1280, height=860)
        for path, name in ((f"/approvals/{run_id}", "approval"), ("/home", "home")):
            await self.go(page, path)
            await page.until("document.querySelector('#pause:not([hidden]):not(:disabled)') !== null")
            if name == "approval":
                await self.ready(page)
                await page.evaluate("document.activeElement.blur(); document.querySelector('#request').scrollTop = 0")
            await self.keep(page, f"window-{name}", whole=False)

    async def paths(self, page: Page) -> Sequence[str]:
        """All pages, each followed by one of its own."""
        found = [f"/actions/{GATED}{part}" for part in ("", "/edit", "/try")]
        await self.go(page, "/approvals")
        for top in await self.menu(page):
            await self.go(page, top)
            wanted = f"document.querySelector('main a[href^=\"{top}/\"]')?.pathname"
            found += [each for each in (top, await page.evaluate(wanted)) if each]
        return found


class ErrorPagesTests(LooksTestCase):
    """What a page shows when something is wrong."""

    async def test_errors(self) -> None:
        """What does not exist, is refused or does not answer is said, and looks as the rest does."""
        page = await self.entered()
        await page.open(f"{self.url}/runs/01M8B2T49TSW6AAKZ02BYGNZ7H")
        await page.shows("Page not found")
        await self.look_at(page, "error-missing")
        await self.go(page, "/grants")
        await page.click("#set-cap")
        await page.shows("within an hour, within a day")
        await self.look_at(page, "error-refused")
        self.workspace.next = [slack.drop(applied=False)]
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        await self.go(page, "/home")
        await page.shows("1 run")
        await self.look_at(page, "error-unknown")
        await self.kill_daemon()
        await page.shows("The daemon is not responding")
        for width, height in SIZES.items():
            await page.look(width=width, height=height)
            self.assertTrue(await page.evaluate(UNCOVERED), f"the notice and the navigation at {width} px")
        await self.look_at(page, "error-silent")


class EmptyPagesTests(LooksTestCase):
    """A home in which nothing was done yet. They hold little: a narrow and a wide style are enough daily.

    What they hold stands on the full pages as well, where axe-core looks for faults.
    """

    styles = tuple(STYLES if is_all() or PICTURES else JUDGED)
    judged = JUDGED if is_all() else frozenset()

    async def furnish(self, config: str = "") -> None:
        """Make nothing but a vault."""
        await self.operator("vault", "init")

    async def test_every_page(self) -> None:
        """Each page says that there is nothing yet, and has no fault for that."""
        page = await self.entered()
        await page.shows("No pending approvals.")
        for path in await self.menu(page):
            await self.go(page, path)
            await self.look_at(page, f"{path.strip('/')}-empty")
        self.assertEqual(page.problems, [])
