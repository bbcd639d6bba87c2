"""The pages beside approvals in a real browser, as far as `test_keyboard` does not use them already."""

import json

from tests.functional.browsed import ASKS_UNTIL, PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, UNGATED

_TIME_STANDS = """{ const known = window.setTimeout;
  window.setTimeout = (call, ms) => known(call, String(call).includes("dataset.asked") ? 600000 : ms); }"""
# A look at the page's fragment takes until it is let go, and none is made because time has passed.  How often the page
# was told of news, and when it last was, is counted.
_LOOK_HANGS = """{ const asked = window.fetch, later = window.setTimeout;
  window.setTimeout = (call, ms) => {
    if (String(call).includes("wake()")) [window.told, window.toldAt] = [window.told + 1, performance.now()];
    return later(call, String(call).includes("native code") ? 600000 : ms);
  };
  window.told = 0;
  window.looking = false;
  window.fetch = async (path, options) => {
    const answer = await asked(path, options);
    if (window.looking || !String(path).startsWith("/fragments")) return answer;
    window.looking = true;
    await new Promise((done) => { window.letGo = done; });
    return answer;
  }; }"""
_LOOKS = "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/fragments/')).length"
_LOADED = """new Promise((done) => {
  const icon = new Image();
  icon.onload = () => done(icon.naturalWidth);
  icon.onerror = () => done(0);
  icon.src = %s;
})"""


class OtherPagesTests(PagesTestCase):
    """What the pages say by themselves, on a phone too, and what is undone from one."""

    async def opened(self) -> Page:
        """A page of somebody who is logged in."""
        page = await self.entered()
        await page.shows("Pending approvals")
        return page

    async def go(self, page: Page, name: str, shows: str) -> None:
        """Follow a link of the navigation."""
        await page.click(f'nav a[href="/{name}"]')
        await page.shows(shows)

    async def test_undo(self) -> None:
        """A completed run is undone by what its action names: its button leads to the approval of that."""
        path = self.action_file(UNGATED, gated=False)
        head, mark, body = path.read_text().rpartition("+++\n")
        inverse = (
            f'\n[undo]\naction = "{GATED}"\nargs = {{ channel = "#general", summary = "Undone: ${{steps.post.ts}}" }}\n'
        )
        path.write_text(f"{head}{inverse}{mark}{body}")
        await self.add(path, force=True)
        done = await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "Sent"}, wait=30)
        self.assertEqual((done.status, len(self.workspace.messages)), (200, 1), done.text)
        page = await self.entered(f"/runs/{done.body['run_id']}")
        await page.shows(f"Requests {GATED} for what this run did.")
        await self.keep(page, "run-undo")
        await self.use(page, "#undo")
        await page.until("location.pathname.startsWith('/approvals/')")
        await page.shows("Undoes an earlier run")
        await self.ready(page)
        self.assertEqual(len(self.workspace.messages), 1)
        await page.click("#approve")
        await self.posted(2)
        self.assertIn("Undone: ", self.workspace.messages[1].text)

    async def test_home(self) -> None:
        """Home follows what happens: a request appears and leads to its approval; once done, it is counted there."""
        page = await self.opened()
        await page.click("header a.brand")
        await page.shows("Nothing is waiting for you.")
        await page.shows("Approve its first call")
        await self.keep(page, "home-empty")
        run_id = await self.ask()
        await page.shows("1 pending approval")
        await self.keep(page, "home-pending")
        await self.open_approval(page, run_id)
        await self.ready(page)
        await page.click("#approve")
        await self.posted()
        await page.click("a.brand")
        counted = "document.querySelector('a[href=\"/runs?state=completed\"] strong')?.textContent"
        await page.until(f"{counted} === '1'")
        self.assertNotIn("Get started", await page.text("main"))
        await page.click('a[href="/runs?state=completed"]')
        await page.until(f"document.querySelector('main a[href=\"/runs/{run_id}\"]') !== null")
        for width, display in ((1280, "table"), (390, "block")):
            await page.look(width=width)
            self.assertEqual(await page.evaluate("getComputedStyle(document.querySelector('.list')).display"), display)
        await self.assert_local_times(page)
        self.assertEqual(page.problems, [])

    async def assert_local_times(self, page: Page) -> None:
        """A drawing has times of the reader's zone, as the rest of the pages has."""
        await page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        await page.open(f"{self.url}/sessions/{self.agent.id}")
        await page.until("document.querySelector('.timeline tspan') !== null")
        drawn = "(({ textContent, dataset }) => [textContent, dataset.at])(document.querySelector('.timeline tspan'))"
        words, at = await page.evaluate(drawn)
        self.assertEqual(int(words.split(":")[1]), (int(at.split(":")[1]) + 30) % 60, (words, at))

    async def assert_installable(self, page: Page) -> None:
        """The browser finds a manifest without a fault, and an icon of it that can be cut to any shape."""
        found = await page.call("Page.getAppManifest")
        self.assertEqual((found["url"], found["errors"]), (f"{self.url}/static/manifest.webmanifest", []))
        manifest = json.loads(found["data"])
        for icon in manifest["icons"]:
            self.assertGreater(await page.evaluate(_LOADED % json.dumps(icon["src"])), 0, icon)

    async def test_more_on_a_phone(self) -> None:
        """On a phone the other pages are behind a button, and closed by a link or Escape; it can be installed."""
        page = await self.opened()
        await self.assert_installable(page)
        await page.look(width=390, height=800)
        is_open = "document.querySelector('#menu').matches(':popover-open')"
        shows = "document.querySelector('#menu a').checkVisibility()"
        self.assertFalse(await page.evaluate(shows))
        await self.use(page, "#show-menu")
        await page.until(f"{is_open} && {shows}")
        await self.keep(page, "more-phone")
        await self.use(page, '#menu a[href="/grants"]')
        await page.shows("No limits set")
        self.assertEqual(await page.evaluate(f"[location.pathname, {is_open}]"), ["/grants", False])
        await page.click("#show-menu")
        await page.until(is_open)
        await page.press("Escape")
        await page.until(f"!{is_open}")
        self.assertEqual(await page.evaluate("location.pathname"), "/grants")
        self.assertEqual(page.problems, [])

    async def test_news_while_it_looks(self) -> None:
        """News that comes while a page is looking, too late for that look, is looked for at once after it."""
        page = await self.opened()
        await self.go(page, "audit", "Signed up to record")
        await page.evaluate(_LOOK_HANGS)
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "the page looks for it"})
        await page.until("window.looking")
        before = await page.evaluate("window.told")
        late = {"channel": "#general", "summary": "too late for that look"}
        done = await self.run_action(self.agent, UNGATED, late, wait=30)
        self.assertEqual(done.status, 200, done.text)
        # All of the news is there, and then the page waits eight times as long as its look took.
        await page.until(f"window.told > {before} && performance.now() - window.toldAt > 300")
        await page.evaluate("window.letGo()")
        await page.until("document.body.innerText.split('execution.succeeded').length > 2")

    async def test_what_stands(self) -> None:
        """Why something was refused, and whether one is sure, stays there whatever news comes meanwhile."""
        page = await self.opened()
        await self.go(page, "grants", "No limits set")
        await page.click("#set-cap")
        said = "[...document.querySelectorAll('#main .answer')].map((each) => each.textContent).join('')"
        words = await page.until(said)
        self.assertIn("within an hour, within a day", words)
        await self.operator("cap", "set", GATED, "--per-hour", "9")
        await page.shows("9 per hour")
        self.assertEqual(await page.evaluate(said), words)
        await self.go(page, "settings", "Unlocked")
        await page.evaluate(_TIME_STANDS)
        await page.click("#lock")
        asked = "document.querySelector('#lock').dataset.asked"
        await page.until(f"{asked} === 'yes'")
        await self.told("operator", "list")  # another login, which the page would show
        looks = await page.evaluate(_LOOKS)
        await page.until(ASKS_UNTIL % f"{_LOOKS} > {looks + 2}")
        self.assertEqual(await page.evaluate(asked), "yes")
        await page.click("#lock")
        await page.shows("The vault is locked, so nothing runs. You can watch")
