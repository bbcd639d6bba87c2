"""The text of a push, and its form for Safari."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.push._payload import MOST_BYTES, write_payload
from aileron.features.push.values import TEST, PushMessage, Subscription

from .case import ENDPOINT, BrowserDouble

APPLE = "https://web.push.apple.com/QGuQyavXutnMH"
PAGES = "https://phone.example.org"
ID = "01JA0000000000000000000001"


class PayloadTests(SynchronousTestCase):
    def write(self, count: int, endpoint: str = APPLE, pages: str = PAGES, id: str = ID, urgent: bool = True) -> bytes:  # noqa: A002
        """Return the text of a message."""
        browser = BrowserDouble()
        subscription = Subscription(endpoint, browser.point, browser.auth, pages)
        return write_payload(PushMessage(id if count else "", count, 60), subscription, urgent=urgent)

    def test_declared(self) -> None:
        """Apple's service gets what Safari shows by itself: a number, the address of the pages, and no more."""
        told = json.loads(self.write(2))
        self.assertEqual(
            told,
            {
                "web_push": 8030,
                "notification": {
                    "title": "Aileron: 2 requests are waiting for your approval",
                    "lang": "en",
                    "dir": "ltr",
                    "tag": "aileron-pending",
                    "silent": False,
                    "navigate": "https://phone.example.org/approvals",
                    "data": {"id": ID, "n": 2},
                },
                "app_badge": 2,
            },
        )

    def test_words(self) -> None:
        """One request, none, and a test are told as the worker tells them; what is withdrawn makes no sound."""
        one, none = json.loads(self.write(1)), json.loads(self.write(0, urgent=False))
        self.assertEqual(one["notification"]["title"], "Aileron: 1 request is waiting for your approval")
        self.assertEqual(none["notification"]["title"], "Aileron: no request is waiting for your approval")
        self.assertEqual((none["notification"]["silent"], none["app_badge"]), (True, 0))
        self.assertEqual(json.loads(self.write(3, id=TEST))["notification"]["title"], "Aileron: this is a test")

    def test_others(self) -> None:
        """Other services, a name that only ends alike, and an entry without an address get the ID and the number."""
        plain = b'{"id":"%s","n":2}' % ID.encode()
        for endpoint, pages in (
            (ENDPOINT, PAGES),
            ("https://push.apple.com.example/x", PAGES),
            ("https://notpush.apple.com/x", PAGES),
            (APPLE, ""),
        ):
            self.assertEqual(self.write(2, endpoint, pages), plain, endpoint)

    def test_long(self) -> None:
        """A name of 200 characters still fits; one that does not is left out, and the worker shows the message."""
        for size, declared in ((200, True), (300, False)):
            text = self.write(10**6, pages=f"https://{'x' * size}:65535")
            self.assertEqual((b"web_push" in text, len(text) <= MOST_BYTES), (declared, True))
