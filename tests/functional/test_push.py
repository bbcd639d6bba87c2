"""A browser that is notified when no page is open: registered in Settings, told by its worker, and removed."""

import json
from collections.abc import Mapping
from typing import Any

from tests.features.push.case import BrowserDouble
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.pushed import ONE, SCOPE, START, STOP, THREE, PushedTestCase

ENDPOINT = "https://push.invalid/send/canary"
_SHOWN = f"""navigator.serviceWorker.getRegistration("{SCOPE}").then((made) => made.getNotifications()).then(
  (all) => all.length)"""
_CLICK = """(async () => {
  const [notification] = await registration.getNotifications();
  self.opened = [];
  Clients.prototype.openWindow = async (path) => { opened.push(path); };
  Clients.prototype.matchAll = async () => [];
  const event = new NotificationEvent("notificationclick", { notification });
  dispatchEvent(event);
  for (let turn = 0; turn < 100 && !opened.length; turn += 1) await new Promise((done) => setTimeout(done, 100));
  return [opened, (await registration.getNotifications()).length];
})()"""
_CHANGED = """(async () => {
  dispatchEvent(new ExtendableEvent("pushsubscriptionchange"));
  for (let turn = 0; turn < 100 && !(await registration.getNotifications()).length; turn += 1) {
    await new Promise((done) => setTimeout(done, 100));
  }
  return (await registration.getNotifications()).map(({ title }) => title);
})()"""


class PushTests(PushedTestCase, PagesTestCase):
    """At an address that stays."""

    config = "operator_host: localhost\n"
    notifies = True

    async def registered(self) -> Page:
        """A tab in whose Settings this browser was registered."""
        await self.browser.permit(self.url, "notifications")
        page = await self.browser.page()
        await self.stand_in(page, BrowserDouble(ENDPOINT))
        await self.log_in(page, "/settings")
        await self.says(page, START)
        await page.evaluate("document.querySelector('#push-here').click()")
        await page.shows("push.invalid")
        await self.says(page, STOP)
        return page

    async def comes(self, page: Page, told: Mapping[str, Any] | str, *wanted: str) -> list[Any]:
        """Have a push come while no page is open, and see what is shown then."""
        text = told if isinstance(told, str) else json.dumps(told)
        return await self.push(self.browser, page, self.url, text, *wanted)

    async def within(self, expression: str) -> Any:
        """What an expression comes to in the worker."""
        return await self.inside(self.browser, self.url, expression)

    async def test_shown(self) -> None:
        """The number is shown without a button or a word of a request, and goes when nothing is pending."""
        page = await self.registered()
        (only,) = await self.comes(page, {"id": "01A", "n": 3}, THREE)
        self.assertEqual(only[1:], ["", "aileron-pending", False, 0])
        await self.comes(page, {"id": "01A", "n": 1}, ONE)
        await self.comes(page, {"id": "", "n": 0})
        await self.comes(page, {"id": "test", "n": 0}, "Aileron: this is a test")
        await self.comes(page, "nonsense", ONE)
        await self.comes(page, {"id": "", "n": 0})
        await self.comes(page, {"id": "<b>", "n": "<img src=x>"}, ONE)
        declared = {"title": "no", "navigate": self.url, "data": {"id": "01A", "n": 3}}
        await self.comes(page, {"web_push": 8030, "notification": declared}, THREE)

    async def test_changed(self) -> None:
        """If the browser changes its subscription, the worker asks for a page: only a page can register it."""
        page = await self.registered()
        await self.comes(page, {"id": "", "n": 0})
        (only,) = await self.within(_CHANGED)
        self.assertEqual(only, "Aileron: open Aileron once, so that this browser is notified again")

    async def test_seen(self) -> None:
        """While a page of the daemon is in view, nothing is shown, since the page shows the same; later it is."""
        page = await self.registered()
        await self.deliver(page, self.url, '{"id": "01A", "n": 1}')
        await self.pause(1)
        self.assertEqual(await page.evaluate(_SHOWN), 0)
        await self.comes(page, {"id": "01A", "n": 1}, ONE)

    async def test_registered(self) -> None:
        """The button registers this browser with the daemon's key, and removes it; it and the command list the same."""
        page = await self.registered()
        (asked,) = await page.evaluate("asked")
        self.assertEqual((asked["userVisibleOnly"], len(asked["applicationServerKey"])), (True, 87))
        (item,) = json.loads((await self.command("notification", "browser", "list", "--json")).stdout)["items"]
        self.assertEqual((item["service"], item["problem"]), ("push.invalid", None))
        self.assertIn("Chrome", item["name"])
        finished = await self.operator("notification", "browser", "test", code=1)
        self.assertIn("could not be reached", finished.stderr)
        await page.evaluate("document.querySelector('#push-here').click()")
        await page.shows("No browser is registered")
        await self.says(page, START)
        self.assertEqual([each for each in page.problems if "network" not in each], [])

    async def test_worker(self) -> None:
        """The worker has no passkeys, answers no page, and a click opens the pages and decides nothing."""
        page = await self.registered()
        self.assertIsNone(await page.evaluate("navigator.serviceWorker.controller"))
        run_id = await self.ask()
        await self.comes(page, {"id": run_id, "n": 1}, ONE)
        self.assertEqual(await self.within("typeof navigator.credentials + typeof onfetch"), "undefinedobject")
        self.assertEqual(await self.within(_CLICK), [["/approvals"], 0])
        failed = "fetch('/v1/approvals').then(() => 'sent', (error) => error.name)"
        self.assertEqual(await self.within(failed), "TypeError")
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")


class NewAddressTests(PagesTestCase):
    """At an address that is new at each start."""

    async def test_not_offered(self) -> None:
        """Settings say why no browser can be registered, and what to do."""
        page = await self.entered("/settings")
        await page.shows("a browser is notified for one address only")
        self.assertIsNone(await page.evaluate("document.querySelector('#push-here')"))
