"""What a page fetches and how soon: bytes as they pass a socket, times as the browser itself has them."""

import json
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import connectionDone
from twisted.internet.task import deferLater
from twisted.protocols.portforward import ProxyClient, ProxyClientFactory, ProxyFactory, ProxyServer

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Chromium, Page

PENDING = 12
# A browser also looks for its maker's services: these names lead nowhere, so that only the pages are counted.
_RULES = "MAP *.aileron.localhost 127.0.0.1:%d, MAP * ~NOTFOUND"
_PROGRAM = f'program=$1; shift; exec "$program" "--host-resolver-rules={_RULES}" "$@"'
# From the navigation's start, in milliseconds.
TIMES = """(() => {
  const [page] = performance.getEntriesByType("navigation");
  const ended = (part) => performance.getEntriesByType("resource").find(({ name }) => name.includes(part))?.responseEnd;
  return {
    painted_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    shell_ms: page.responseEnd,
    style_ms: ended("style.css"),
    scripts_ms: ended("scripts.js"),
    fragment_ms: ended("/fragments/"),
    parsed_ms: page.domInteractive,
    shown_ms: window.stood,
  };
})()"""
# The request was decided, or made way for the next one.
_DECIDED = """(() => {
  const { id, state } = document.querySelector("article")?.dataset ?? {};
  return id !== %s || state !== "pending_approval";
})()"""
WATCHED = """new MutationObserver(() => {
  if (window.stood === undefined && document.querySelector(".asks > li")) window.stood = performance.now();
}).observe(document, { childList: true, subtree: true })"""


class _CountingClient(ProxyClient):
    def dataReceived(self, data: bytes) -> None:
        server: Any = self.peer
        server.factory.counted += len(data)
        received: Callable[[bytes], None] = super().dataReceived
        received(data)


class _CountingClientFactory(ProxyClientFactory):
    protocol = _CountingClient


class _CountingServer(ProxyServer):
    clientProtocolFactory = _CountingClientFactory

    def connectionMade(self) -> None:
        factory: Any = self.factory
        factory.enter(self)
        super().connectionMade()

    def connectionLost(self, reason: Any = connectionDone) -> None:
        factory: Any = self.factory
        factory.leave(self)
        lost: Callable[[Any], None] = super().connectionLost
        lost(reason)

    def dataReceived(self, data: bytes) -> None:
        factory: Any = self.factory
        factory.counted += len(data)
        received: Callable[[bytes], None] = super().dataReceived
        received(data)


class Counter(ProxyFactory):
    """A forwarder to the operator site.

    :ivar counted: the bytes both ways, heads included.
    """

    protocol = _CountingServer
    counted = 0

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._open: set[Any] = set()

    def enter(self, server: Any) -> None:
        """Note a connection."""
        self._open.add(server)

    def leave(self, server: Any) -> None:
        """Forget a connection. Idempotent."""
        self._open.discard(server)

    def close_all(self) -> None:
        """Close every connection."""
        for each in tuple(self._open):
            each.transport.abortConnection()


class TrafficTestCase(PagesTestCase):
    """A browser before a list of pending approvals, whose bytes are counted on their way."""

    counter: Counter

    async def begin(self) -> None:
        """Start a browser of its own, whose connections lead to the forwarder."""
        await self.furnish()
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        counter: Any = Counter("127.0.0.1", int(urlsplit(self.url).port or 0))
        self.counter = counter
        port: Any = self.reactor.listenTCP(0, counter, interface="127.0.0.1")
        self.finally_(lambda: self._stop(port))
        profile = self.home.root / "browser"
        profile.mkdir()
        behind = ("/bin/sh", "-c", _PROGRAM % port.getHost().port, "sh")
        self.browser = Chromium.start(self.reactor, profile, self.home.environment(), behind)
        self.finally_(self.browser.stop)
        for at in range(PENDING):
            await self.ask(f"number {at}")

    async def _stop(self, port: IListeningPort) -> None:
        await maybeDeferred(port.stopListening)

    async def first_load(self) -> tuple[Page, Mapping[str, Any]]:
        """Load the list with nothing kept: the tab, and its requests, kilobytes and milliseconds.

        The tab comes from a picture of the same site, so that the start of a process of the browser is not counted.
        """
        page = await self.entered()
        await page.open(f"{self.url}/static/icon.svg")
        await page.until("document.querySelector('svg') !== null")
        await page.call("Network.clearBrowserCache")
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCHED)
        await self.pause(1)
        page.requests.clear()
        self.counter.counted = 0
        await page.open(f"{self.url}/approvals")
        await page.until(f"document.querySelectorAll('.asks > li').length >= {PENDING}")
        await self.pause(2)
        requests = [url for _, url in page.requests if url.startswith(self.url)]
        times = await page.evaluate(TIMES)
        return page, {"requests": requests, "kilobytes": self.counter.counted / 1000, **times}

    async def idle(self, seconds: float) -> float:
        """Bytes a second, both ways, of a page that nobody touches."""
        await self.pause(60)
        self.counter.counted = 0
        await self.pause(seconds)
        return self.counter.counted / seconds

    async def decide(self, page: Page, times: int) -> float:
        """The median of milliseconds from a press of Approve until the page shows its result or the next request."""
        taken = []
        for at in range(times):
            run_id = await self.ask(f"decided {at}")
            await page.open(f"{self.url}/approvals/{run_id}")
            await page.until("document.querySelector('article') !== null")
            await self.ready(page)
            before = perf_counter()
            await page.evaluate("document.querySelector('#approve').click()")
            await page.until(_DECIDED % json.dumps(run_id))
            taken.append((perf_counter() - before) * 1000)
        return median(taken)

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await deferLater(self.reactor, seconds, lambda: None)
