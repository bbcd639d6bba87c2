"""Web Push at the public name: a phone registers its own browser, and loses it with its passkey."""

from __future__ import annotations

import json
import secrets
from typing import Any

from treq.testing import StubTreq
from twisted.internet.defer import Deferred, succeed

from aileron.base.signatures import write_base64url
from aileron.connectors import Flight, OutgoingRequest, ServiceAnswer
from aileron.features import FeatureSet, RunningFeatures
from aileron.features.push._browsers import PushBrowsers
from aileron.features.push._delivery import BrowserDelivery
from aileron.features.push._notifier import PendingCounter, PushNotifier
from aileron.features.push._sender import PushSender
from aileron.features.push.running import RunningPush
from aileron.model.audit import DAEMON, Actor
from aileron.model.runs import Call, RunState
from aileron.testing import SigningBrowser, SoftwareAuthenticator
from tests.api.case import running
from tests.features.phone.case import PUBLIC, SITE, PhoneCase

from .case import BrowserDouble, ServiceDouble, identified
from .test_sender import FORBIDDEN

PATH = "/v1/notifications/browsers"
WORKER = "/push-worker.js"


class PhonePushCase(PhoneCase):
    """A public name whose daemon sends Web Push, a phone that has signed in, and its push service."""

    def setUp(self) -> None:
        """Build it."""
        super().setUp()
        self.double, self.desk = BrowserDouble(), BrowserDouble("https://push.example/send/desk")
        self.service = ServiceDouble({each.endpoint: each for each in (self.double, self.desk)})
        deliveries: dict[str, BrowserDelivery] = {}
        self.browsers = PushBrowsers(
            self.bindings, self.store.audit, self.clock, self.fresh_id, deliveries, self.phone_passkeys.passkeys
        )
        self.notifier = PushNotifier(
            audit=self.store.audit,
            watermarks=self.store.watermarks,
            counter=PendingCounter(self.store.runs, self.store.snoozes.all, self.clock),
            browsers=self.browsers,
            sender=PushSender(post=self.post, clock=self.clock, randomness=secrets.token_bytes),
            deliveries=deliveries,
            clock=self.clock,
        )
        self.serve(running(self.running, RunningPush(self.browsers, self.notifier)))
        self.add_phone()
        self.page = self.sign_in()

    def serve(self, features: Any) -> None:
        """Build the sites with these features."""
        self.build(
            passkeys=self.passkeys,
            approvers=self.approvers,
            bindings=self.bindings,
            features=features,
            review_url=lambda run_id: f"http://localhost:7001/approvals/{run_id}",
        )
        self.site = self.running._make_site(self.deps)
        self.forget_cookies()

    def forget_cookies(self) -> None:
        """Send from another browser from now on: one that has no cookie of those before."""
        self.treq = StubTreq(self.site.resource)

    def do(self, work: Any) -> Any:
        """What an C{async def} returns, at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def post(self, request: OutgoingRequest, _flight: Flight) -> Deferred[ServiceAnswer]:
        """Hand a request to the double."""
        assert request.body is not None
        self.service.take(request.url, request.headers, request.body, self.clock.seconds())
        return succeed(ServiceAnswer(201, {}, b""))

    def register(self, page: SigningBrowser | None = None, **other: Any) -> Any:
        """Register the phone's browser."""
        return self.send("POST", PATH, {**self.double.told(), "name": "Chrome on Android", **other}, page or self.page)

    def register_desk(self) -> str:
        """Register a browser of the desk; its ID."""
        return str(self.do(self.browsers.register(self.desk.told(), "Firefox", DAEMON, "http://localhost:7001")).id)

    def sent(self) -> list[str]:
        """Send a test, and return the endpoints that it went to."""
        self.service.received.clear()
        self.do(self.notifier.test())
        return [url for url, _, _ in self.service.received]


class OwnTests(PhonePushCase):
    """A phone's own browser."""

    def test_registered(self) -> None:
        """The phone subscribes for the daemon's key; its entry names the phone, and leads to the public name."""
        key = self.send("POST", f"{PATH}/key", {}, self.page)
        made = self.register()
        self.assertEqual((key.status, made.status, made.json["phone"]), (200, 201, "Phone"), made.text)
        browser_id = identified(self.double.endpoint)
        self.assertEqual(self.do(self.browsers.open(browser_id)).pages, PUBLIC)
        self.assertEqual((self.sent(), self.service.keys), ([self.double.endpoint], {key.json["key"]}))
        listed = self.operator.ask("GET", PATH, self.operator_token()).json["items"]
        self.assertEqual([(each["id"], each["phone"]) for each in listed], [(browser_id, "Phone")])
        self.assertIn("push.registered", self.events())
        self.assertNotIn("/send/", made.text + json.dumps(listed))

    def test_others(self) -> None:
        """A phone is told of its own browsers alone, and removes no other: not the desk's, nor another phone's."""
        self.register()
        desk, mine = self.register_desk(), identified(self.double.endpoint)
        other = SoftwareAuthenticator(PUBLIC, SITE, id=b"phone-2")
        self.add_phone(other, "Other")
        self.forget_cookies()
        stranger = self.sign_in(other)
        self.forget_cookies()
        for page, browser_id in ((self.page, desk), (stranger, desk), (stranger, mine)):
            self.assertEqual(self.send("DELETE", f"{PATH}/{browser_id}", {}, page).status, 404, browser_id)
        self.assertEqual(len(self.browsers.list()), 2)
        gone = self.send("DELETE", f"{PATH}/{mine}", {}, self.page)
        self.assertEqual((gone.status, gone.json), (200, {"items": []}))
        self.assertEqual([each.id for each in self.browsers.list()], [desk])

    def test_lost(self) -> None:
        """A removed phone's browser is sent nothing from that moment, is listed no more, and then leaves the vault."""
        self.register()
        self.register_desk()
        self.assertEqual(len(self.sent()), 2)
        self.phone_passkeys.remove(write_base64url(self.person.id))
        self.assertEqual((self.sent(), len(self.browsers.list())), ([self.desk.endpoint], 1))
        self.do(self.browsers.remove_orphans())
        kept = [each.connector for each in self.bindings.list() if each.connector.startswith("push://")]
        self.assertEqual(kept, [f"push://{identified(self.desk.endpoint)}", "push://key"])
        self.assertIn("push.removed", self.events())
        self.assertEqual(self.register().status, 401)

    def test_lost_locked(self) -> None:
        """While the vault is locked nothing is removed, and nothing fails; afterwards it is."""
        self.register()
        self.phone_passkeys.remove(write_base64url(self.person.id))
        self.vault.lock()
        self.do(self.browsers.remove_orphans())
        self.assertEqual((self.browsers.list(), len(self.bindings.list())), ((), 1))

    def test_paired_again(self) -> None:
        """The same browser of a phone that was paired again is the new passkey's: removing the old one leaves it."""
        self.register()
        again = SoftwareAuthenticator(PUBLIC, SITE, id=b"phone-2")
        self.add_phone(again, "Again")
        self.assertEqual(self.register(self.sign_in(again)).json["phone"], "Again")
        self.phone_passkeys.remove(write_base64url(self.person.id))
        self.do(self.browsers.remove_orphans())
        self.assertEqual(self.sent(), [self.double.endpoint])

    def test_watching(self) -> None:
        """A login that only watches registers and removes nothing, and gets no button."""
        self.register()
        self.clock.advance(1801)
        for method, path in (("POST", PATH), ("POST", f"{PATH}/key"), ("DELETE", f"{PATH}/x")):
            body: dict[str, str] = {} if path != PATH else {**self.double.told(), "name": "x"}
            self.assertEqual(self.send(method, path, body, self.page).status, 401, path)
        self.assertNotIn("push-here", self.send("GET", "/fragments/approvals", browser=self.page).text)

    def test_endpoints(self) -> None:
        """No phone makes the daemon send to this machine or a private network."""
        for endpoint in filter(None, FORBIDDEN):
            self.assertEqual(self.register(endpoint=endpoint).status, 400, endpoint)
            self.clock.advance(1)
        self.assertEqual((self.browsers.list(), self.service.received), ((), []))

    def test_elsewhere(self) -> None:
        """Testing all browsers and listing them is for the desk."""
        for method, path in (("POST", f"{PATH}/test"), ("GET", PATH)):
            body: dict[str, str] | None = {} if method == "POST" else None
            self.assertIn(self.send(method, path, body, self.page).status, (404, 405), path)


class PageTests(PhonePushCase):
    """The pages and the worker at the public name."""

    def test_button(self) -> None:
        """The list of requests has the button, with the IDs of this phone's browsers; the desk's has none."""
        self.register()
        self.register_desk()
        shown = self.send("GET", "/fragments/approvals", browser=self.page).text
        self.assertIn("No pending approvals", shown)
        self.assertIn(f'data-known="{identified(self.double.endpoint)}"', shown)
        self.assertIn('hidden="hidden"', shown)
        desk, _session = self.operators.open_browser()
        listed = self.operator.ask("GET", "/fragments/approvals", browser=desk)
        self.assertNotIn("push-here", listed.text)

    def test_worker(self) -> None:
        """The one script that is a worker is served here too, and the pages may register no other."""
        served = self.send("GET", WORKER, headers={"Service-Worker": "script"})
        self.assertEqual(served.headers["content-security-policy"], "default-src 'none'; img-src 'self'")
        self.assertNotIn("fetch", served.text)
        policy = self.send("GET", "/approvals").headers["content-security-policy"]
        self.assertIn(f"worker-src {SITE}{WORKER};", policy)
        self.assertIn(b"/push-worker.js", self.site.rules.workers)

    def test_left_out(self) -> None:
        """Without the feature there is no worker, no button and no route."""
        self.serve(RunningFeatures(FeatureSet().without("push"), (self.running,)))
        self.assertEqual(self.send("GET", WORKER).status, 404)
        self.assertEqual(self.send("POST", f"{PATH}/key", {}, self.page).status, 404)
        self.assertNotIn("push-here", self.send("GET", "/fragments/approvals", browser=self.page).text)

    def test_links(self) -> None:
        """What a notice links to decides nothing, whatever is appended to it."""
        run = self.do(self.runner.submit(Call("ship-update", {}, Actor("agent", "s"))))
        for method in ("GET", "HEAD"):
            for path in ("/approvals", f"/approvals/{run.id}", f"/fragments/approvals/{run.id}"):
                for query in ("", "?approved=true", "?verdict=approved&digest=x", "?decide"):
                    self.send(method, path + query, browser=self.page)
            self.assertIn(self.send(method, f"/v1/action-approvals/{run.id}/decide?approved=true").status, (404, 405))
        self.assertEqual(self.do(self.runner.approval(run.id)).run.state, RunState.PENDING)
