"""Pages that are kept open: they go on when their login may decide no more, and say how they stand."""

import json

from tests.functional.browsed import PagesTestCase

TITLE, ICON = "document.title", "document.querySelector('link[rel=icon]').getAttribute('href')"
# As if the daemon had said this of the next answers, or nothing at all.
SAYING = """(() => { const known = window.fetch; window.saying = {}; window.fetch = async (path, options) => {
    if (window.saying === null) throw new TypeError("away");
    const answer = await known(path, options);
    const headers = new Headers(answer.headers);
    for (const [name, value] of Object.entries(window.saying)) headers.set(name, value);
    const body = answer.status === 304 ? null : answer.body;
    return new Response(body, { status: answer.status, headers });
  }; })()"""


class KeptOpenTests(PagesTestCase):
    """A tab that is kept open."""

    async def test_locked(self) -> None:
        """With a locked vault the tab lives: it says so, shows what comes, and deciding is refused with what to do."""
        run_id = await self.ask()
        page = await self.entered(f"/approvals/{run_id}")
        await page.until("document.querySelector('#deny') !== null && !document.querySelector('#deny').disabled")
        await self.command("vault", "lock")
        await page.shows("The vault is locked, so nothing runs. You can watch; to decide, run aileron open")
        self.assertTrue((await page.evaluate(TITLE)).startswith("Vault locked · (1) "), await page.evaluate(TITLE))
        await page.until("document.querySelector('#deny').disabled && document.querySelector('#approve').disabled")
        told = await page.evaluate("document.querySelector('.bar').innerText")
        self.assertIn("You are only watching. To decide, run aileron open in your terminal.", told)
        digest = await page.evaluate("document.querySelector('article').dataset.digest")
        path = f"/v1/action-approvals/{run_id}/decide"
        body = json.dumps({"approved": False, "digest": digest})
        _, refused = await self.call(page, path, method="POST", headers={"Content-Type": "application/json"}, body=body)
        self.assertIn("to decide, run `aileron open`", refused)
        await page.open(f"{self.url}/approvals")
        await page.shows("The vault is locked")
        await self.ask()
        await page.until(f"{TITLE}.includes('(2)')")
        for path in ("/home", "/runs", f"/runs/{run_id}", "/sessions", "/history", "/audit", "/actions", "/connectors"):
            await page.open(self.url + path)
            await page.until("document.querySelector('#main > [data-title]') !== null")
        for path in ("/grants", "/trust", "/settings", "/settings/passkeys"):
            await page.open(self.url + path)
            await page.until("document.querySelector('#main > [data-title]') !== null")
        self.assertEqual(len((await self.told("approval", "list"))["items"]), 2)
        self.assertEqual([each for each in page.problems if "401" not in each], [])

    async def test_states(self) -> None:
        """Title, icon and line say how the tab stands, the gravest first, and follow what the daemon says."""
        page = await self.entered()
        await page.shows("No pending approvals.")
        await page.evaluate(SAYING)
        for saying, title, icon, line in (
            ('{"X-Aileron-Level": "reading"}', "Watching · ", "icon-reading", "You can watch; to decide"),
            (
                '{"X-Aileron-Vault": "locked", "X-Aileron-Level": "reading"}',
                "Vault locked · ",
                "icon-reading",
                "locked",
            ),
            ('{"X-Aileron-Paused": "2026-01-01T00:00:00Z"}', "Paused · ", "icon-paused", "Nothing starts until"),
            ("null", "Offline · ", "icon-off", "The daemon is not responding"),
            ("{}", "", "icon", ""),
        ):
            await page.evaluate(f"window.saying = {saying}")
            await page.evaluate("void dispatchEvent(new Event('online'))")
            await page.until(f"{ICON} === '/static/{icon}.svg' && {TITLE}.startsWith({title!r})", 30)
            self.assertIn(line, await page.evaluate("document.getElementById('notices').innerText"))
            can_enter = await page.evaluate("!document.getElementById('enter-again').hidden")
            self.assertEqual(can_enter, title == "Watching · ", f"{title}: while the vault is locked there is no code")
        self.assertEqual(await page.evaluate(TITLE), "Aileron")

    async def test_offline(self) -> None:
        """A tab whose daemon is silent tries less and less often, and at once when the browser is online again."""
        page = await self.entered()
        await page.shows("No pending approvals.")
        await page.evaluate(SAYING)
        await page.evaluate("window.saying = null")
        await page.shows("Trying again…")
        await page.evaluate("window.saying = {}; void 0")
        await page.evaluate("void dispatchEvent(new Event('online'))")
        await page.until("!document.getElementById('trouble').textContent", 5)
        await page.until(f"!{TITLE}.includes('Offline')", 5)

    async def test_ended(self) -> None:
        """A login that was ended elsewhere says so in the tab's title, and the tab goes on after the next one."""
        page = await self.entered()
        await page.shows("No pending approvals.")
        await self.operator("operator", "revoke", "--all")
        await page.shows("You are not logged in")
        await page.until(f"{TITLE}.startsWith('Logged out')")
        self.assertEqual(await page.evaluate(ICON), "/static/icon-off.svg")
        other = await self.browser.page()
        await self.log_in(other)
        await page.shows("No pending approvals.")
        self.assertEqual(await page.evaluate(TITLE), "Aileron")
