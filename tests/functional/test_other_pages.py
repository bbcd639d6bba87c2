"""The pages beside approvals, used in a real browser: what each lets one do, and what then is so."""

import json
from typing import Any

from tests.functional import slack
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, UNGATED, kinds
from tests.functional.reactor import until

_TIME_STANDS = """{ const known = window.setTimeout;
  window.setTimeout = (call, ms) => known(call, String(call).includes("dataset.asked") ? 600000 : ms); }"""
# A look at the page's fragment takes until it is let go, and none is made because time has passed.
_LOOK_HANGS = """{ const asked = window.fetch, later = window.setTimeout;
  window.setTimeout = (call, ms) => later(call, String(call).includes("native code") ? 600000 : ms);
  window.looking = false;
  window.fetch = async (path, options) => {
    const answer = await asked(path, options);
    if (window.looking || !String(path).startsWith("/fragments")) return answer;
    window.looking = true;
    await new Promise((done) => { window.letGo = done; });
    return answer;
  }; }"""
_LOADED = """new Promise((done) => {
  const icon = new Image();
  icon.onload = () => done(icon.naturalWidth);
  icon.onerror = () => done(0);
  icon.src = %s;
})"""


class OtherPagesTests(PagesTestCase):
    """Each button does what it says, asks again where that cannot be undone, and is on record."""

    async def opened(self) -> Page:
        """A page of somebody who is logged in."""
        page = await self.entered()
        await page.shows("Pending approvals")
        return page

    async def go(self, page: Page, name: str, shows: str) -> None:
        """Follow a link of the navigation."""
        await page.click(f'nav a[href="/{name}"]')
        await page.shows(shows)

    async def twice(self, page: Page, button: str) -> None:
        """Click what asks whether one is sure."""
        await page.click(button)
        await page.until(f"document.querySelector('{button}').dataset.asked === 'yes'")
        await page.click(button)

    async def recorded(self, kind: str) -> None:
        """Fail unless it is on record."""
        self.assertIn(kind, kinds(await self.audit()))

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
        await page.click("#undo")
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
        await page.click('nav a[href="/home"]')
        counted = "document.querySelector('a[href=\"/runs?state=completed\"] strong')?.textContent"
        await page.until(f"{counted} === '1'")
        self.assertNotIn("Get started", await page.text("main"))
        await page.click('a[href="/runs?state=completed"]')
        await page.until(f"document.querySelector('main a[href=\"/runs/{run_id}\"]') !== null")
        self.assertEqual(page.problems, [])

    async def test_history(self) -> None:
        """The history is searched and filtered by its form, which makes an address that another tab can open."""
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        page = await self.opened()
        await self.go(page, "history", "Session started")
        await self.keep(page, "history-all")
        await page.click("#filters summary")
        await page.evaluate("document.querySelector('#filter-kind').value = 'runs'")
        await page.evaluate("document.querySelector('#filter-text').focus()")
        await page.write("succeeded")
        await page.press("Enter")
        await page.until("location.search === '?text=succeeded&kind=runs'")
        await page.until("document.querySelectorAll('.history li').length === 1")
        self.assertIn("Completed", await page.text(".history li"))
        await page.reload()
        await page.until("document.querySelectorAll('.history li').length === 1")
        await page.click(".history a[href^='/runs/']")
        await page.until("location.pathname.startsWith('/runs/')")
        await page.shows(UNGATED)
        self.assertEqual(page.problems, [])

    async def test_installable(self) -> None:
        """The browser finds a manifest without a fault, and an icon of it that can be cut to any shape."""
        page = await self.opened()
        found = await page.call("Page.getAppManifest")
        self.assertEqual((found["url"], found["errors"]), (f"{self.url}/static/manifest.webmanifest", []))
        manifest = json.loads(found["data"])
        for icon in manifest["icons"]:
            self.assertGreater(await page.evaluate(_LOADED % json.dumps(icon["src"])), 0, icon)
        self.assertEqual(page.problems, [])

    async def test_more_on_a_phone(self) -> None:
        """On a phone the other pages are behind a button: a link there leads on and closes it, and Escape closes it."""
        page = await self.opened()
        await page.look(width=390, height=800)
        is_open = "document.querySelector('#more').matches(':popover-open')"
        shows = "document.querySelector('#more a').checkVisibility()"
        self.assertFalse(await page.evaluate(shows))
        await page.click("#show-more")
        await page.until(f"{is_open} && {shows}")
        await self.keep(page, "more-phone")
        await page.click('#more a[href="/grants"]')
        await page.shows("No limits set")
        self.assertEqual(await page.evaluate(f"[location.pathname, {is_open}]"), ["/grants", False])
        await page.click("#show-more")
        await page.until(is_open)
        await page.press("Escape")
        await page.until(f"!{is_open}")
        self.assertEqual(await page.evaluate("location.pathname"), "/grants")
        self.assertEqual(page.problems, [])

    async def test_unknown_settled(self) -> None:
        """A run whose outcome nobody knows is found by its state, and settled with a note."""
        self.workspace.next = [slack.drop(applied=False)]
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        (run,) = (await self.told("runs", "list", "--state", "unknown"))["items"]
        run_id = run["id"]
        page = await self.opened()
        await self.go(page, "runs", "Outcome unknown")
        await page.click(f'a[href="/runs/{run_id}"]')
        await page.shows("no response says whether it happened")
        await self.keep(page, "unknown")
        await page.evaluate("document.querySelector('#note-did_not_happen').focus()")
        await page.write("It is not in the channel.")
        await page.click("#did_not_happen")
        await page.shows("Failed")
        await page.shows("It is not in the channel.")
        await self.recorded("run.settled")
        self.assertEqual(page.problems, [])

    async def test_record(self) -> None:
        """The record is verified and saved from its page, filtered, and one of it is read whole."""
        page = await self.opened()
        await self.go(page, "audit", "Signed up to record")
        await page.click("#verify")
        await page.shows("Verified: all")
        await page.click("#export")
        await page.shows("Saved as aileron-record.ndjson")
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        await page.shows("execution.succeeded")
        await page.shows("Saved as aileron-record.ndjson", seconds=0.5)
        await page.click("#filters summary")
        await page.evaluate("document.querySelector('#filter-type').focus()")
        await page.write("session.started")
        await page.press("Enter")
        await page.until("location.search === '?type=session.started'")
        await page.until("document.querySelectorAll('tbody tr').length === 1")
        await page.click('main a[href^="/audit/"]')
        await page.shows("Hash chain")
        self.assertEqual(page.problems, [])

    async def test_session_ended(self) -> None:
        """A session is paused, resumed and ended, the last by a second click, and its token opens nothing then."""
        page = await self.opened()
        await self.go(page, "sessions", "opencode")
        await page.click('main a[href^="/sessions/"]')
        await page.click("#pause-session")
        await page.shows("Paused")
        await page.click("#resume-session")
        await page.shows("Active")
        await self.twice(page, "#end-session")
        await page.shows("Ended")
        reply = await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        self.assertEqual(reply.status, 401)
        await self.recorded("session.ended")
        self.assertEqual(page.problems, [])

    async def test_limit(self) -> None:
        """A limit is set, holds, and is removed by a second click."""
        page = await self.opened()
        await self.go(page, "grants", "No limits set")
        for name, value in (("cap-per_hour", "1"), ("cap-action", UNGATED)):
            await page.evaluate(f"document.querySelector('#{name}').focus()")
            await page.write(value)
        await page.click("#set-cap")
        await page.shows("1 per hour")
        self.assertEqual([await self.refusal() for _ in range(2)], [None, "limit_exceeded"])
        await self.twice(page, "table button")
        await page.shows("No limits set")
        self.assertEqual(await self.refusal(), None)
        self.assertEqual(page.problems, [])

    async def test_refused(self) -> None:
        """Why something was refused stays to be read when other news fills the page anew."""
        page = await self.opened()
        await self.go(page, "grants", "No limits set")
        await page.click("#set-cap")
        said = "[...document.querySelectorAll('#main .answer')].map((each) => each.textContent).join('')"
        words = await page.until(said)
        self.assertIn("within an hour, within a day", words)
        await self.operator("cap", "set", GATED, "--per-hour", "9")
        await page.shows("9 per hour")
        self.assertEqual(await page.evaluate(said), words)

    async def test_news_while_it_looks(self) -> None:
        """News that comes while a page is looking, too late for that look, is looked for at once after it."""
        page = await self.opened()
        await self.go(page, "audit", "Signed up to record")
        await page.evaluate(_LOOK_HANGS)
        await page.until("window.looking")
        await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        await self.pause(2)  # the news is there; that it is, only the page knows
        await page.evaluate("window.letGo()")
        await page.shows("execution.succeeded")

    async def test_question_stands(self) -> None:
        """Whether one is sure is asked until it is answered, whatever news comes meanwhile."""
        page = await self.opened()
        await self.go(page, "settings", "Unlocked")
        await page.evaluate(_TIME_STANDS)
        await page.click("#lock")
        asked = "document.querySelector('#lock').dataset.asked"
        await page.until(f"{asked} === 'yes'")
        looks = len(page.requests)
        await self.told("operator", "list")  # another login, which the page would show
        await until(self.reactor, lambda: len(page.requests) > looks + 2, 60, "looks at what is new")
        self.assertEqual(await page.evaluate(asked), "yes")
        await page.click("#lock")
        await page.shows("You are not logged in")

    async def refusal(self) -> Any:
        """Why an ungated action is refused, if it is."""
        reply = await self.run_action(self.agent, UNGATED, {"channel": "#general", "summary": "x"})
        return reply.body.get("error", {}).get("class")

    async def test_locked(self) -> None:
        """A credential is revoked by a second click; then the vault is locked, which ends this login too."""
        page = await self.opened()
        await self.go(page, "connectors", "Connected")
        await page.click('main a[href$="me%2Fslack"]')
        await page.shows("api_key/slack")
        await self.twice(page, "button[data-act^=DELETE]")
        await page.shows("Needs a credential")
        await self.recorded("binding.revoked")
        await self.go(page, "settings", "Unlocked")
        await self.twice(page, "#lock")
        await page.shows("You are not logged in")
        self.assertEqual((await self.status())["vault_state"], "locked")
        self.assertEqual([each for each in page.problems if "401" not in each], [])
