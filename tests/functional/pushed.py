"""A browser that is registered for Web Push: its push service is stood in for, its worker is real."""

import json
from typing import Any

from tests.features.push.case import BrowserDouble
from tests.functional.browsed import BrowsedTestCase
from tests.functional.chromium import Chromium, Page
from tests.functional.reactor import Patience

SCOPE, WORKER = "/push-worker/", "/push-worker.js"
# Chromium reaches no push service here: what it would have subscribed to is put in its place.
_SUBSCRIBING = """(() => {
  const told = %s;
  window.asked = [];
  const made = () => {
    const endpoint = localStorage.getItem("endpoint") ?? told.endpoint;
    return {
      endpoint,
      toJSON: () => ({ endpoint, keys: { p256dh: told.p256dh, auth: told.auth } }),
      unsubscribe: async () => { localStorage.removeItem("subscribed"); return true; },
    };
  };
  PushManager.prototype.subscribe = async (options) => {
    window.asked.push(options);
    localStorage.setItem("subscribed", "yes");
    return made();
  };
  PushManager.prototype.getSubscription = async () => localStorage.getItem("subscribed") ? made() : null;
})()"""
GIVEN = """registration.getNotifications().then((all) => all.map(
  ({ title, body, tag, silent, actions }) => [title, body, tag, silent, (actions ?? []).length]))"""
START, STOP = "Notify me when no page is open", "Stop notifying this browser"
ONE, THREE = "Aileron: 1 request is waiting for your approval", "Aileron: 3 requests are waiting for your approval"
_SAYS = "document.querySelector('#push-here')?.textContent === %s"


class PushedTestCase(BrowsedTestCase):
    """A user whose browser is notified by its worker."""

    async def stand_in(self, page: Page, double: BrowserDouble) -> None:
        """Have this tab subscribe to nothing but this."""
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=_SUBSCRIBING % json.dumps(double.told()))
        await page.call("ServiceWorker.enable")

    async def says(self, page: Page, words: str) -> None:
        """Wait until the button says this, and can be pressed."""
        await page.until(_SAYS % json.dumps(words) + " && !document.querySelector('#push-here').hidden")

    async def deliver(self, page: Page, origin: str, text: str) -> None:
        """Have the browser get a push."""
        registration = page.workers[origin + SCOPE]
        await page.call("ServiceWorker.deliverPushMessage", origin=origin, registrationId=registration, data=text)

    async def inside(self, browser: Chromium, origin: str, expression: str) -> Any:
        """What an expression comes to in the worker, once it runs."""
        patience = Patience(self.reactor, 20)
        while True:
            targets = (await browser.call("Target.getTargets", {"filter": [{}]}))["targetInfos"]
            found = [each for each in targets if each["url"] == f"{origin}{WORKER}"]
            if found:
                break
            self.assertFalse(patience.is_over, targets)
            await self.pause(0.1)
        given = {"targetId": found[0]["targetId"], "flatten": True}
        session = (await browser.call("Target.attachToTarget", given))["sessionId"]
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        told = (await browser.call("Runtime.evaluate", asked, session))["result"].get("value")
        await browser.call("Target.detachFromTarget", {"sessionId": session})
        return told

    async def push(self, browser: Chromium, page: Page, origin: str, text: str, *wanted: str) -> list[Any]:
        """Have a push come while no page is open, and see what is shown then.

        It comes again until then: a page that was left is in view for the worker a little longer.
        """
        await page.open("about:blank")
        await page.until("location.href === 'about:blank'")
        patience, found = Patience(self.reactor, 20), None
        while not patience.is_over:
            await self.deliver(page, origin, text)
            await self.pause(0.5)
            found = await self.inside(browser, origin, GIVEN)
            if [each[0] for each in found] == list(wanted):
                return list(found)
        listed = "clients.matchAll({ includeUncontrolled: true }).then((all) => all.map(({ url }) => url))"
        raise AssertionError(f"{found} instead of {wanted}, beside {await self.inside(browser, origin, listed)}")
