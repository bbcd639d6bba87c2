"""Web Push as a way in: a worker that stays, and an address that the daemon is made to send to."""

from __future__ import annotations

import json

from twisted.web.resource import Resource

from aileron.client import Connections, DaemonFault
from tests.attacks.test_operator_door import DoorTestCase
from tests.features.push.case import BrowserDouble
from tests.functional.chromium import Chromium
from tests.functional.loopback import LoopbackSite

_WORKER = "/push-worker.js"
_PATH = ("notifications", "browsers")
_OTHERS = (
    "/static/push-worker.js",
    "/static/scripts.js",
    "/static/page.js",
    "/v1/runs",
    "/approvals",
    "/push-worker/x.js",
)
_REGISTER = """navigator.serviceWorker.register(%s, { scope: %s }).then(
  (made) => made.unregister().then(() => "registered"), (error) => error.name)"""


class _Inner(Resource):
    """A service of this machine that is nobody's business."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked = 0


class WorkerTests(DoorTestCase):
    """Where the address of the pages stays."""

    async def begin_there(self) -> None:
        """Start a daemon whose pages stay at one address."""
        await self.begin()
        await self.set_config("operator_host: localhost\n")
        self.url = str(self.home.discovery()["operator_url"])

    async def test_other_scripts(self) -> None:
        """One script alone is a worker: it answers no page, runs nothing and reaches nothing; any other is refused."""
        await self.begin_there()
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)
        browser_page = await self.browser.page()
        await self.log_in(browser_page)
        for script in _OTHERS:
            made = await browser_page.evaluate(_REGISTER % (json.dumps(script), json.dumps("/push-worker/")))
            self.assertIn(made, ("SecurityError", "TypeError"), script)
            refused = await self.web.ask("GET", self.url + script, Service_Worker="script")
            self.assertEqual(refused.status, 404, script)
            self.assertEqual(refused.headers.getRawHeaders("Clear-Site-Data"), ['"cache", "storage"'])
            self.assertFalse(refused.headers.hasHeader("Service-Worker-Allowed"))
        served = await self.web.ask("GET", self.url + _WORKER, Service_Worker="script")
        self.assertEqual(served.status, 200)
        self.assertEqual(
            served.headers.getRawHeaders("Content-Security-Policy"), ["default-src 'none'; img-src 'self'"]
        )
        self.assertNotIn('"fetch"', served.text)
        self.assertEqual(
            await browser_page.evaluate(_REGISTER % (json.dumps(_WORKER), '"/push-worker/"')), "registered"
        )
        agents = str(self.home.discovery()["url"])
        self.assertEqual((await self.web.ask("GET", agents + _WORKER, Service_Worker="script")).status, 403)

    async def test_endpoints(self) -> None:
        """No endpoint leads to this machine, and however many are tried, no more than sixteen are kept."""
        await self.begin_there()
        inner = _Inner()
        site = LoopbackSite.listen(self.reactor, inner)
        self.finally_(site.stop)
        connections = Connections(self.reactor)
        try:
            operator = connections.operator(self.url, await self.operator_token())
            for host in (
                "127.0.0.1",
                "localhost",
                "[::1]",
                "0.0.0.0",
                "127.0.0.1.",
                "[::ffff:127.0.0.1]",
                "2130706433",
            ):
                for endpoint in (f"https://{host}:{site.port}/", f"http://{host}:{site.port}/", f"https://{host}/"):
                    body = {**BrowserDouble(endpoint).told(), "name": "x"}
                    with self.assertRaises(DaemonFault):
                        await operator.post(*_PATH, body=body)
            kept = refused = 0
            for number in range(40):
                body = {**BrowserDouble(f"https://push.invalid/{number}").told(), "name": "x"}
                try:
                    await operator.post(*_PATH, body=body)
                    kept += 1
                except DaemonFault:
                    refused += 1
            self.assertEqual((kept, refused), (16, 24))
            await operator.post(*_PATH, "test", body={}, wait_seconds=30)
        finally:
            await connections.close()
        self.assertEqual(inner.asked, 0)


class NewAddressTests(DoorTestCase):
    """Where the pages have a new address at each start."""

    async def test_no_worker(self) -> None:
        """No script is a worker there, that of Web Push included, and no page names it."""
        page, _foreign, _neighbour = await self.browse()
        self.assertIn(
            await page.evaluate(_REGISTER % (json.dumps(_WORKER), '"/push-worker/"')), ("SecurityError", "TypeError")
        )
        self.assertEqual((await self.web.ask("GET", self.url + _WORKER, Service_Worker="script")).status, 403)
        plain = await self.web.ask("GET", self.url + _WORKER)
        self.assertEqual(plain.status, 404)
        self.assertIn("worker-src 'none'", str(plain.headers.getRawHeaders("Content-Security-Policy")))
