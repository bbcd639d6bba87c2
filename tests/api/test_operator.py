"""The operator: logging in and out, letting a browser in, and what of it is on record."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from aileron.api import POLL
from aileron.base.json import timestamp, utc
from aileron.model.audit import Event
from aileron.model.queries import AuditQuery
from aileron.testing import SigningBrowser

from .case import COOKIE, NOW, ApiCase, Heard


class DoorCase(ApiCase):
    """What happened as the operator came and went."""

    def recorded(self, kind: str) -> list[Event]:
        """The events of a type, oldest first."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery(type=kind))))
        return [record.event for record in reversed(page.items)]

    def payloads(self, kind: str) -> list[Any]:
        """What they say."""
        return [event.payload for event in self.recorded(kind)]


class OperatorTests(DoorCase):
    """Logging in and out."""

    def challenge(self, **more: str) -> Heard:
        """Ask for a challenge."""
        return self.operator.ask("POST", "/v1/operator/challenge", None, {"nonce": self.operators.CLIENT_NONCE, **more})

    def test_login(self) -> None:
        """A proof over the daemon's nonce gives a token that opens the site; it is on record."""
        for more in ({}, {"address": self.operators.ADDRESS}):
            nonce = self.challenge(**more).json["nonce"]
            body = {"nonce": nonce, "proof": self.operators.prove(nonce)}
            heard = self.operator.ask("POST", "/v1/operator/login", None, body)
            self.assertEqual(heard.status, 200)
            self.assertEqual(self.operator.ask("GET", "/v1/status", heard.json["token"]).status, 200)
            self.assertEqual(self.operator.ask("POST", "/v1/operator/login", None, body).status, 401)
        self.assertEqual(self.events().count("operator.login"), 2)

    def test_sessions(self) -> None:
        """Logins are listed, the caller's marked, and ended: one, or all but the caller's; each is on record."""
        (token, own), others = self.operators.log_in(), [self.operators.log_in()[1] for _ in range(2)]
        listed = self.operator.ask("GET", "/v1/operator/sessions", token).json["items"]
        self.assertEqual(len(listed), 3)
        path = f"/v1/operator/sessions/{others[0].id}"
        self.assertEqual(self.operator.ask("DELETE", path, token).json, {"ended": [others[0].id]})
        self.assertEqual(self.operator.ask("DELETE", path, token).status, 404)
        self.assertEqual(self.operator.ask("DELETE", "/v1/operator/sessions", token).json, {"ended": [others[1].id]})
        (left,) = self.operator.ask("GET", "/v1/operator/sessions", token).json["items"]
        self.assertEqual((left["yours"], left["browser"]), (True, False))
        self.assertEqual(self.operator.ask("POST", "/v1/operator/logout", token).status, 200)
        self.assertEqual(self.operator.ask("GET", "/v1/status", token).status, 401)
        events = self.recorded("operator.logout")
        self.assertEqual([event.payload for event in events], [{"session": each.id} for each in (*others, own)])
        self.assertEqual({event.actor.id for event in events}, {own.id})

    def test_revoked_browser(self) -> None:
        """A browser is listed with its last use, and revoked by a terminal; what it signs then opens nothing."""
        token, (browser, session) = self.operator_token(), self.operators.open_browser()
        self.clock.advance(60)
        self.assertEqual(self.operator.ask("GET", "/v1/runs", browser=browser).status, 200)
        listed = {each["id"]: each for each in self.operator.ask("GET", "/v1/operator/sessions", token).json["items"]}
        shown = listed[session.id]
        self.assertEqual((shown["browser"], shown["yours"]), (True, False))
        self.assertEqual((shown["started_at"], shown["used_at"]), (timestamp(utc(NOW)), timestamp(utc(NOW + 60))))
        self.assertEqual(shown["expires_at"], timestamp(utc(NOW + 60 + 30 * 60)))
        self.operator.ask("DELETE", f"/v1/operator/sessions/{session.id}", token)
        self.assertEqual(self.operator.ask("GET", "/v1/runs", browser=browser).status, 401)

    def test_refusals_on_record(self) -> None:
        """A refused login is on record at once, the next ones by their number, at most one event in ten seconds."""
        login = ("POST", "/v1/operator/login", None, {"nonce": "x", "proof": "y"})
        for _ in range(3):
            self.assertEqual(self.operator.ask(*login).status, 401)
        self.assertEqual(self.payloads("operator.login_refused"), [{"count": 1}])
        self.clock.advance(9.9)
        self.assertEqual(self.payloads("operator.login_refused"), [{"count": 1}])
        self.clock.advance(0.1)
        self.assertEqual(self.payloads("operator.login_refused"), [{"count": 1}, {"count": 2}])
        self.clock.advance(60)
        self.assertEqual(self.operator.ask(*login).status, 401)
        self.assertEqual(self.payloads("operator.login_refused"), [{"count": 1}, {"count": 2}, {"count": 1}])
        self.clock.advance(10)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_guesses_on_record(self) -> None:
        """A token that nobody knows is a refused login as well; a request without one is none."""
        self.assertEqual(self.operator.ask("GET", "/v1/runs").status, 401)
        self.assertEqual(self.payloads("operator.login_refused"), [])
        for token in ("ail_o_guess", "ail_a_guess", "guess"):
            self.assertEqual(self.operator.ask("GET", "/v1/runs", token).status, 401)
        self.clock.advance(10)
        self.assertEqual(self.payloads("operator.login_refused"), [{"count": 1}, {"count": 2}])

    def test_failures_slow(self) -> None:
        """After three failures the next refusal comes late, and is on record before that."""
        wrong = ("POST", "/v1/operator/login", None, {"nonce": "x", "proof": "y"})
        for _ in range(3):
            self.operator.ask(*wrong)
        self.clock.advance(10)
        before = len(self.payloads("operator.login_refused"))
        self.clock.advance(10)
        held = self.operator.start(*wrong)
        self.assertNoResult(held)
        self.assertEqual(len(self.payloads("operator.login_refused")), before + 1)
        self.clock.advance(0.25)
        self.operator.treq.flush()
        self.assertEqual(self.successResultOf(held).status, 401)

    def test_true_proof_is_never_slow(self) -> None:
        """Whoever proves it is let in at once, however many wrong proofs wait for their refusal."""
        for _ in range(100):
            self.operator.start("POST", "/v1/operator/login", None, {"nonce": "x", "proof": "y"})
        nonce = self.challenge().json["nonce"]
        body = {"nonce": nonce, "proof": self.operators.prove(nonce)}
        self.assertEqual(self.operator.ask("POST", "/v1/operator/login", None, body).status, 200)
        self.assertEqual(self.operators.delay_seconds(), 0)


class HandOverTests(DoorCase):
    """A terminal lets one browser in."""

    PATH = "/v1/operator/handover"

    def setUp(self) -> None:
        super().setUp()
        self.token, self.login = self.operators.log_in()
        self.code = self.operator.ask("POST", self.PATH, self.token).json["code"]

    def test_typed(self) -> None:
        """A code to type is made where it is asked for; nothing else is made of what is asked for."""
        told = [self.operator.ask("POST", self.PATH, self.token, body) for body in ({"typed": True}, {"typed": False})]
        self.assertRegex(told[0].json["code"], "^([A-Z]{4}-){4}[A-Z]{4}$")
        self.assertEqual(len(told[1].json["code"]), 43)
        for body in ({"typed": 1}, {"short": True}):
            self.assertEqual(self.operator.ask("POST", self.PATH, self.token, body).status, 400)

    def state(self) -> str:
        """How far it is."""
        return str(self.operator.ask("GET", self.PATH, self.token).json["state"])

    def confirm(self, words: str) -> Heard:
        """Type these words."""
        return self.operator.ask("POST", f"{self.PATH}/confirm", self.token, {"words": words})

    def opened(self) -> tuple[SigningBrowser, str]:
        """A browser that came and told its key, and its words."""
        browser = self.operators.waiting_browser(self.code)
        return browser, self.operators.words_of(browser)

    def reads(self, browser: SigningBrowser, **headers: str) -> int:
        """The status of what this browser asks for."""
        return self.operator.ask("GET", "/v1/runs", browser=browser, headers=headers).status

    def test_confirmed(self) -> None:
        """The browser is let in by its two words, and by nothing before; it is on record as a login of its own."""
        self.assertEqual(self.state(), "made")
        browser, words = self.opened()
        self.assertEqual((self.state(), self.reads(browser)), ("opened", 401))
        heard = self.confirm(words)
        self.assertEqual((heard.status, heard.json["browser"]), (200, True))
        self.assertEqual((self.state(), self.reads(browser)), ("confirmed", 200))
        (event,) = self.recorded("operator.login")
        self.assertEqual(event.actor.id, heard.json["id"])
        self.assertEqual((event.payload["browser"], event.payload["from"]), (True, self.login.id))
        key: Any = event.payload["key"]
        self.assertEqual(key["kind"], "browser")

    def test_words_stay_with_the_page(self) -> None:
        """No answer to the terminal holds the words."""
        _browser, words = self.opened()
        answers = [self.operator.ask("GET", self.PATH, self.token), self.confirm("not these")]
        for answer in answers:
            self.assertNotIn(words, answer.text + str(answer.headers))
        self.assertEqual(set(answers[0].json), {"state"})

    def test_wrong_words(self) -> None:
        """Wrong words end it at once, for good, with a sentence; that is on record, without any words."""
        browser, words = self.opened()
        heard = self.confirm("not these")
        self.assertEqual((heard.status, self.state()), (403, "wrong_words"))
        self.assertIn("aileron open", heard.json["error"]["message"])
        self.assertEqual(self.confirm(words).status, 409)
        self.assertEqual(self.reads(browser), 401)
        (event,) = self.recorded("operator.handover_refused")
        self.assertEqual((event.actor.id, event.payload), (self.login.id, {"reason": "wrong_words"}))

    def test_too_early(self) -> None:
        """Before a browser came there is nothing to confirm, and nothing is spent by trying."""
        self.assertEqual(self.confirm("any words").status, 409)
        browser, words = self.opened()
        self.assertEqual(self.confirm(words).status, 200)
        self.assertEqual(self.reads(browser), 200)

    def test_nothing_handed_over(self) -> None:
        """A login that handed nothing over is told so."""
        self.assertEqual(self.operator.ask("GET", self.PATH, self.operator_token()).status, 404)

    def test_no_browser_has_a_say(self) -> None:
        """A browser lets no other browser in, and learns nothing of it."""
        browser, words = self.opened()
        self.confirm(words)
        for method, path in (("POST", self.PATH), ("GET", self.PATH), ("POST", f"{self.PATH}/confirm")):
            body = {"words": words} if path.endswith("confirm") else None
            self.assertEqual(self.operator.ask(method, path, body=body, browser=browser).status, 403)

    def test_polls(self) -> None:
        """A page that only looks, and says so, does not keep its session deciding."""
        browser, words = self.opened()
        self.confirm(words)
        for _ in range(29):
            self.clock.advance(60)
            self.assertEqual(self.reads(browser, **{POLL: "1"}), 200)
        self.clock.advance(60)
        heard = self.operator.ask("POST", "/v1/resume", browser=browser)
        self.assertEqual((heard.status, heard.kind), (401, "login_lapsed"))
        self.assertEqual(self.reads(browser), 200)

    def test_cookie_of_another_daemon(self) -> None:
        """Two daemons of one host have cookies of two names."""
        browser, words = self.opened()
        self.confirm(words)
        both = f"aileron_other=x; {COOKIE}={browser.cookie}"
        self.assertEqual(self.reads(browser, Cookie=both), 200)
        self.assertEqual(self.reads(browser, Cookie=f"aileron_other={browser.cookie}"), 401)
