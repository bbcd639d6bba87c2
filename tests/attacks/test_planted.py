"""What a page under the daemon's address leaves in the operator's browser, served by who has taken its port."""

import json
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.error import CannotListenError
from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.attacks.test_operator_door import DoorTestCase
from tests.extent import seldom
from tests.functional.chromium import Chromium, Page
from tests.functional.loopback import LoopbackSite
from tests.functional.reactor import Patience, until

MOVED = "Your pages have another address now"
_ARM = b"""<!doctype html><title>planted</title><p id="state">not yet</p><script type="module">
try {
  await navigator.serviceWorker.register("/static/worker.js", { scope: "/", updateViaCache: "all" });
  await navigator.serviceWorker.ready;
  await import("/static/page.js");
  document.getElementById("state").textContent = window.poisoned ? "armed" : "no script";
} catch (error) { document.getElementById("state").textContent = `failed: ${error}`; }
</script>"""
# Answers whatever a tab goes to, and keeps what it saw.
_WORKER = b"""addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate" && !request.url.endsWith("/direct")) event.respondWith((async () => {
    const seen = `${request.method} ${await request.clone().text()}`;
    await (await caches.open("seen")).put(`/seen/${Math.random()}`, new Response(seen));
    return new Response("<!doctype html><p>FORGED", { headers: { "Content-Type": "text/html" } });
  })());
});"""
_YEAR = b"max-age=31536000, immutable"
_SCRIPT = b"window.poisoned = true; document.title = 'POISONED';"
_SEEN = """(async () => { const cache = await caches.open("seen");
  return Promise.all((await cache.keys()).map(async (each) => (await cache.match(each)).text())); })()"""
# No registration, no cache of its own, no page of the worker's.
_GONE = (
    """(async () => !(await navigator.serviceWorker.getRegistrations()).length && !(await caches.keys()).length)()"""
)
_GONE_SECONDS = 20  # it takes two, with nothing else to do
_UNREGISTER = """navigator.serviceWorker.getRegistrations().then(
  (all) => Promise.all(all.map((each) => each.unregister())))"""


class _Planter(Resource):
    """Serves what is to stay: a worker, and a script of ours that is to be kept for a year."""

    isLeaf = True

    def __init__(self, caches_worker: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._caches_worker = caches_worker

    def render_GET(self, request: Request) -> bytes:
        """Answer; what the operator's open tab asks for by itself is refused."""
        if request.path == b"/static/worker.js":
            request.setHeader(b"Content-Type", b"text/javascript")
            request.setHeader(b"Service-Worker-Allowed", b"/")
            if self._caches_worker:
                request.setHeader(b"Cache-Control", _YEAR)
            return _WORKER
        if request.path == b"/static/page.js":
            request.setHeader(b"Content-Type", b"text/javascript")
            request.setHeader(b"Cache-Control", _YEAR)
            return _SCRIPT
        if request.path != b"/planted":
            request.setResponseCode(503)
            return b""
        request.setHeader(b"Content-Type", b"text/html")
        return _ARM


class PlantedTests(DoorTestCase):
    """A daemon that was ended, a program that took its port meanwhile, and the daemon again at the same port.

    :ivar caches_worker: whether the browser may take the script of the worker from its cache.
    """

    caches_worker = False

    async def plant(self, *hosts: str) -> tuple[Page, list[Page]]:
        """The operator's tab, open since before, and what the program has left under each of these names.

        The daemon runs again afterwards, at the same port.
        """
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)
        page = await self.browser.page()
        await self.log_in(page)
        await page.shows("No pending approvals.")
        port = urlsplit(self.url).port or 0
        await self.kill_daemon()
        site = await self.take(port)
        planted = [await self.browser.page() for _ in hosts]
        for foreign, host in zip(planted, hosts, strict=True):
            await foreign.open(f"http://{host}:{port}/planted")
            await foreign.until("document.getElementById('state').textContent === 'armed'")
        await site.stop()
        await self.unlock()
        self.assertEqual(urlsplit(self.now()).port, port, "it is at another port: this shows nothing")
        return page, planted

    async def view(self, planted: list[Page]) -> None:
        """Look at what was left under each name, for the first time since the daemon is back."""
        for foreign in planted:
            await foreign.open(await foreign.evaluate("location.origin + '/approvals'"))
            await foreign.shows("FORGED")

    async def take(self, port: int) -> LoopbackSite:
        """Listen at the daemon's port as soon as the system gives it away."""
        patience = Patience(self.reactor, 30)
        while True:
            try:
                return LoopbackSite.listen(self.reactor, _Planter(self.caches_worker), port)
            except CannotListenError as error:
                self.assertFalse(patience.is_over, error)
                await self.pause(0.05)

    def now(self) -> str:
        """The address of the operator's pages as the daemon has announced it last."""
        return str(self.home.discovery()["operator_url"])

    async def seen(self, foreign: Page) -> Any:
        """What a worker has seen that was sent."""
        await foreign.open(await foreign.evaluate("location.origin + '/direct'"))
        found = await foreign.evaluate(_SEEN)
        self.assertTrue(found, "it has seen nothing at all: this shows nothing")
        return [each for each in found if each.startswith("POST")]

    async def test_another_name(self) -> None:
        """The pages have another name then: nothing that was left is asked, and what lay there says so.

        The next hand-over works, neither worker nor script gets a part in it, and the tab that was open learns that
        its address is no more.
        """
        await self.begin()
        hosts = list(dict.fromkeys((urlsplit(self.url).hostname or "", "localhost", "127.0.0.1")))
        page, planted = await self.plant(*hosts)
        await self.view(planted)
        self.assertNotEqual(urlsplit(self.now()).hostname, hosts[0])
        await page.shows(MOVED)
        tab = await self.browser.page()
        await self.log_in(tab)
        await tab.shows("No pending approvals.")
        self.assertEqual(await tab.evaluate("location.origin"), self.now())
        for each in (tab, await self.browser.page()):
            await each.open(f"{self.now()}/approvals")
            await each.shows("No pending approvals.")
            self.assertEqual(await each.evaluate("navigator.serviceWorker.controller"), None)
            self.assertNotEqual(await each.evaluate("window.poisoned"), True)
        for foreign in planted:
            self.assertEqual(await self.seen(foreign), [])
            await foreign.evaluate(_UNREGISTER)
            for path in ("/approvals", "/", "/handover"):
                await foreign.open("about:blank")
                await foreign.open(f"http://{hosts[planted.index(foreign)]}:{urlsplit(self.url).port}{path}")
                await foreign.shows(MOVED)
            self.assertEqual(await foreign.evaluate("document.scripts.length"), 0)
        self.assertEqual([each for each in page.problems if not each.startswith("network: ")], [])

    async def plant_where_it_stays(self) -> Page:
        """Do the same where the pages are to stay at localhost."""
        await self.begin()
        await self.set_config("operator_host: localhost\n")
        self.url = self.now()
        self.assertEqual(urlsplit(self.url).hostname, "localhost")
        _page, (foreign,) = await self.plant("localhost")
        return foreign

    async def test_removed(self) -> None:
        """Where the pages are to stay at localhost, the first view removes the worker, the script and their data."""
        foreign = await self.plant_where_it_stays()
        await self.view([foreign])
        await foreign.until(_GONE, _GONE_SECONDS)
        for path in ("/approvals", "/", "/handover"):
            await foreign.open("about:blank")
            await foreign.open(self.url + path)
            await foreign.until(f"location.origin === {json.dumps(self.url)} && document.body !== null")
            self.assertNotIn("FORGED", await foreign.evaluate("document.body.innerText"))
            self.assertNotEqual(await foreign.evaluate("window.poisoned"), True)
        tab = await self.browser.page()
        await self.log_in(tab)
        await tab.shows("No pending approvals.")
        self.assertEqual(await tab.evaluate("navigator.serviceWorker.controller"), None)
        self.assertNotEqual(await tab.evaluate("window.poisoned"), True)

    @seldom  # it shows what the security model says of such a worker
    async def test_cached_script(self) -> None:
        """A worker whose script lies in the browser's cache is not removed by the first view."""
        self.caches_worker = True
        foreign = await self.plant_where_it_stays()
        await self.view([foreign])
        await self.pause(5)
        await self.view([foreign])

    @seldom  # it shows that the above can fail, and what the configuration's page says of this setting
    async def test_plain_localhost(self) -> None:
        """Where the pages are to stay at localhost, a worker gets the next hand-over's code in the first view."""
        foreign = await self.plant_where_it_stays()
        opening, file = await self.opening()
        await until(self.reactor, file.exists, 30, "the browser's file")
        tab = await self.browser.page()
        await tab.open(file.rename(file.with_suffix(".html")).as_uri())
        await tab.shows("FORGED")
        await opening.kill()
        self.assertRegex(json.dumps(await self.seen(foreign)), "POST code=[0-9A-Za-z_-]{40}")
