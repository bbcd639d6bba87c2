"""The routes of Web Push: who may register a browser, where, and what is told of those that are."""

from __future__ import annotations

import secrets
from typing import Any

from twisted.internet.defer import Deferred, succeed

from aileron.connectors import Flight, OutgoingRequest, ServiceAnswer
from aileron.features.push._browsers import PushBrowsers
from aileron.features.push._delivery import BrowserDelivery
from aileron.features.push._notifier import PendingCounter, PushNotifier
from aileron.features.push._sender import PushSender
from aileron.features.push.running import RunningPush
from tests.api.case import LAUNCH_KEY, LOCAL_KEY, ApiCase, running

from .case import BrowserDouble, ServiceDouble, identified

PATH = "/v1/notifications/browsers"


class BrowserRoutesTests(ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.url = "http://localhost:7001"
        self.double = BrowserDouble()
        self.service = ServiceDouble({self.double.endpoint: self.double})
        bindings = self.deps.bindings
        deliveries: dict[str, BrowserDelivery] = {}
        browsers = PushBrowsers(bindings, self.store.audit, self.clock, self.fresh_id, deliveries)
        notifier = PushNotifier(
            audit=self.store.audit,
            watermarks=self.store.watermarks,
            counter=PendingCounter(self.store.runs, self.store.snoozes.all, self.clock),
            browsers=browsers,
            sender=PushSender(post=self.post, clock=self.clock, randomness=secrets.token_bytes),
            deliveries=deliveries,
            clock=self.clock,
        )
        self.feature = RunningPush(browsers, notifier)
        self.build(features=running(self.feature), review_url=lambda run_id: f"{self.url}/approvals/{run_id}")
        self.key = self.operator_token()

    def post(self, request: OutgoingRequest, _flight: Flight) -> Deferred[ServiceAnswer]:
        """Hand a request to the double."""
        assert request.body is not None
        self.service.take(request.url, request.headers, request.body, self.clock.seconds())
        return succeed(ServiceAnswer(201, {}, b""))

    def register(self, token: str | None = None, **other: Any) -> Any:
        """Register the browser."""
        body = {**self.double.told(), "name": "Chrome on Android", **other}
        return self.operator.ask("POST", PATH, token or self.key, body)

    def test_registered(self) -> None:
        """A login that may decide registers a browser, tries it and removes it; all of it is on record."""
        key = self.operator.ask("POST", f"{PATH}/key", self.key, {})
        self.assertEqual((key.status, len(key.json["key"])), (200, 87))
        made = self.register()
        browser_id = identified(self.double.endpoint)
        self.assertEqual((made.status, made.json["id"], made.json["sent_at"]), (201, browser_id, None), made.text)
        tried = self.operator.ask("POST", f"{PATH}/test", self.key, {})
        self.assertIsNotNone(tried.json["items"][0]["sent_at"])
        self.assertEqual([text for _, _, text in self.service.received], [{"id": "test", "n": 0}])
        self.assertEqual(self.service.keys, {key.json["key"]})
        listed = self.operator.ask("GET", PATH, LOCAL_KEY)
        self.assertEqual(listed.json, tried.json)
        self.assertNotIn("/send/", made.text + listed.text)
        gone = self.operator.ask("DELETE", f"{PATH}/{browser_id}", self.key, {})
        self.assertEqual((gone.status, gone.json), (200, {"items": []}))
        self.assertEqual(self.operator.ask("DELETE", f"{PATH}/{browser_id}", self.key, {}).status, 404)
        self.assertEqual([each for each in self.events() if "push" in each], ["push.registered", "push.removed"])

    def test_callers(self) -> None:
        """Nobody else registers, removes or tries one: not an agent, the launch key, nor what can only read."""
        self.register()
        removal = f"{PATH}/{identified(self.double.endpoint)}"
        for token in (self.agent_token(), LAUNCH_KEY, LOCAL_KEY):
            for method, path, body in (
                ("POST", PATH, {**self.double.told(), "name": "x"}),
                ("POST", f"{PATH}/key", {}),
                ("POST", f"{PATH}/test", {}),
                ("DELETE", removal, {}),
            ):
                self.assertIn(self.operator.ask(method, path, token, body).status, (401, 403), (path, token[:5]))
        self.assertEqual(self.agents.ask("GET", PATH, self.agent_token()).status, 404)
        self.assertEqual(len(self.feature.browsers.list()), 1)

    def test_refused(self) -> None:
        """An endpoint in this machine or a private network is refused, and nothing is asked there."""
        for endpoint in ("https://127.0.0.1/x", "https://10.0.0.1/x", "http://push.example/x", "https://a.internal/x"):
            heard = self.register(endpoint=endpoint)
            self.assertEqual(
                (heard.status, heard.json["error"]["details"]["problems"][0]["pointer"]), (400, "/endpoint")
            )
            self.assertNotIn(endpoint, heard.text)
        self.assertEqual(self.register(p256dh="x").status, 400)
        self.assertEqual(self.register(endpoint="https://push.example/" + "x" * 2000).status, 400)
        self.assertEqual((self.feature.browsers.list(), self.service.received), ((), []))

    def test_new_address(self) -> None:
        """Where the pages have a new address at each start, no browser is registered; those that are can be removed."""
        self.register()
        self.url = "http://wdjbmjhtkc.aileron.localhost:7001"
        for heard in (self.register(), self.operator.ask("POST", f"{PATH}/key", self.key, {})):
            self.assertEqual((heard.status, heard.kind), (409, "conflict"))
            self.assertIn("operator_host", heard.text)
        path = f"{PATH}/{identified(self.double.endpoint)}"
        self.assertEqual(self.operator.ask("DELETE", path, self.key, {}).status, 200)

    def test_locked(self) -> None:
        """While the vault is locked, nothing is registered or tried."""
        self.register()
        self.vault.lock()
        self.assertEqual(self.register().status, 401)
        self.assertEqual(len(self.operator.ask("GET", PATH, LOCAL_KEY).json["items"]), 1)

    def test_credentials(self) -> None:
        """The entries are listed among the credentials without a secret, and nobody makes one by hand."""
        self.register()
        self.operator.ask("POST", f"{PATH}/key", self.key, {})
        heard = self.operator.ask("GET", "/v1/bindings", self.key)
        self.assertEqual({each["fits"] for each in heard.json["items"]}, {True}, heard.text)
        self.assertEqual(len(heard.json["items"]), 2)
        self.assertNotIn("/send/", heard.text)
        body = {"connector": "push://0123456789abcdef", "service": "push", "identity": "x", "secret": "canary"}
        self.assertEqual(self.operator.ask("POST", "/v1/bindings/setup", self.key, body).status, 400)

    def test_off(self) -> None:
        """Without the feature nothing is there."""
        self.build(features=running())
        self.assertEqual(self.operator.ask("GET", PATH, self.key).status, 404)
