"""The pages in a real browser: the hand-over, reading, deciding, and who is kept out."""

import re
from typing import cast
from urllib.parse import urlsplit

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page


class DecidingTests(PagesTestCase):
    """The main way: see it, read it, decide it."""

    async def test_approve(self) -> None:
        """An approval comes up by itself, shows all that matters, and what it approves is done exactly once."""
        page = await self.browser.page()
        file = await self.open_pages(page)
        self.assertFalse(file.exists())
        await page.shows("Get started")
        run_id = await self.ask(summary="Dark mode\nand search")
        await page.shows("Dark mode")
        self.assertEqual(await page.evaluate("document.title"), "(1) Home – Aileron")
        await self.open_approval(page, run_id)
        shown = await page.text("main")
        for words in ("wants to run ship-update", "#general", "summary", "Dark mode\nand search", "Authorization: ("):
            self.assertIn(words.lower(), shown.lower())
        self.assertIn(f"POST {self.service.url}/api/chat.postMessage", shown)
        self.assertIn('"client_msg_id"', shown)
        self.assertNotIn(self.workspace.token, await page.evaluate("document.documentElement.outerHTML"))
        self.assertEqual(self.workspace.messages, [])
        await self.ready(page)
        await page.click("#approve")
        await self.stands(page, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["Dark mode\nand search"])
        self.assertIn("Audit record", await page.text("#details-of-run"))
        await self.keep(page, "done")
        self.assertEqual((await self.outcome(run_id, 10))[0], "completed")
        self.assertEqual(page.problems, [])

    async def test_deny_by_keyboard(self) -> None:
        """With nothing but the keyboard one can reach a request, give a reason, and deny; the agent learns why."""
        run_id = await self.ask()
        page = await self.entered(f"/approvals/{run_id}")
        await self.ready(page)
        for _ in range(40):
            await page.press("Tab")
            if await page.evaluate("document.activeElement.id") == "reason":
                break
        await page.write("not on a Friday")
        await self.pause(2.5)
        self.assertEqual(await page.evaluate("document.activeElement.value"), "not on a Friday")
        await page.press("Tab")
        self.assertEqual(await page.evaluate("document.activeElement.id"), "deny")
        await page.press("Enter")
        await self.stands(page, "denied")
        await page.until("document.activeElement.tagName === 'H1'")
        self.assertEqual(await self.outcome(run_id), ("denied", "not on a Friday"))
        self.assertEqual(self.workspace.requests, [])
        self.assertEqual(page.problems, [])

    async def test_changed_while_looked_at(self) -> None:
        """What changes under the reader's eyes cannot be decided before the reader asked to see it; words stay."""
        run_id = await self.ask()
        page = await self.entered(f"/approvals/{run_id}")
        await self.ready(page)
        old = await page.evaluate("document.querySelector('article').dataset.digest")
        await page.evaluate("document.querySelector('#reason').focus()")
        await page.write("looks good")
        await self.edit_action()
        await page.shows("This request changed while you were looking at it")
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        await self.keep(page, "changed")
        self.assertEqual(await page.evaluate("document.querySelector('article').dataset.digest"), old)
        await page.click("#look")
        await page.shows("The action ship-update was changed since.")
        self.assertNotEqual(await page.evaluate("document.querySelector('article').dataset.digest"), old)
        self.assertEqual(await page.evaluate("document.querySelector('#reason').value"), "looks good")
        await self.keep(page, "stale")
        await self.ready(page)
        await page.click("#approve")
        await self.stands(page, "completed")
        self.assertEqual(len(self.workspace.messages), 1)
        self.assertEqual(page.problems, [])


class LoggedInTests(PagesTestCase):
    """The browser session: what it survives, and where its key is."""

    async def test_key(self) -> None:
        """The key cannot be read, and nothing else opens anything; reload, a second tab and going back keep it."""
        run_id = await self.ask()
        page = await self.entered()
        await page.shows("ship-update")
        self.assertEqual(await page.evaluate(KEY), ["private", False, "sign", "InvalidAccessError"])
        code = cast("re.Match[str]", re.search('name="code" value="([^"]+)"', self.login_page))[1]
        self.assertEqual(await page.evaluate("sessionStorage.length + localStorage.length"), 0)
        self.assertIsNone(await page.evaluate("document.documentElement.dataset.told ?? null"))
        self.assertEqual(await page.evaluate("location.pathname"), f"/approvals/{run_id}")
        await page.reload()
        await page.shows("ship-update")
        other = await self.browser.page()
        await other.open(f"{self.url}/approvals/{run_id}")
        await other.shows("Dark mode")
        await page.go_back()
        await self.pause(1)
        await page.open(f"{self.url}/approvals")
        await page.shows("ship-update")
        for _, url in page.requests + other.requests:
            self.assertNotIn(code, url)
        self.assertEqual([each for each in page.problems + other.problems if "file:" not in each], [])
        again = await self.fetch(page, "/handover", method="POST", body=f"code={code}", headers=FORM)
        self.assertEqual(again[0], 401)
        self.assertIn("data-told", again[1])
        self.assertNotIn("page-key&quot;", again[1])

    async def restarted(self) -> Page:
        """A page that was logged in, after the daemon was away and is back at the same port."""
        await self.ask()
        page = await self.entered()
        await page.shows("ship-update")
        await self.command("daemon", "stop")
        await page.shows("The daemon is not responding")
        await page.shows("ship-update")
        await self.operator("daemon", "start")
        before, now = (urlsplit(str(each)) for each in (self.url, self.home.discovery()["operator_url"]))
        self.assertEqual(now.port, before.port)
        return page

    async def test_daemon_restarted(self) -> None:
        """A page says that the daemon is gone, then that it has another address; there is a login, and none here."""
        page = await self.restarted()
        await page.shows("Your pages have another address now")
        await self.keep(page, "moved")
        self.assertNotIn("ship-update", await page.text("main"))
        self.assertIsNone(await page.evaluate("document.querySelector('main form')"))
        other = await self.browser.page()
        await self.log_in(other)
        await other.shows("ship-update")
        self.assertNotEqual(await other.evaluate("location.origin"), self.url)
        count = len(page.requests)
        await self.pause(4)
        self.assertEqual(page.requests[count:], [], "it goes on asking where nobody should")
        await page.reload()
        await page.shows("Your pages have another address now")
        run_id = "01M8B2T49TSW6AAKZ02BYGNZ7H"
        await page.open(f"{self.url}/runs/{run_id}")
        await page.shows(f"run aileron open approval {run_id} in your terminal")

    async def test_daemon_restarted_at_localhost(self) -> None:
        """Where the address stays it says that nobody is logged in, why, and goes on after a login elsewhere."""
        await self.set_config("operator_host: localhost\n")
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        page = await self.restarted()
        await page.shows("You are not logged in")
        await page.shows("Your login ended because the daemon restarted.")
        await self.keep(page, "nobody")
        self.assertNotIn("ship-update", await page.text("main"))
        other = await self.browser.page()
        await self.log_in(other)
        await other.shows("ship-update")
        await page.shows("ship-update")


KEY = """import("/static/store.js").then(({ read }) => read("current")).then(async ({ private: key }) => {
  const read = await crypto.subtle.exportKey("pkcs8", key).catch((error) => error.name);
  return [key.type, key.extractable, ...key.usages, read]; })"""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
