"""The pages in a real browser: the hand-over, reading, deciding, and who is kept out."""

import json
import re
from typing import Any, cast

from tests.functional.browsed import BrowsedTestCase
from tests.functional.chromium import Page
from tests.functional.loopback import LoopbackSite, Neighbour
from tests.functional.operated import GATED

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\n\u202egnp.exe\u200b\x1b[2J"
)


class DecidingTests(BrowsedTestCase):
    """The main way: see it, read it, decide it."""

    async def test_approve(self) -> None:
        """An approval comes up by itself, shows all that matters, and what it approves is done exactly once."""
        await self.begin()
        page = await self.browser.page()
        file = await self.open_pages(page)
        self.assertFalse(file.exists())
        await page.shows("Nothing. Agents may ask")
        run_id = await self.ask(summary="Dark mode\nand search")
        await page.shows("ship-update")
        self.assertEqual(await page.evaluate("document.title"), "(1) Aileron")
        await self.open_approval(page, run_id)
        shown = await page.text("main")
        for words in ("waits for you", "#general", "summary", "Dark mode\nand search", "Authorization: ("):
            self.assertIn(words.lower(), shown.lower())
        self.assertIn(f"POST {self.service.url}/api/chat.postMessage", shown)
        self.assertIn('"client_msg_id"', shown)
        self.assertNotIn(self.workspace.token, await page.evaluate("document.documentElement.outerHTML"))
        self.assertEqual(self.workspace.messages, [])
        await page.click("#approve")
        await self.stands(page, "completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["Dark mode\nand search"])
        self.assertIn("On record as", await page.text("#outcome"))
        await self.keep(page, "done")
        self.assertEqual((await self.outcome(run_id, 10))[0], "completed")
        self.assertEqual(page.problems, [])

    async def test_approve_and_allow(self) -> None:
        """What is chosen beneath a request is allowed with it: the next call like it is done without being asked."""
        await self.begin()
        run_id = await self.ask(summary="one")
        page = await self.browser.page()
        await self.log_in(page, f"/approvals/{run_id}")
        await self.ready(page)
        await page.click("#grant summary")
        await page.evaluate(
            "(() => { const choice = document.querySelector('select[data-argument=summary]');"
            " choice.value = [...choice.options].at(-1).value; document.querySelector('#uses').value = '5'; })()"
        )
        await self.keep(page, "grant")
        await page.click("#allow")
        await self.stands(page, "completed")
        second = await self.run_action(self.agent, GATED, {"channel": "#general", "summary": "two"})
        self.assertEqual(second.status, 200, second.text)
        self.assertEqual([each.text for each in self.workspace.messages], ["one", "two"])
        self.assertEqual(page.problems, [])

    async def test_deny_by_keyboard(self) -> None:
        """With nothing but the keyboard one can reach a request, give a reason, and deny; the agent learns why."""
        await self.begin()
        run_id = await self.ask()
        page = await self.browser.page()
        await self.log_in(page, f"/approvals/{run_id}")
        await self.ready(page)
        for _ in range(40):
            await page.press("Tab")
            if await page.evaluate("document.activeElement.id") == "reason":
                break
        await page.write("not on a Friday")
        await self.pause(2.5)
        self.assertEqual(await page.evaluate("document.activeElement.value"), "not on a Friday")
        await page.press("Tab", "Tab")
        self.assertEqual(await page.evaluate("document.activeElement.id"), "deny")
        await page.press("Enter")
        await self.stands(page, "denied")
        await page.until("document.activeElement.tagName === 'H1'")
        self.assertEqual(await self.outcome(run_id), ("denied", "not on a Friday"))
        self.assertEqual(self.workspace.requests, [])
        self.assertEqual(page.problems, [])

    async def test_changed_while_looked_at(self) -> None:
        """What changes under the reader's eyes cannot be decided before the reader asked to see it; words stay."""
        await self.begin()
        run_id = await self.ask()
        page = await self.browser.page()
        await self.log_in(page, f"/approvals/{run_id}")
        await self.ready(page)
        old = await page.evaluate("document.querySelector('article').dataset.digest")
        await page.evaluate("document.querySelector('#reason').focus()")
        await page.write("looks good")
        await self.edit_action()
        await page.shows("This changed while you looked at it")
        self.assertTrue(await page.evaluate("document.querySelector('#approve').disabled"))
        await self.keep(page, "changed")
        self.assertEqual(await page.evaluate("document.querySelector('article').dataset.digest"), old)
        await page.click("#look")
        await page.shows("The action ship-update was changed since.")
        self.assertNotEqual(await page.evaluate("document.querySelector('article').dataset.digest"), old)
        self.assertEqual(await page.evaluate("document.querySelector('#reason').value"), "looks good")
        await self.keep(page, "stale")
        await page.click("#approve")
        await self.stands(page, "completed")
        self.assertEqual(len(self.workspace.messages), 1)
        self.assertEqual(page.problems, [])

    async def test_hostile_words(self) -> None:
        """What an agent writes is shown as text: no tag of it acts, and nothing of it hides or turns round."""
        await self.begin()
        run_id = await self.ask(summary=HOSTILE)
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("<img src=x")
        await self.open_approval(page, run_id)
        shown = await page.text("#arguments")
        for words in ("<script>", "\\u202e", "\\u200b", "\u241b"):
            self.assertIn(words, shown)
        everything = await page.evaluate("document.documentElement.outerHTML")
        self.assertIsNone(re.search("[\u202e\u200b\x1b]", everything))
        self.assertEqual(await page.evaluate("document.querySelectorAll('main img, main script, main b').length"), 0)
        self.assertNotIn("owned", await page.evaluate("document.title"))
        self.assertEqual(page.problems, [])


class LoggedInTests(BrowsedTestCase):
    """The browser session: what it survives, and where its key is."""

    async def test_key(self) -> None:
        """The key cannot be read, and nothing else opens anything; reload, a second tab and going back keep it."""
        await self.begin()
        run_id = await self.ask()
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("ship-update")
        self.assertEqual(await page.evaluate(KEY), ["private", False, "sign", "InvalidAccessError"])
        code = cast("re.Match[str]", re.search('name="code" value="([^"]+)"', self.login_page))[1]
        self.assertEqual(await page.evaluate("sessionStorage.length + localStorage.length"), 0)
        self.assertIsNone(await page.evaluate("document.documentElement.dataset.told ?? null"))
        self.assertEqual(await page.evaluate("location.pathname"), "/")
        await page.reload()
        await page.shows("ship-update")
        other = await self.browser.page()
        await other.open(f"{self.url}/approvals/{run_id}")
        await other.shows("Dark mode")
        await page.evaluate("void setTimeout(() => history.back())")
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

    async def test_daemon_restarted(self) -> None:
        """A page says that the daemon is gone, then that nobody is logged in, and goes on after a login elsewhere."""
        await self.begin()
        await self.ask()
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("ship-update")
        await self.command("daemon", "stop")
        await page.shows("The daemon does not answer")
        await page.shows("ship-update")
        await self.operator("daemon", "start")
        self.assertEqual(self.home.discovery()["operator_url"], self.url)
        await page.shows("Nobody is logged in here")
        await page.shows("The login ended: the daemon was started anew.")
        await self.keep(page, "nobody")
        self.assertNotIn("ship-update", await page.text("main"))
        other = await self.browser.page()
        await self.log_in(other)
        await other.shows("ship-update")
        await page.shows("ship-update")

    async def test_other_port(self) -> None:
        """A page of another local port has the cookie, and with it gets nothing and decides nothing."""
        await self.begin()
        run_id = await self.ask()
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("ship-update")
        neighbour = Neighbour()
        site = LoopbackSite.listen(self.reactor, neighbour)
        self.finally_(site.stop)
        foreign = await self.browser.page()
        await foreign.open(site.url.replace("127.0.0.1", "localhost"))
        await foreign.shows("neighbour")
        cookie = neighbour.cookies["localhost"][-1]
        self.assertIn("aileron_", cookie, "the browser gave no cookie to another port: this test proves nothing")
        digest = (await self.pending(page))["digest"]
        decide = f"{self.url}/v1/action-approvals/{run_id}/decide"
        body = json.dumps({"approved": True, "digest": digest})
        for path, options in (
            (f"{self.url}/fragments/approvals", {}),
            (f"{self.url}/approvals", {}),
            (f"{self.url}/v1/action-approvals", {}),
            (decide, {"method": "POST", "body": body}),
            (decide, {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}}),
        ):
            self.assertEqual((await self.fetch(foreign, path, credentials="include", **options))[0], 0, path)
        await self.fetch(foreign, decide, method="POST", body=body, mode="no-cors", credentials="include")
        await foreign.evaluate(FRAME % json.dumps(f"{self.url}/approvals/{run_id}"))
        frames = (await foreign.call("Page.getFrameTree"))["frameTree"]["childFrames"]
        self.assertEqual([each["frame"]["url"] for each in frames], ["chrome-error://chromewebdata/"])
        # Nor does a program that has read the cookie and is no browser at all.
        for path in ("/fragments/approvals", f"/fragments/approvals/{run_id}", "/v1/action-approvals"):
            reply = await self.web.ask("GET", self.url + path, Cookie=cookie)
            self.assertEqual(reply.status, 401)
            self.assertNotIn(GATED, reply.text)
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")

    async def pending(self, page: Page) -> Any:
        """What waits, asked for by the page itself."""
        return json.loads((await self.call(page, "/v1/action-approvals"))[1])["items"][0]


KEY = """import("/static/store.js").then(({ read }) => read("current")).then(async ({ private: key }) => {
  const read = await crypto.subtle.exportKey("pkcs8", key).catch((error) => error.name);
  return [key.type, key.extractable, ...key.usages, read]; })"""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FRAME = """new Promise((done) => {
  const f = document.createElement("iframe"); f.onload = () => done(true); f.src = %s; document.body.append(f); })"""
