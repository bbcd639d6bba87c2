"""A real browser at the door: the two words, what its tabs do meanwhile, and how a login that nobody uses ends."""

import json
from typing import Any

from tests.functional.browsed import ASKS_UNTIL, PagesTestCase
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
  const ends = { "X-Aileron-Expires": at(%d), "X-Aileron-Ends": at(%d), "X-Aileron-Level": "%s" };
  follows({ headers: new Headers({ Date: new Date().toUTCString(), ...ends }) });
  return document.getElementById("login").textContent; })"""
# What is sent there fails as C{window.failing} says; what hangs does so for a moment of the time that it was given.
FAILING = """(() => { const known = window.fetch, timeout = AbortSignal.timeout; window.failing = "%s";
  AbortSignal.timeout = (ms) => Object.assign(timeout.call(AbortSignal, ms), { ms });
  window.fetch = async (path, options) => {
    if (!window.failing || path !== "%s") return known(path, options);
    if (window.failing === "busy") return new Response("", { status: 503 });
    if (window.failing === "cut") throw new TypeError("cut");
    if (window.failing === "lost") await known(path, options);
    window.failing = window.failing === "lost" ? "" : window.failing;
    return new Promise((_, fail) => {
      if (options.signal?.ms < 60000) setTimeout(() => fail(new DOMException("", "TimeoutError")), 100);
    });
  }; })()"""
CODE = r"\s((?:[A-Z]{4}-){4}[A-Z]{4})\s"
ENTER = "#enter-code button"


class EnteringTests(PagesTestCase):
    """A user with a vault and a browser, and nothing that waits."""

    async def begin(self) -> None:
        """Start a daemon and a browser."""
        await self.operator("vault", "init")
        self.url = str(self.home.discovery()["operator_url"])
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)

    async def opening(self, page: Page, shows: str = "Type these two words in your terminal") -> tuple[Running, str]:
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
        await page.shows(shows)
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
        await page.shows("Get started")
        await other.shows(NOTHING)
        self.assertEqual(await page.evaluate("location.pathname"), "/home")
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

    async def typing(self, page: Page) -> tuple[Running, str]:
        """``aileron open --code``, whose code is entered in this tab; and what enters it there."""
        running = self.on_terminal("open", "--code")
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        code = (await running.expect(CODE))[1]
        enter = f"document.querySelector('#login-code').value = '{code}'"
        await page.evaluate(enter)
        await page.click(ENTER)
        return running, enter

    async def unlucky(self, path: str, failing: str) -> Page:
        """A tab that is nobody's, and whose requests there fail."""
        page = await self.browser.page()
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=FAILING % (failing, path))
        await page.open(f"{self.url}/approvals")
        await page.shows("You are not logged in")
        return page

    async def test_restarted_meanwhile(self) -> None:
        """A browser whose words are shown when the daemon is restarted learns that its address is no more."""
        page = await self.browser.page()
        running, _file = await self.opening(page)
        await self.command("daemon", "stop")
        await self.unlock()
        await page.shows("Your pages have another address now")
        self.assertEqual((await running.finish(30)).exit_code, 1)

    async def test_key_without_an_answer(self) -> None:
        """What has no answer is told again; once the daemon took the key and nobody saw it, the login is over."""
        page = await self.unlucky("/handover/key", "lost")
        running, _file = await self.opening(page, "The connection broke during the login")
        await self.keep(page, "cut-off")
        await running.kill()
        page = await self.unlucky("/handover/key", "cut")
        running, _enter = await self.typing(page)
        for failing in ("busy", "hang", ""):
            await page.shows("The daemon is not responding. Trying again")
            await page.evaluate(
                f"document.querySelector('#code-refused').textContent = ''; window.failing = '{failing}'"
            )
        await page.shows("Type these two words in your terminal")
        await self.type_words(running, page)
        self.assertEqual((await running.finish(30)).exit_code, 0)
        await page.shows(NOTHING)

    async def test_code_without_an_answer(self) -> None:
        """A code that did not reach the daemon can be entered again; one that may have is not called wrong."""
        page = await self.unlucky("/handover", "cut")
        running, enter = await self.typing(page)
        await page.shows("The daemon is not responding. Check the connection, then try again.")
        for failing in ("busy", "hang"):
            await page.evaluate(f"window.failing = '{failing}'; {enter}")
            await page.click(ENTER)
            await page.shows("this code may be used up")
            await self.keep(page, f"code-{failing}")
            await page.evaluate("document.querySelector('#code-refused').textContent = ''")
        await page.evaluate(f"window.failing = ''; {enter}")
        await page.click(ENTER)
        await page.shows("Type these two words in your terminal")
        await running.kill()

    async def test_again(self) -> None:
        """A second login in the same browser lets the first decide anew: one login, one key, and tabs that go on."""
        page, other = await self.browser.page(), await self.browser.page()
        await self.log_in(page)
        await page.shows(NOTHING)
        first = await page.evaluate(KEY_ID)
        await self.log_in(other)
        await other.shows(NOTHING)
        await self.pause(3)
        await page.shows(NOTHING)
        self.assertEqual([await tab.evaluate(KEY_ID) for tab in (page, other)], [first] * 2)
        found = (await self.told("operator", "list"))["items"]
        self.assertEqual([each["decides"] for each in found if each["browser"]], [True])
        (raised,) = [each for each in await self.audit() if each["type"] == "operator.login_raised"]
        self.assertEqual(raised["payload"]["browser"], True)
        self.assertEqual([each for each in page.problems if "file:" not in each], [])

    async def test_one_command(self) -> None:
        """It starts the daemon, unlocks the vault and opens, with one passphrase; again, it only opens."""
        page = await self.browser.page()
        for stop in (("vault", "lock"), ("daemon", "stop")):
            await self.command(*stop)
            await self.open_pages(page)
            await page.shows("Nothing is waiting for you.")
            self.assertEqual((await self.status())["vault_state"], "unlocked")
        place = self.home.temporary / "opened"
        place.unlink()
        running = self.on_terminal("open", BROWSER=str(self.home.root / "browser"))
        await until(self.reactor, place.exists, 30, f"a page to open: {running!r}")
        other = await self.browser.page()
        await other.open(place.read_text())
        await running.expect("the browser can decide")
        self.assertEqual((await running.finish(30)).exit_code, 0)
        await other.shows(NOTHING)

    async def test_unknown_key(self) -> None:
        """A browser whose login was ended, and which has its key still, is let in by the words with a new one."""
        page, other = await self.browser.page(), await self.browser.page()
        await self.log_in(page)
        await page.shows(NOTHING)
        first = await page.evaluate(KEY_ID)
        await page.open("about:blank")
        await self.operator("operator", "revoke", "--all")
        await self.log_in(other)
        await other.shows(NOTHING)
        self.assertNotEqual(await other.evaluate(KEY_ID), first)

    async def test_unused(self) -> None:
        """What the page asks by itself says so; what follows on a key or a click does not.

        It says until when a login decides without a use, and until when whatever is done.
        """
        page = await self.entered()
        await page.shows(NOTHING)
        await page.evaluate(WATCH)
        await page.until("window.sent.length > 0")
        await page.until(ASKS_UNTIL % "window.sent.length > 2")
        self.assertIn("X-Aileron-Poll", (await self.sent(page))[-1])
        count = len(await self.sent(page))
        await page.press("Tab")
        plain = f"window.sent.findIndex((each, at) => at >= {count} && !each.includes('X-Aileron-Poll'))"
        await page.until(ASKS_UNTIL % f"{plain} >= 0")
        await page.until(ASKS_UNTIL % f"window.sent.length > {plain} + 1")
        polled = ["X-Aileron-Poll" in headers for headers in (await self.sent(page))[count:]]
        self.assertEqual(polled[polled.index(False) :][:2], [False, True])
        for idle, whole, notice, level in (
            (1700, 9000, "", ""),
            (-5, 9000, "", "reading"),
            (250, 9000, "You can decide for 4 min, then only watch, unless you use this page.", ""),
            (30, 30, "You can decide for less than a minute, then only watch.", ""),
            (5, 9000, "You can decide for less than a minute, then only watch, unless you use this page.", ""),
        ):
            self.assertEqual(await page.evaluate(LEFT % (idle, whole, level or "deciding")), notice)

    async def sent(self, page: Page) -> Any:
        """The headers of each request since it was watched."""
        return json.loads(await page.evaluate("JSON.stringify(window.sent)"))
