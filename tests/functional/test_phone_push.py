"""A phone that is notified: from the button to the encrypted message, the decision, and the lost phone."""

import json
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional.chromium import Page
from tests.functional.commands import fork_daemons
from tests.functional.operated import kinds
from tests.functional.phoned import PhonedTestCase
from tests.functional.push_service import HOST, PushService
from tests.functional.pushed import ONE, START, STOP, PushedTestCase
from tests.functional.reactor import Patience
from tests.functional.test_phone_proxy import ProxyTestCase, why_not

_QUIET_SECONDS = 18  # more than the pause between two messages, and the time that requests are gathered
CANARY = "canary-summary"


class NotifiedPhoneTestCase(PushedTestCase, PhonedTestCase):
    """A phone whose browser shows what its worker is told, and a push service that decrypts."""

    notifies = True
    service_of_push: PushService

    def setUp(self) -> Any:
        """Start everything."""
        super().setUp()
        self.push_service = PushService.listen(self.reactor)
        self.finally_(self.push_service.stop)
        return Deferred.fromCoroutine(self.begin())

    def confine(self) -> None:
        """Have each daemon find the push service."""
        fork_daemons(self.push_service.divert())

    async def begin(self) -> None:
        """Allow notifications, but for those that a page asks for."""
        await super().begin()
        await self.phone.permit(self.public, "notifications")

    async def notified(self, name: str = "one") -> tuple[Page, str]:
        """A paired phone whose browser was registered by the button; and its authenticator."""
        page, authenticator = await self.tab()
        await self.stand_in(page, self.push_service.subscribe(name))
        await self.pair(page)
        await self.sign_in(page)
        await self.says(page, START)
        self.assertEqual(await page.evaluate("asked"), [], "a dialog before the button was pressed")
        await self.keep(page, "phone-notify")
        await page.tap("#push-here")
        await self.says(page, STOP)
        return page, authenticator

    async def browsers(self) -> list[Any]:
        """The registered browsers."""
        return list((await self.told("notification", "browser", "list"))["items"])


class ProxiedTests(NotifiedPhoneTestCase, ProxyTestCase):
    """Behind the real nginx, which checks the daemon's certificate."""

    skip = why_not()

    async def test_whole(self) -> None:
        """Registered, told, decided, withdrawn, lost: the removed phone is sent nothing, and its open page is out."""
        page, _ = await self.notified()
        (browser,) = await self.browsers()
        self.assertEqual((browser["phone"], browser["service"], browser["problem"]), ("Mine", HOST, None))
        run_id = await self.ask(CANARY)
        headers, text = await self.push_service.arrives(1)
        self.assertEqual((text, headers["Urgency"]), ({"id": run_id, "n": 1}, "high"))
        ((only, *_, buttons),) = await self.push(self.phone, page, self.public, json.dumps(text), ONE)
        self.assertEqual((only, buttons), (ONE, 0))
        await page.open(f"{self.public}/approvals/{run_id}")
        await self.ready(page)
        await page.tap("#approve:not(:disabled)")
        await self.stands(page, "completed")
        headers, text = await self.push_service.arrives(2)
        self.assertEqual((text, headers["Urgency"]), ({"id": "", "n": 0}, "normal"))
        await self.push(self.phone, page, self.public, json.dumps(text))
        self.assertEqual(self.push_service.double.sizes, {615})
        self.assertNotIn(CANARY, self.push_service.texts())

        await page.open(f"{self.public}/approvals")
        await self.says(page, STOP)
        await self.operator("phone", "remove", "Mine")
        self.assertEqual(await self.browsers(), [])
        await page.shows("Sign in with your passkey")
        await self.ask("After the loss")
        await self.pause(_QUIET_SECONDS)
        self.assertEqual(len(self.push_service.double.received), 2)
        self.assertEqual(self.push_service.problems, [])
        credentials = (await self.told("credential", "list"))["items"]
        self.assertEqual([each["connector"] for each in credentials if "push:" in each["connector"]], ["push://key"])
        self.assertIn("push.removed", kinds(await self.audit()))


class OwnTests(NotifiedPhoneTestCase):
    """By the daemon's own TLS."""

    async def test_changed(self) -> None:
        """A subscription that the browser changed is registered by the next page; one that is gone is forgotten."""
        page, _ = await self.notified()
        (first,) = await self.browsers()
        second = self.push_service.subscribe("two")
        await page.evaluate(f"localStorage.setItem('endpoint', {json.dumps(second.endpoint)})")
        await page.open(f"{self.public}/runs")
        await page.until("location.pathname === '/runs'")
        await page.open(f"{self.public}/approvals")
        await self.says(page, STOP)
        (browser,) = await self.browsers()
        self.assertNotEqual(browser["id"], first["id"])
        self.push_service.gone.add(second.endpoint)
        await self.ask()
        patience = Patience(self.reactor, 30)
        while await self.browsers():
            self.assertFalse(patience.is_over, "a browser that is gone is still registered")
            await self.pause(0.5)
        await page.open(f"{self.public}/approvals")
        await self.says(page, START)
        self.assertEqual((await self.browsers(), self.push_service.double.received), ([], []))

    async def test_stopped(self) -> None:
        """The button removes this phone's browser and no other, and none is registered within a private network."""
        page, _ = await self.notified()
        await page.tap("#push-here")
        await self.says(page, START)
        self.assertEqual(await self.browsers(), [])
        for endpoint in (
            "https://127.0.0.1/x",
            "https://10.0.0.1/x",
            "https://printer.local/x",
            "http://push.example.org/x",
        ):
            await page.evaluate(f"localStorage.setItem('endpoint', {json.dumps(endpoint)})")
            await page.tap("#push-here")
            await page.until("document.querySelector('#push-state').textContent.includes('cannot be notified')")
        self.assertEqual(await self.browsers(), [])

    async def test_installable(self) -> None:
        """The browser takes the pages for an app that can be installed, which begins at the inbox."""
        page, _ = await self.notified()
        manifest = await page.call("Page.getAppManifest")
        self.assertEqual((manifest["errors"], manifest["url"]), ([], f"{self.public}/static/phone.webmanifest"))
        self.assertEqual(json.loads(manifest["data"])["start_url"], "/approvals")
        found = await page.call("Page.getInstallabilityErrors")
        self.assertEqual(found["installabilityErrors"], [])
