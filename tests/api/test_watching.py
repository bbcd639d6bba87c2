"""A browser whose login may only read, against every route of the operator site."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.api._sites import operator_routes
from aileron.api.guard import Who
from aileron.model.audit import Actor, Event
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Approval, Call
from aileron.testing import ScriptedRunner, SigningBrowser

from .case import NOW, ApiCase, Heard
from .test_guard import routes

LAPSED = (401, "login_lapsed")
MAY_CHANGE = {
    "/v1/pause",
    "/v1/vault/lock",
    "/v1/actions/check",
    "/v1/actions/x/dry-run",
    "/v1/operator/logout",
    "/v1/operator/raise/ask",
    "/v1/operator/raise",
}
"""The routes other than GET that such a login opens. Add none that an agent would want to have pressed for it.

The last two let the login decide again, and need a touch of the person's passkey.
"""
ITS_OWN = {"/v1/operator/logout", "/v1/operator/raise/ask", "/v1/operator/raise"}
"""Those that concern the login itself, which a program with the local key has not."""
OF_ACCOUNTS = "/v1/account/"
"""The beginning of those for people with an account, a viewer as well. Here nobody has one."""


class WatcherCase(ApiCase):
    """A browser that was let in, half an hour later."""

    def setUp(self) -> None:
        super().setUp()
        self.browser, self.session = self.operators.open_browser()
        self.clock.advance(30 * 60)

    def ask(self, method: str, path: str, body: Any = None, browser: SigningBrowser | None = None) -> Heard:
        """What the browser is answered."""
        return self.operator.ask(method, path, body=body, browser=browser or self.browser)


class WatcherTests(WatcherCase):
    """What it can do."""

    def test_every_route(self) -> None:
        """It opens what it is allowed by name; any other route, also one to come, is refused by a class of its own."""
        tried = 0
        for method, path, allowed in routes(operator_routes().endpoints):
            if path in ("/v1/events", "/v1/vault/lock", "/v1/operator/logout"):  # they go on, or end what is tried
                continue
            heard = self.ask(method, path)
            if path.startswith(OF_ACCOUNTS):
                self.assertEqual(heard.status, 403, f"{method} {path}")
                continue
            if allowed & (Who.WATCHER | Who.ANYONE):
                self.assertNotIn(heard.status, (401, 403), f"{method} {path}")
                continue
            self.assertEqual((heard.status, heard.kind), LAPSED, f"{method} {path}")
            self.assertIn("aileron open", heard.json["error"]["message"])
            tried += 1
        self.assertGreater(tried, 25)

    def test_allowed(self) -> None:
        """It may do no more than a program with the local key may, and end itself."""
        served = [each for each in routes(operator_routes().endpoints) if not each[1].startswith(OF_ACCOUNTS)]
        opened = {(method, path) for method, path, allowed in served if Who.WATCHER in allowed}
        local = {(method, path) for method, path, allowed in served if Who.LOCAL in allowed}
        self.assertEqual(opened - local, {("POST", path) for path in ITS_OWN})
        self.assertEqual({path for method, path in opened if method != "GET"}, MAY_CHANGE)

    def test_decides_nothing(self) -> None:
        """An approval that it tries to decide stays pending, by whatever method, and nothing goes on record."""
        run = self.successResultOf(
            Deferred.fromCoroutine(self.runner.submit(Call("ship-update", {"text": "hello"}, Actor("agent", "s1"))))
        )
        before = self.events()
        for path in ("decide", "edit", "passkey"):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                body = {"approved": True, "digest": "sha256:x"}
                heard = self.ask(method, f"/v1/action-approvals/{run.id}/{path}", body)
                self.assertEqual(heard.status, 401 if method == "POST" else 405, f"{method} {path}")
        self.assertEqual(self.events(), before)
        found = self.successResultOf(Deferred.fromCoroutine(self.runner.run(run.id)))
        self.assertEqual(found.state.value, "pending_approval")

    def test_reads_alone(self) -> None:
        """What it reads fetches no preview and stores no staleness."""
        asked: list[bool] = []

        async def approvals(_runner: ScriptedRunner, query: RunQuery, *, only_read: bool = False) -> Any:
            asked.append(only_read)
            raise AssertionError(query)

        async def approval(_runner: ScriptedRunner, run_id: str, *, only_read: bool = False) -> Approval:
            asked.append(only_read)
            raise AssertionError(run_id)

        self.logged()
        self.patch(ScriptedRunner, "approvals", approvals)
        self.patch(ScriptedRunner, "approval", approval)
        self.ask("GET", "/v1/action-approvals")
        self.ask("GET", "/v1/action-approvals/run-1")
        self.assertEqual(asked, [True, True])
        self.flushLoggedErrors(AssertionError)

    def test_pauses(self) -> None:
        """It may pause, under its own name, and not resume."""
        self.assertEqual(self.ask("POST", "/v1/pause").json["pause"]["by"], self.session.id)
        heard = self.ask("POST", "/v1/resume")
        self.assertEqual((heard.status, heard.kind), LAPSED)

    def test_ends_itself(self) -> None:
        """It may log itself out; another login it may not end."""
        other, session = self.operators.open_browser()
        for path in ("/v1/operator/sessions", f"/v1/operator/sessions/{session.id}"):
            self.assertEqual((self.ask("DELETE", path).status), 401)
        self.assertEqual(self.ask("POST", "/v1/operator/logout").json["ended"], [self.session.id])
        self.assertEqual(self.ask("GET", "/v1/runs").kind, "unauthorized")
        self.assertEqual(self.ask("GET", "/v1/runs", browser=other).status, 200)

    def test_cookie_alone(self) -> None:
        """A stolen cookie reads nothing: each request is signed, once, as before."""
        thief = SigningBrowser.generate(self.browser.cookie, self.clock.seconds).with_instance(self.browser.instance)
        for path in ("/v1/runs", "/v1/status", "/v1/audit"):
            heard = self.ask("GET", path, browser=thief)
            self.assertEqual((heard.status, heard.kind), (401, "unauthorized"))

    def test_level(self) -> None:
        """Each answer says what the login may do, a refusal as well."""
        fresh, _session = self.operators.open_browser()
        levels = [
            self.ask(method, path, browser=browser).headers.get("x-aileron-level")
            for browser in (fresh, self.browser)
            for method, path in (("GET", "/v1/runs"), ("POST", "/v1/resume"))
        ]
        self.assertEqual(levels, ["deciding", "deciding", "reading", "reading"])
        stranger = evolve(self.browser, cookie="x")
        self.assertNotIn("x-aileron-level", self.ask("GET", "/v1/runs", browser=stranger).headers)


class RecordTests(WatcherCase):
    """What of it is on record."""

    def recorded(self, kind: str) -> list[Event]:
        """The events of a type."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery(type=kind))))
        return [record.event for record in page.items]

    def test_lapse(self) -> None:
        """The lapse is on record when it comes, and names the login."""
        (event,) = self.recorded("operator.login_lapsed")
        self.assertEqual((event.payload, event.at.timestamp()), ({"session": self.session.id}, NOW + 30 * 60))

    def test_raise(self) -> None:
        """The same login that decides again is on record as that, with the terminal that let it."""
        token, login = self.operators.log_in()
        cookie, page_key, _maker = self.operators.redeem(self.operators.hand_over(token))
        self.operators.register_again(cookie, page_key, self.browser.sign_request("POST", "/handover/key"))
        words = self.operators.words_of(evolve(self.browser, cookie=cookie))
        heard = self.operator.ask("POST", "/v1/operator/handover/confirm", token, {"words": words})
        self.assertEqual((heard.json["id"], heard.json["decides"]), (self.session.id, True))
        (event,) = self.recorded("operator.login_raised")
        self.assertEqual(event.actor, Actor("human", self.session.id))
        self.assertEqual((event.payload["browser"], event.payload["from"]), (True, login.id))
        self.assertEqual(self.recorded("operator.login"), [])
        self.assertEqual(self.ask("POST", "/v1/resume").status, 200)
