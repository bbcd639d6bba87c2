"""A phone's browser, which has nothing but a tunnel to the operator site's port: let in by a code that is typed."""

from urllib.parse import urlsplit

from tests.extent import seldom
from tests.functional import canary
from tests.functional.browsed import BrowsedTestCase
from tests.functional.chromium import Chromium, Page
from tests.functional.operated import PASSPHRASE, kinds
from tests.functional.process import Running
from tests.functional.tunnel import Tunnel, why_not

CODE = r"\s((?:[A-Z]{4}-){4}[A-Z]{4})\s"
NOBODY, VOID = "You are not logged in", "This code is not valid"
FIELD, ENTER = "#login-code", "#enter-code button"


class PhoneTests(BrowsedTestCase):
    """A user whose daemon is elsewhere, and who has a browser and a terminal by ssh on the phone."""

    skip = why_not()

    async def begin(self) -> None:
        """Start the daemon, an agent, the tunnel, and the phone's browser."""
        await self.furnish()
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        self.tunnel = Tunnel(self.home.root / "tunnel", urlsplit(self.url).port or 0)
        profile = self.home.root / "phone"
        profile.mkdir()
        self.browser = Chromium.start(self.reactor, profile, self.home.environment(), self.tunnel.phone)
        self.finally_(self.browser.stop)

    async def connect(self) -> Running:
        """Open the tunnel."""
        running = self.start(self.tunnel.command(self.home))
        await running.expect("up")
        return running

    async def hold(self, page: Page) -> None:
        """Make the tab a phone's: narrow, and touched."""
        await page.look(width=390, height=800)
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)

    async def fill(self, page: Page, code: str) -> None:
        """Put a code into the field, in the place of what is there."""
        await page.tap(FIELD)
        await page.evaluate(f"document.querySelector('{FIELD}').select()")
        await page.write(code)

    async def enter(self, page: Page, code: str) -> None:
        """Do so in the tab that is in front, and tap the button: a tab behind another draws nothing to tap on."""
        await page.call("Page.bringToFront")
        await self.fill(page, code)
        await page.tap(ENTER)

    async def opening(self, run_id: str) -> tuple[Running, str]:
        """``aileron open --code`` in the terminal, and the code that it shows there."""
        running = self.start(self.home.on_terminal("aileron", "open", "approval", run_id, "--code"))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await running.expect(f"{self.url}/approvals/{run_id}")
        return running, (await running.expect(CODE))[1]

    @seldom  # the form is in tests.web and tests.testing, and the pages in a browser of this machine's
    async def test_whole(self) -> None:
        """The code lets the browser in once its words were typed; it approves; and of the code nothing is left."""
        await self.begin()
        run_id = await self.ask()
        ssh = await self.connect()
        page = await self.browser.page()
        await self.hold(page)
        await page.open(f"{self.url}/approvals/{run_id}")
        await page.shows(NOBODY)
        await self.look_at(page, "code")
        await self.hold(page)
        running, code = await self.opening(run_id)
        await self.enter(page, "correct horse battery staple")
        self.assertFalse(await page.evaluate(f"document.querySelector('{FIELD}').checkValidity()"))
        posts = [each for each in page.requests if each[0] == "POST"]
        self.assertEqual(posts, [], "what is no code was sent")
        await self.enter(page, code[::-1])
        await page.shows(VOID)
        await self.keep(page, "code-refused", whole=False)
        await self.fill(page, code.lower().replace("-", " "))
        await page.evaluate("(form => { form.requestSubmit(); form.requestSubmit(); })(document.querySelector('form'))")
        await page.shows("Type these two words in your terminal")
        await self.keep(page, "code-words", whole=False)
        await running.expect("A browser used the code")
        await self.type_words(running, page)
        self.assertEqual((await running.finish(30)).exit_code, 0)
        await self.ready(page)
        self.assertEqual(await page.evaluate("location.pathname"), f"/approvals/{run_id}")
        await self.keep(page, "code-approval", whole=False)
        await page.tap("#approve")
        await self.stands(page, "completed")
        self.assertEqual(len(self.workspace.messages), 1)
        self.assertEqual((await self.outcome(run_id, 10))[0], "completed")
        told = kinds(await self.audit())
        self.assertEqual([told.count(f"operator.{each}") for each in ("handover_opened", "login_refused")], [1, 1])
        for form in (code, code.lower().replace("-", " "), code.replace("-", "")):
            self.assertEqual(list(canary.in_files(self.home.aileron, form)), [])
            self.assertEqual([url for _, url in page.requests if form in url], [])
        self.assertEqual([each for each in page.problems if "401" not in each], [])
        await ssh.kill()
        await page.shows("The daemon is not responding")
        await self.connect()
        await page.until("!document.body.innerText.includes('The daemon is not responding')")
        self.assertEqual(await page.evaluate("document.querySelector('article').dataset.state"), "completed")

    @seldom
    async def test_used_twice(self) -> None:
        """Two tabs with one code: neither is let in, and the page, the terminal and the record say so."""
        await self.begin()
        await self.connect()
        run_id = await self.ask()
        first, second = await self.browser.page(), await self.browser.page()
        running, code = await self.opening(run_id)
        for page in (first, second):
            await page.open(self.url)
            await page.shows(NOBODY)
        await self.enter(first, code)
        await first.shows("Type these two words in your terminal")
        await self.enter(second, code)
        await second.shows("This code was used twice")
        await first.shows("This login was used twice")
        await running.expect("The code was used twice")
        self.assertEqual((await running.finish(30)).exit_code, 1)
        self.assertIn("operator.handover_refused", kinds(await self.audit()))
