"""What a phone fetches at the public name, and how soon by a slow network: bytes at the socket, TLS included."""

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import maybeDeferred
from twisted.internet.task import deferLater

from tests.functional.chromium import Page
from tests.functional.phoned import PhonedTestCase, config
from tests.functional.ports import LOOPBACK, free_port
from tests.functional.traffic import PENDING, TIMES, WATCHED, Counter

SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
"""The network: milliseconds before each answer, and bytes a second."""


class PhoneTrafficTestCase(PhonedTestCase):
    """A phone whose bytes are counted on their way, and twelve requests."""

    counter: Counter

    def public_port(self) -> int:
        """The port of what counts, behind which is the daemon's."""
        return free_port("counter")

    def text(self) -> str:
        """The configuration."""
        return config(self.tls, self.public_port())

    async def begin(self) -> None:
        """Start it all."""
        counter: Any = Counter(LOOPBACK, free_port())
        self.counter = counter
        port: Any = self.reactor.listenTCP(self.public_port(), counter, interface=LOOPBACK)

        async def stop() -> None:
            await maybeDeferred(port.stopListening)

        self.finally_(stop)
        await super().begin()
        for at in range(PENDING):
            await self.ask(f"number {at}")

    async def signed_in(self) -> Page:
        """A paired phone that has signed in."""
        page, _ = await self.tab()
        await self.pair(page)
        await self.sign_in(page)
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCHED)
        return page

    async def first_load(self, page: Page, *, slow: bool = False) -> Mapping[str, Any]:
        """Load the list with nothing kept: its requests, kilobytes and milliseconds.

        The tab comes from a picture of the same site, so that the start of a process of the browser is not counted; its
        connection is closed, so that a new one is.

        :param slow: whether by the slow network.
        """
        await page.call("Network.emulateNetworkConditions", **{**SLOW, "latency": 0, "downloadThroughput": -1})
        await page.open(f"{self.public}/static/icon.svg")
        await page.until("document.querySelector('svg') !== null")
        await page.call("Network.clearBrowserCache")
        await self.pause(1)
        self.counter.close_all()
        page.requests.clear()
        if slow:
            await page.call("Network.emulateNetworkConditions", **SLOW)
        self.counter.counted = 0
        await page.open(f"{self.public}/approvals")
        await page.until(f"document.querySelectorAll('.asks > li').length >= {PENDING}")
        await self.pause(2)
        requests = [url for _, url in page.requests if url.startswith(self.public)]
        return {"requests": requests, "kilobytes": self.counter.counted / 1000, **await page.evaluate(TIMES)}

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await deferLater(self.reactor, seconds, lambda: None)
