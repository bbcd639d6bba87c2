"""Notices of a browser with an open page: given for new requests, withdrawn when decided, and never given twice."""

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page

# Notices and the badge as the browser has them, kept where the test can read them. The person looks at the page until
# the test says otherwise: one that was behind another window takes no press for a moment.
_KEEPING = """(() => {
  Object.assign(window, { notices: [], badges: [], opened: [], away: false });
  document.hasFocus = () => !window.away;
  window.Notification = class extends window.Notification {
    constructor(title, options) {
      super(title, options);
      window.notices.push(this);
      this.addEventListener("show", () => { this.isShown = true; });
    }
    close() {
      this.isClosed = true;
      super.close();
    }
  };
  window.open = (...given) => { window.opened.push(given); };
  navigator.setAppBadge = async (count) => { window.badges.push(count); };
  navigator.clearAppBadge = async () => { window.badges.push(0); };
})()"""
_GIVEN = "notices.map(({ title, body, tag, dir }) => [title, body, tag, dir])"
_STANDING = "notices.filter((each) => each.isShown && !each.isClosed).length"
_LOOKED_AT = "away = false; void dispatchEvent(new Event('focus'))"
_LEFT = "away = true; void dispatchEvent(new Event('blur'))"
_BADGE = "badges.at(-1)"
# The page of settings is drawn anew with each record, also between a press of the pointer and its release.
_PRESS = "document.querySelector('#notify-here').click()"
AGENT = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}: Approved already"
WILD = "<img src=x onerror=alert(1)> \N{RIGHT-TO-LEFT OVERRIDE}Canary</b>"


class KeptTestCase(PagesTestCase):
    """A user who keeps pages open."""

    async def kept(self, path: str = "/approvals", press: str = "") -> Page:
        """A tab in which the person has logged in, and then looks elsewhere.

        :param press: the button that is pressed before, if any.
        """
        page = await self.browser.page()
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=_KEEPING)
        await self.log_in(page, path)
        if press:
            await page.click(press)
        await page.evaluate(_LEFT)
        return page


class BrowserNoticesTests(KeptTestCase):
    """At an address that stays."""

    notifies = True
    config = "operator_host: localhost\n"

    async def notified(self) -> Page:
        """A tab in whose Settings notices were turned on."""
        await self.browser.permit(self.url, "notifications")
        page = await self.kept("/settings", "#notify-here")
        await page.until("localStorage.getItem('aileron-notices-seen') !== null")
        return page

    async def test_given(self) -> None:
        """A new request is one notice, with nothing of the request in it, and is withdrawn once it is decided."""
        self.agent = await self.session(AGENT)
        earlier = await self.ask()
        page = await self.notified()
        await page.until(f"{_BADGE} === 1")
        run_id = await self.ask(WILD)
        await page.until(f"{_STANDING} === 1")
        ((title, body, tag, direction),) = await page.evaluate(_GIVEN)
        self.assertEqual(title, "Aileron: ship-update is waiting for your approval")
        self.assertEqual((tag, direction), (run_id, "ltr"))
        self.assertTrue(body.startswith(f"Ship-update is waiting for your approval, by {AGENT}, session "), body)
        self.assertIn("Look closely: Hidden characters, ", body)
        for told in (title, body, await page.evaluate("document.title")):
            for foreign in ("anary", "<", "\N{RIGHT-TO-LEFT OVERRIDE}"):
                self.assertNotIn(foreign, told)
        self.assertNotIn("Approved", await page.evaluate("document.title"))
        self.assertEqual(await page.evaluate(_BADGE), 2)
        await self.approve(run_id)
        await page.until("notices[0].isClosed === true")
        await self.operator("approval", "deny", earlier)
        await page.until(f"{_BADGE} === 0")
        self.assertEqual(len(await page.evaluate(_GIVEN)), 1)
        self.assertEqual(page.problems, [])

    async def test_two_tabs(self) -> None:
        """Of two tabs one gives notices, none while the other is looked at; then it is the other's turn."""
        first, second = await self.notified(), await self.kept()
        await second.shows("No pending approvals.")
        await second.evaluate(_LOOKED_AT)
        seen = await self.ask()
        await second.until("document.title.startsWith('(1)')")
        await self.pause(4)
        await second.evaluate(_LEFT)
        run_id = await self.ask("Light mode")
        await first.until(f"{_STANDING} === 1")
        self.assertEqual([each[2] for each in await first.evaluate(_GIVEN)], [run_id])
        self.assertEqual(await second.evaluate(_GIVEN), [])
        await first.call("Page.close")
        other = await self.ask("High contrast")
        await second.until(f"{_STANDING} === 1")
        self.assertEqual([each[2] for each in await second.evaluate(_GIVEN)], [other])
        self.assertNotIn(seen, (run_id, other))
        await second.until(f"{_BADGE} === 3")
        await self.operator("operator", "revoke", "--all")
        await second.until(f"{_STANDING} === 0 && {_BADGE} === 0")

    async def test_many(self) -> None:
        """What comes with several joins one notice, without a text; that is withdrawn with the last of them."""
        page = await self.notified()
        ids = [await self.ask(f"Number {number}") for number in range(5)]
        await page.until("notices.length === 5")
        *alone, before, last = await page.evaluate(_GIVEN)
        self.assertEqual(len({tag for _, _, tag, _ in alone}), 3)
        self.assertEqual((before[1:3], last[1:3]), (["", "many"], ["", "many"]))
        self.assertRegex(last[0], r"^Aileron: [45] requests are waiting for your approval$")
        for run_id in ids:
            await self.operator("approval", "deny", run_id)
        await page.until(
            "notices.every((each) => each.isClosed || each.tag === 'many') && notices[4].isClosed === true"
        )

    async def test_clicked(self) -> None:
        """A click opens the request and decides nothing; where something was typed, it is opened in another tab."""
        page = await self.notified()
        run_id = await self.ask()
        await page.until(f"{_STANDING} === 1")
        await page.evaluate("void notices[0].dispatchEvent(new Event('click'))")
        await page.until(f"document.querySelector('article').dataset.id === '{run_id}'")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")
        await page.until("document.querySelector('#reason') !== null")
        await page.evaluate("void (document.querySelector('#reason').value = 'Because')")
        other = await self.ask("Light mode")
        await page.until("notices.length === 2")
        await page.evaluate("void notices[1].dispatchEvent(new Event('click'))")
        self.assertEqual(await page.evaluate("opened"), [[f"/approvals/{other}", "_blank", "noopener"]])
        self.assertIn(run_id, await page.evaluate("location.pathname"))

    async def test_withdrawn(self) -> None:
        """A locked vault takes the badge away and leaves the notices, and off is off, also for those that stand."""
        page = await self.notified()
        await self.ask()
        await page.until(f"{_STANDING} === 1 && {_BADGE} === 1")
        await self.command("vault", "lock")
        await page.until(f"{_BADGE} === 0")
        await self.ask("Light mode")
        await page.until(f"{_STANDING} === 2")
        await page.evaluate(_PRESS)
        await page.until(f"{_STANDING} === 0")
        await self.ask("High contrast")
        await self.pause(4)
        self.assertEqual(len(await page.evaluate(_GIVEN)), 2)
        await page.evaluate(_PRESS)
        await page.until("localStorage.getItem('aileron-notices-seen') !== null")
        await self.ask("Low contrast")
        await page.until(f"{_STANDING} === 1")

    async def test_blocked(self) -> None:
        """A browser that blocks notifications is told so, and nothing is asked for."""
        await self.browser.permit(self.url, "notifications", "denied")
        page = await self.kept("/settings", "#notify-here")
        await page.shows("This browser blocks notifications for this address.")
        await self.ask()
        await self.pause(3)
        self.assertEqual(await page.evaluate("document.querySelector('#notify-here').textContent[0]"), "N")
        self.assertFalse([url for _, url in page.requests if "notifications" in url])


class NewAddressTests(KeptTestCase):
    """At an address that is new at each start."""

    async def test_not_offered(self) -> None:
        """Nothing is offered, asked for, given or counted; Settings say why, and what to do instead."""
        await self.browser.permit(self.url, "notifications")
        page = await self.kept("/settings")
        await page.shows("These pages have a new address at each start of the daemon")
        await page.shows("notifications: {desktop: true}")
        self.assertIsNone(await page.evaluate("document.querySelector('#notify-here')"))
        await page.evaluate("localStorage.setItem('aileron-notices', 'on')")
        await self.ask()
        await page.until("document.title.startsWith('(1)')")
        await self.pause(3)
        self.assertEqual(await page.evaluate("[notices.length, badges.length]"), [0, 0])
        self.assertFalse([url for _, url in page.requests if "notifications" in url])
