"""A real browser at the door: the two words, what its tabs do meanwhile, and how a login that nobody uses ends."""

import json
from typing import Any

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Chromium, Page
from tests.functional.loopback import LoopbackSite, Neighbour
from tests.functional.operated import PASSPHRASE
from tests.functional.process import Running
from tests.functional.reactor import until

WORDS = "The two words shown at .*: "
KEY_ID = "import('/static/store.js').then(({ read }) => read('current')).then(({ id }) => id)"
NOTHING = "No pending approvals."
WATCH = """(() => { const known = window.fetch; window.sent = [];
  window.fetch = (url, options) => { window.sent.push(Object.keys(options.headers)); return known(url, options); };
})()"""
LEFT = """import('/static/login.js').then(({ follows, ended }) => {
  const at = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
  const ends = { "X-Aileron-Expires": at(%d), "X-Aileron-Ends": at(%d) };
  follows({ headers: new Headers({ Date: new Date().toUTCString(), ...ends }) });
  return [document.getElementById("login").textContent, ended()]; })"""


class EnteringTests(PagesTestCase):
    """A user with a vault and a browser, and nothing that waits."""

    async def begin(self) -> None:
        """Start a daemon and a browser."""
        await self.operator("vault", "init")
        self.url = str(self.home.discovery()["operator_url"])
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)

    async def opening(self, page: Page) -> tuple[Running, str]:
        """``aileron open`` that waits for the words in this tab, and the address of the file."""
        seen, program = self.home.root / "seen", self.home.root / "browser"
        seen.unlink(missing_ok=True)
        program.write_text(f'#!/bin/sh\ncp "$1" {seen}.html && mv {seen}.html {seen}\n')
        program.chmod(0o700)
        running = self.on_terminal("open", BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await until(self.reactor, seen.exists, 30, f"a file to open: {running!r}")
        file = seen.rename(seen.with_suffix(".html"))
        await page.open(file.as_uri())
        await page.shows("Type these two words in your terminal")
        await running.expect(WORDS)
        return running, file.as_uri()

    async def test_waits(self) -> None:
        """It keeps its words through a reload, other tabs are nobody meanwhile, and after them all tabs go on."""
        page, other = await self.browser.page(), await self.browser.page()
        await other.open(f"{self.url}/approvals")
        await other.shows("You are not logged in")
        running, _file = await self.opening(page)
        words = await page.text("#words")
        await self.keep(page, "words")
        await page.reload()
        await page.shows(words)
        await page.open(f"{self.url}/confirm")
        await page.shows(words)
        await page.open(f"{self.url}/approvals")
        await page.shows(words)
        await page.open(f"{self.url}/confirm")
        await page.shows(words)
        self.assertEqual(await other.evaluate("sessionStorage.length"), 0)
        await other.shows("You are not logged in")
        running.send(words)
        self.assertEqual((await running.finish(30)).exit_code, 0)
        await page.shows(NOTHING)
        await other.shows(NOTHING)
        self.assertEqual(await page.evaluate("location.pathname"), "/")
        self.assertEqual(await page.evaluate("sessionStorage.getItem('aileron-entering')"), None)
        self.assertEqual([each for each in page.problems + other.problems if "file:" not in each], [])

    async def test_link_elsewhere(self) -> None:
        """A link on another site leads to an empty page, which asks for its place once more, and then shows it."""
        page, foreign = await self.browser.page(), await self.browser.page()
        await self.log_in(page)
        await page.shows(NOTHING)
        site = LoopbackSite.listen(self.reactor, Neighbour())
        self.finally_(site.stop)
        for url in (site.url, site.url.replace("127.0.0.1", "localhost")):
            await foreign.open(url)
            await foreign.shows("neighbour")
            foreign.requests.clear()
            await foreign.evaluate(f"void setTimeout(() => location.assign('{self.url}/approvals?x=1#y'))")
            await foreign.shows(NOTHING)
            places = [url for _, url in foreign.requests if "/approvals" in url and "/fragments" not in url]
            self.assertEqual(len(places), 2)
            self.assertEqual(await foreign.evaluate("sessionStorage.length"), 0)
        self.assertEqual(foreign.problems, [])

    async def test_other_clock(self) -> None:
        """A browser whose clock tells another time, as one on another machine may, is let in and stays."""
        page = await self.browser.page()
        off = "Date.now = ((now) => () => now() - 3600000)(Date.now.bind(Date));"
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=off)
        await self.log_in(page)
        await page.shows(NOTHING)
        await page.reload()
        await page.shows(NOTHING)
        await self.pause(3)
        await page.shows(NOTHING)

    async def test_not_let_in(self) -> None:
        """Other words, a second tab that uses the file, and Ctrl-C each end it, and are told; no file is left."""
        page, other = await self.browser.page(), await self.browser.page()
        running, _file = await self.opening(page)
        running.send("not these")
        await page.shows("The words did not match")
        self.assertEqual((await running.finish(30)).exit_code, 1)
        await page.open(f"{self.url}/approvals")
        await page.shows("You are not logged in")
        running, file = await self.opening(page)
        await other.open(file)
        await other.shows("This login was used twice")
        await self.keep(other, "twice")
        await page.shows("This login was used twice")
        await running.expect("The file was opened twice")
        self.assertEqual((await running.finish(30)).exit_code, 1)
        running, _file = await self.opening(page)
        self.assertEqual((await running.interrupt()).exit_code, 130)
        self.assertEqual(list((self.home.aileron / "run").iterdir()), [])

    async def test_again(self) -> None:
        """A second login in the same browser takes the place of the first in all its tabs."""
        page, other = await self.browser.page(), await self.browser.page()
        for tab in (page, other):
            await self.log_in(tab)
            await tab.shows(NOTHING)
        await self.pause(3)
        await page.shows(NOTHING)
        both = [await tab.evaluate(KEY_ID) for tab in (page, other)]
        self.assertEqual(both[0], both[1])

    async def test_unused(self) -> None:
        """What the page asks by itself says so; what follows on a key or a click does not.

        It says when a login ends without a use, when it ends whatever is done, and afterwards why it did.
        """
        page = await self.entered()
        await page.shows(NOTHING)
        await page.evaluate(WATCH)
        await page.until("window.sent.length > 2", 60)
        self.assertIn("X-Aileron-Poll", (await self.sent(page))[-1])
        count = len(await self.sent(page))
        await page.press("Tab")
        plain = f"window.sent.findIndex((each, at) => at >= {count} && !each.includes('X-Aileron-Poll'))"
        await page.until(f"{plain} >= 0 && window.sent.length > {plain} + 1", 60)
        polled = ["X-Aileron-Poll" in headers for headers in (await self.sent(page))[count:]]
        self.assertEqual(polled[polled.index(False) :][:2], [False, True])
        for idle, whole, notice, why in (
            (1700, 9000, "", ""),
            (250, 9000, "Your login ends in 4 min unless you use this page.", ""),
            (30, 30, "Your login ends within a minute.", ""),
            (5, 9000, "Your login ends within a minute unless you use this page.", "was not used for 30 minutes"),
            (5, 5, "Your login ends within a minute.", "reached its maximum duration"),
        ):
            found, said = await page.evaluate(LEFT % (idle, whole))
            self.assertEqual(found, notice)
            self.assertIn(why, said)
            self.assertEqual(bool(said), bool(why))

    async def sent(self, page: Page) -> Any:
        """The headers of each request since it was watched."""
        return json.loads(await page.evaluate("JSON.stringify(window.sent)"))
