"""The notices of a browser: what a page is given, and where a browser can be notified at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.web.template import flattenString

from aileron.api.guard import READERS
from aileron.base.json import utc
from aileron.features import RunningFeatures
from aileron.features.notices.browser import BrowserNotices
from aileron.features.notices.page import draw_channels
from aileron.features.notices.routes import TABLE
from aileron.features.notices.running import RunningNotices
from aileron.features.notices.values import Message, NoticeSettings, PendingRequests
from aileron.model.authority import PendingLimits
from aileron.model.errors import NotFound
from aileron.review import WARNINGS, ReviewWarning
from tests.api.case import LOCAL_KEY, ApiCase, running

from .case import browser_at, message
from .test_notifier import CANARY, NOW, NotifierCase
from .test_routes import NoChannels

HOMES = ("http://localhost:7001", "http://127.0.0.1:7001", "http://[::1]:7001", "https://aileron.example")
ELSEWHERE = ("http://abcdefghij.aileron.localhost:7001", "http://192.168.1.5:7001")


class BrowserNoticesTests(NotifierCase):
    """The list and the texts."""

    def browser(self, **more: Any) -> BrowserNotices:
        """The notices over the store."""
        return browser_at(store=self.store, vault=self.vault, clock=self.clock, find_review=self.find_review, **more)

    def test_listed(self) -> None:
        """What waits is listed by its id, without what is snoozed or decided."""
        title = "Aileron: {} requests are waiting for your approval"
        self.assertEqual(self.do(self.browser().list_pending()), PendingRequests((), False, title.format(0)))
        self.ask("run-1", "run-2", "run-3", "run-4")
        self.withdraw("run-1")
        self.do(self.store.snoozes.put("run-2", utc(NOW) + timedelta(hours=1), ()))
        listed = self.do(self.browser().list_pending())
        self.assertEqual((set(listed.items), listed.more), ({"run-3", "run-4"}, False))
        self.assertEqual(listed.title, title.format(2))

    def test_more(self) -> None:
        """Of very many it is said that there are more."""
        self.ask(*(f"run-{number:02}" for number in range(60)), limits=PendingLimits(per_session=60, per_action=60))
        listed = self.do(self.browser().list_pending())
        self.assertEqual((len(listed.items), listed.more), (50, True))
        self.assertIn(" 60 requests ", listed.title)

    def test_text(self) -> None:
        """The text is that of a desktop notification, without contents even where messages have them."""
        self.ask("run-1")
        label = WARNINGS["markup"].label
        self.warnings["run-1"] = (ReviewWarning.of("markup", CANARY),)
        message = self.do(self.browser(contents=True).compose("run-1"))
        self.assertRegex(message.title, r"^Aileron: \S+ is waiting for your approval$")
        self.assertIn(f"Look closely: {label}.", message.lines[0])
        self.assertNotIn(CANARY, "".join((message.title, *message.lines)))

    def test_decided(self) -> None:
        """Of what no longer waits, or never did, there is no text."""
        self.ask("run-1")
        self.withdraw("run-1")
        for run_id in ("run-1", "run-2"):
            self.failureResultOf(Deferred.fromCoroutine(self.browser().compose(run_id)), NotFound)

    def test_address(self) -> None:
        """A browser can be notified where its permission stays: at this machine's own names, or by HTTPS."""
        for url in HOMES:
            self.assertIsNone(browser_at(url).explain_unavailable(), url)
        for url in ELSEWHERE:
            self.assertIsNotNone(browser_at(url).explain_unavailable(), url)

    def drawn(self, url: str) -> str:
        """The part of the page of settings at an address."""
        deps: Any = Deps(running(RunningNotices(NoticeSettings(), NoChannels(), browser_at(url))))
        visit: Any = None
        parts = self.do(draw_channels(deps, visit, None))
        return b"".join(self.do(_flatten(part)) for part in parts).decode()

    def test_drawn(self) -> None:
        """The button is drawn only where it can work; where not, the page says why and what to do."""
        self.assertIn('id="notify-here"', self.drawn(HOMES[0]))
        text = self.drawn(ELSEWHERE[0])
        self.assertNotIn("notify-here", text)
        for words in ("a new address at each start", "set operator_host to localhost", "{desktop: true}"):
            self.assertIn(words, text)


@frozen
class Deps:
    """Of all that pages are drawn of, the features."""

    features: RunningFeatures


class PendingRoutesTests(ApiCase):
    """What a page asks for."""

    def setUp(self) -> None:
        """Two requests wait."""
        super().setUp()
        self.requests = PendingBrowser()
        browser: Any = self.requests
        self.build(features=running(RunningNotices(NoticeSettings(), NoChannels(), browser)))

    def test_answered(self) -> None:
        """A login, the local key and a browser that only watches get ids and texts; an agent gets nothing."""
        key = self.operator_token()
        listed = self.operator.ask("GET", "/v1/notifications/pending", key)
        self.assertEqual(listed.json, {"items": ["run-2", "run-1"], "more": True, "title": "Two"})
        shown = self.operator.ask("GET", "/v1/notifications/pending/run-1", key)
        self.assertEqual(
            shown.json, {"title": "Aileron: ship-update is waiting for your approval", "text": "One line."}
        )
        self.assertEqual(self.operator.ask("GET", "/v1/notifications/pending/run-3", key).status, 404)
        for path in ("/v1/notifications/pending", "/v1/notifications/pending/run-1"):
            self.assertEqual(self.operator.ask("GET", path, LOCAL_KEY).status, 200)
            self.assertEqual(self.operator.ask("GET", path, self.agent_token()).status, 401)
            self.assertEqual(self.agents.ask("GET", path, self.agent_token()).status, 404)
        readers = [each.operators for each in TABLE.endpoints if each.path.startswith("/v1/notifications/pending")]
        self.assertEqual(readers, [READERS, READERS])


class PendingBrowser:
    """Two requests that wait."""

    async def list_pending(self) -> PendingRequests:
        """Both."""
        return PendingRequests(("run-2", "run-1"), True, "Two")

    async def compose(self, run_id: str) -> Message:
        """The text of the first."""
        if run_id != "run-1":
            raise NotFound("This request is not pending.")
        return message()


async def _flatten(part: Any) -> bytes:
    return await flattenString(None, part)
